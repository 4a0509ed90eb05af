"""The superstep loop that numeric and agent vertices share, its trace and its journal."""

"""The superstep loop shared by numeric and agent vertices, its journal, trace and progress bar."""

"""Graph algorithms, one per file, and their registry."""

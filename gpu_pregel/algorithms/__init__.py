"""Graph algorithms: each file holds one, readable from top to bottom."""

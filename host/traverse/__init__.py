"""The traversal engine: frontiers, and the primitives over their vertices and edges, on every device."""

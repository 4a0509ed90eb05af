"""Shortest paths by the number of edges."""

from __future__ import annotations

from gpu_pregel.networkx.function import Function

FUNCTIONS = (Function("single_source_shortest_path_length", "shortest_paths"),)

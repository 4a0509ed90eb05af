"""Shortest paths by the number of edges."""

from __future__ import annotations

from gpu_pregel.networkx.function import Function

FUNCTIONS = (
    Function("all_pairs_shortest_path", "shortest_paths"),
    Function("all_pairs_shortest_path_length", "shortest_paths"),
    Function("bidirectional_shortest_path", "shortest_paths"),
    Function("predecessor", "shortest_paths"),
    Function("single_source_shortest_path", "shortest_paths"),
    Function("single_source_shortest_path_length", "shortest_paths"),
    Function("single_target_shortest_path", "shortest_paths"),
    Function("single_target_shortest_path_length", "shortest_paths"),
)

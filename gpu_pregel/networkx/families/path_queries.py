"""Shortest paths with or without weights, by the method that is asked for."""

from __future__ import annotations

from gpu_pregel.networkx.conditions import attribute_names
from gpu_pregel.networkx.function import Function

_NAMES = (
    "all_pairs_all_shortest_paths",
    "all_shortest_paths",
    "average_shortest_path_length",
    "shortest_path",
    "shortest_path_length",
    "single_source_all_shortest_paths",
)

FUNCTIONS = (
    Function("has_path", "path_queries"),
    *(
        Function(name, "path_queries", conditions=(attribute_names("weight"),), note="with weights by name only")
        for name in _NAMES
    ),
)

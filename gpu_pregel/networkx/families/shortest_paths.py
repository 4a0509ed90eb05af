"""Shortest paths by the number of edges."""

from __future__ import annotations

from gpu_pregel.networkx.conditions import float_or_none
from gpu_pregel.networkx.function import Function

_WITH_CUTOFF = (
    "all_pairs_shortest_path",
    "all_pairs_shortest_path_length",
    "predecessor",
    "single_source_shortest_path",
    "single_source_shortest_path_length",
    "single_target_shortest_path",
    "single_target_shortest_path_length",
)

FUNCTIONS = (
    Function("bidirectional_shortest_path", "shortest_paths"),
    *(Function(name, "shortest_paths", conditions=(float_or_none("cutoff"),)) for name in _WITH_CUTOFF),
)

"""Shortest paths by weight: Dijkstra's algorithm."""

from __future__ import annotations

from gpu_pregel.networkx.conditions import attribute_names, float_or_none
from gpu_pregel.networkx.function import Function

_NOTE = "with weights by name only"
_PAIRS = ("bidirectional_dijkstra", "dijkstra_path", "dijkstra_path_length")
_WITH_CUTOFF = (
    "all_pairs_dijkstra",
    "all_pairs_dijkstra_path",
    "all_pairs_dijkstra_path_length",
    "dijkstra_predecessor_and_distance",
    "multi_source_dijkstra",
    "multi_source_dijkstra_path",
    "multi_source_dijkstra_path_length",
    "single_source_dijkstra",
    "single_source_dijkstra_path",
    "single_source_dijkstra_path_length",
)

FUNCTIONS = (
    *(Function(name, "weighted_paths", conditions=(attribute_names("weight"),), note=_NOTE) for name in _PAIRS),
    *(
        Function(name, "weighted_paths", conditions=(attribute_names("weight"), float_or_none("cutoff")), note=_NOTE)
        for name in _WITH_CUTOFF
    ),
)

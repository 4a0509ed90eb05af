"""Shortest paths by weights that may be negative: the Bellman-Ford algorithm, and negative cycles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpu_pregel.networkx.conditions import attribute_names
from gpu_pregel.networkx.function import Function

_NAMES = (
    "all_pairs_bellman_ford_path",
    "all_pairs_bellman_ford_path_length",
    "bellman_ford_path",
    "bellman_ford_path_length",
    "bellman_ford_predecessor_and_distance",
    "find_negative_cycle",
    "johnson",
    "single_source_bellman_ford",
    "single_source_bellman_ford_path",
    "single_source_bellman_ford_path_length",
)

_NOTE = "with weights by name only"


def _not_frozen(values: Mapping[str, Any]) -> str | None:
    """Require a graph that NetworkX can change, as it adds a node for a while."""
    return "G is frozen" if getattr(values["G"], "frozen", False) else None


FUNCTIONS = (
    *(Function(name, "bellman_ford", conditions=(attribute_names("weight"),), note=_NOTE) for name in _NAMES),
    Function("negative_edge_cycle", "bellman_ford", conditions=(attribute_names("weight"), _not_frozen), note=_NOTE),
)

"""Shortest paths by weights that may be negative: the Bellman-Ford algorithm, and negative cycles."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from gpu_pregel.networkx.conditions import attribute_names
from gpu_pregel.networkx.function import Function, Reads

_WEIGHT, _NOTE = attribute_names("weight"), "with weights by name only"
_weighted = partial(Function, module="bellman_ford", conditions=(_WEIGHT,), note=_NOTE)
_from_source = partial(_weighted, reads=Reads(start="source"))
_between = partial(_weighted, reads=Reads(start="source", ends=("source", "target")))


def _not_frozen(values: Mapping[str, Any]) -> str | None:
    """Require a graph that NetworkX can change, as it adds a node for a while."""
    return "G is frozen" if getattr(values["G"], "frozen", False) else None


FUNCTIONS = (
    _weighted("all_pairs_bellman_ford_path"),
    _weighted("all_pairs_bellman_ford_path_length"),
    _between("bellman_ford_path", keeps=("source", "target")),
    _between("bellman_ford_path_length"),
    _from_source("bellman_ford_predecessor_and_distance", keeps=("source",)),
    _weighted("find_negative_cycle", reads=Reads(ends_early=True)),
    _weighted("johnson"),
    _from_source("single_source_bellman_ford", keeps=("source", "target")),
    _from_source("single_source_bellman_ford_path", keeps=("source",)),
    _from_source("single_source_bellman_ford_path_length", keeps=("source",)),
    _weighted("negative_edge_cycle", conditions=(_WEIGHT, _not_frozen)),
)

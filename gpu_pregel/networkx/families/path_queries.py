"""Shortest paths with or without weights, by the method that is asked for."""

from __future__ import annotations

from functools import partial
from typing import Any

from gpu_pregel.networkx.conditions import attribute_names
from gpu_pregel.networkx.function import Function, Reads


def _searching(function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Return the function that searches between two nodes, from one, or from all."""
    source, target, weight = (function.argument(one, args, kwargs) for one in ("source", "target", "weight"))
    if source is None and target is None:
        return function.name
    is_dijkstra = weight is not None and function.argument("method", args, kwargs) in (None, "dijkstra")
    if source is not None and target is not None:
        if weight is None:
            return "bidirectional_shortest_path"
        return "bidirectional_dijkstra" if is_dijkstra else function.name
    length = function.name.removeprefix("shortest_path")
    if weight is None:
        return f"single_{'target' if source is None else 'source'}_shortest_path{length}"
    return f"single_source_{'dijkstra' if is_dijkstra else 'bellman_ford'}_path{length}"


_weighted = partial(
    Function, module="path_queries", conditions=(attribute_names("weight"),), note="with weights by name only"
)
_by_method = partial(
    _weighted,
    reads=Reads(start="source", ends=("source", "target")),
    keeps=("source", "target"),
    measured_as=_searching,
)

FUNCTIONS = (
    Function("has_path", "path_queries", reads=Reads(ends=("source", "target"), ends_early=True)),
    _weighted("all_pairs_all_shortest_paths"),
    _weighted("all_shortest_paths", reads=Reads(start="source"), keeps=("source",)),
    _weighted("average_shortest_path_length", reads=Reads(from_first=True, along="each")),
    _by_method("shortest_path"),
    _by_method("shortest_path_length"),
    _weighted("single_source_all_shortest_paths", reads=Reads(start="source"), keeps=("source",)),
)

"""Shortest paths between all pairs of nodes of a small graph: the Floyd-Warshall algorithm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpu_pregel.networkx.conditions import attribute_names
from gpu_pregel.networkx.function import Function


def _weights_of_one_kind(values: Mapping[str, Any]) -> str | None:
    """Require weights on all edges or none: a missing one is 1.0, and a distance an integer if all its weights are."""
    graph, weight = values["G"], values["weight"]
    if weight is None or not hasattr(graph, "edges"):
        return None
    given = {weight in attributes for *_, attributes in graph.edges(data=True)}
    return f"some edges lack {weight!r}" if len(given) > 1 else None


_WEIGHT = attribute_names("weight")

FUNCTIONS = (
    Function("floyd_warshall_numpy", "dense_paths", conditions=(_WEIGHT,), note="with weights by name only"),
    *(
        Function(
            name,
            "dense_paths",
            conditions=(_WEIGHT, _weights_of_one_kind),
            note="with weights by name only, of all edges or of none",
        )
        for name in ("floyd_warshall", "floyd_warshall_predecessor_and_distance")
    ),
)

"""Spanning trees and forests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpu_pregel.networkx.conditions import attribute_names, plain_class, plain_data, simple, unset
from gpu_pregel.networkx.function import Function


def _not_boruvka(values: Mapping[str, Any]) -> str | None:
    return "the algorithm is Borůvka's" if values["algorithm"] in ("boruvka", "borůvka") else None


_WEIGHTS = (simple(), attribute_names("weight"))
_TREES = (*_WEIGHTS, _not_boruvka, plain_class())
_NOTE = "for simple graphs, by the algorithms of Kruskal and Prim"

FUNCTIONS = (
    Function("minimum_spanning_edges", "spanning_trees", conditions=(*_WEIGHTS, _not_boruvka, plain_data), note=_NOTE),
    Function("maximum_spanning_edges", "spanning_trees", conditions=(*_WEIGHTS, _not_boruvka, plain_data), note=_NOTE),
    Function("minimum_spanning_tree", "spanning_trees", conditions=_TREES, note=_NOTE),
    Function("maximum_spanning_tree", "spanning_trees", conditions=_TREES, note=_NOTE),
    Function(
        *("kruskal_mst_edges", "spanning_trees", "algorithms.tree.mst"),
        conditions=(*_WEIGHTS, plain_data, unset("partition")),
        note="for simple graphs, without partition",
    ),
    Function(
        *("prim_mst_edges", "spanning_trees", "algorithms.tree.mst"),
        conditions=(*_WEIGHTS, plain_data),
        note="for simple graphs",
    ),
)

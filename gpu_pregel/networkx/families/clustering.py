"""Triangles, squares and clustering."""

from __future__ import annotations

from gpu_pregel.networkx.conditions import attribute_names
from gpu_pregel.networkx.function import Function

_BY_NAME = (attribute_names("weight"),)

FUNCTIONS = (
    Function("triangles", "clustering"),
    Function("clustering", "clustering", conditions=_BY_NAME),
    Function("average_clustering", "clustering", conditions=_BY_NAME),
    Function("transitivity", "clustering"),
    Function("square_clustering", "clustering"),
    Function("generalized_degree", "clustering"),
)

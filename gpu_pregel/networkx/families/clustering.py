"""Triangles, squares and clustering."""

from __future__ import annotations

from gpu_pregel.networkx.conditions import attribute_names
from gpu_pregel.networkx.function import Function, Reads

_BY_NAME = (attribute_names("weight"),)

FUNCTIONS = (
    Function("triangles", "clustering", reads=Reads(rows="nodes"), keeps=("nodes",)),
    Function("clustering", "clustering", conditions=_BY_NAME, reads=Reads(rows="nodes"), keeps=("nodes",)),
    Function("average_clustering", "clustering", conditions=_BY_NAME, reads=Reads(rows="nodes")),
    Function("transitivity", "clustering"),
    Function("square_clustering", "clustering", reads=Reads(rows="nodes"), keeps=("nodes",)),
    Function("generalized_degree", "clustering", reads=Reads(rows="nodes"), keeps=("nodes",)),
)

"""Sums over the distances of all pairs of nodes: efficiency, the indices of chemistry, cells of nearest nodes."""

from __future__ import annotations

from gpu_pregel.networkx.conditions import attribute_names
from gpu_pregel.networkx.function import Function

_NOTE = "with weights by name only"
_WEIGHTED = (
    "closeness_vitality",
    "gutman_index",
    "hyper_wiener_index",
    "schultz_index",
    "voronoi_cells",
    "wiener_index",
)

FUNCTIONS = (
    Function("efficiency", "distance_sums"),
    Function("global_efficiency", "distance_sums"),
    Function("local_efficiency", "distance_sums"),
    *(Function(name, "distance_sums", conditions=(attribute_names("weight"),), note=_NOTE) for name in _WEIGHTED),
)

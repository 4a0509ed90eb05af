"""Sums over the distances of all pairs of nodes: efficiency, the indices of chemistry, cells of nearest nodes."""

from __future__ import annotations

from functools import partial

from gpu_pregel.networkx.conditions import attribute_names
from gpu_pregel.networkx.function import Function, Reads

_weighted = partial(
    Function, module="distance_sums", conditions=(attribute_names("weight"),), note="with weights by name only"
)
_index = partial(_weighted, reads=Reads(from_first=True, along="each"))

FUNCTIONS = (
    Function("efficiency", "distance_sums", reads=Reads(ends=("u", "v"), ends_early=True)),
    Function("global_efficiency", "distance_sums"),
    Function("local_efficiency", "distance_sums"),
    _weighted("closeness_vitality"),
    _index("gutman_index"),
    _index("hyper_wiener_index"),
    _index("schultz_index"),
    _weighted("voronoi_cells", reads=Reads(starts="center_nodes"), keeps=("center_nodes",)),
    _index("wiener_index"),
)

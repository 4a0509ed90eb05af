"""Centralities that follow from distances."""

from __future__ import annotations

from gpu_pregel.networkx.conditions import attribute_names, unset
from gpu_pregel.networkx.function import Function

_UNWEIGHTED = "without weights"

FUNCTIONS = (
    Function("closeness_centrality", "path_centrality", conditions=(attribute_names("distance"),)),
    Function("harmonic_centrality", "path_centrality", conditions=(attribute_names("distance"),)),
    Function("group_closeness_centrality", "path_centrality", conditions=(attribute_names("weight"),)),
    Function("local_reaching_centrality", "path_centrality", conditions=(unset("paths", "weight"),), note=_UNWEIGHTED),
    Function("global_reaching_centrality", "path_centrality", conditions=(unset("weight"),), note=_UNWEIGHTED),
)

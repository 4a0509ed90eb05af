"""Centralities that follow from distances."""

from __future__ import annotations

from gpu_pregel.networkx.conditions import attribute_names, unset
from gpu_pregel.networkx.function import Function, Reads

_UNWEIGHTED = "without weights"

FUNCTIONS = (
    Function(
        "closeness_centrality", "path_centrality", conditions=(attribute_names("distance"),), reads=Reads(sources="u")
    ),
    Function(
        "harmonic_centrality",
        "path_centrality",
        conditions=(attribute_names("distance"),),
        reads=Reads(sources="nbunch"),
    ),
    Function(
        "group_closeness_centrality",
        "path_centrality",
        conditions=(attribute_names("weight"),),
        reads=Reads(starts="S"),
    ),
    Function(
        "local_reaching_centrality",
        "path_centrality",
        conditions=(unset("paths", "weight"),),
        note=_UNWEIGHTED,
        reads=Reads(start="v"),
    ),
    Function("global_reaching_centrality", "path_centrality", conditions=(unset("weight"),), note=_UNWEIGHTED),
)

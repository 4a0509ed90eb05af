"""Biconnected components, articulation points, bridges and chains."""

from __future__ import annotations

from gpu_pregel.networkx.conditions import unset
from gpu_pregel.networkx.function import Function

FUNCTIONS = (
    Function("biconnected_components", "biconnected"),
    Function("biconnected_component_edges", "biconnected"),
    Function("articulation_points", "biconnected"),
    Function("is_biconnected", "biconnected"),
    Function("bridges", "biconnected", conditions=(unset("root"),), note="root is not supported."),
    Function("has_bridges", "biconnected"),
    Function("local_bridges", "biconnected", conditions=(unset("weight"),), note="weight is not supported."),
    Function("chain_decomposition", "biconnected"),
)

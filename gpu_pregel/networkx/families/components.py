"""Connected components of every kind, bridges and articulation points."""

from __future__ import annotations

from gpu_pregel.networkx.function import Function

FUNCTIONS = (
    Function("connected_components", "components"),
    Function("number_connected_components", "components"),
    Function("is_connected", "components"),
    Function("node_connected_component", "components"),
)

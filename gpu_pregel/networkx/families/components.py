"""Connected components of every kind."""

from __future__ import annotations

from gpu_pregel.networkx.conditions import attribute_names
from gpu_pregel.networkx.function import Function

FUNCTIONS = (
    Function("connected_components", "components"),
    Function("number_connected_components", "components"),
    Function("is_connected", "components"),
    Function("node_connected_component", "components"),
    Function("weakly_connected_components", "components"),
    Function("number_weakly_connected_components", "components"),
    Function("is_weakly_connected", "components"),
    Function("strongly_connected_components", "components"),
    Function("kosaraju_strongly_connected_components", "components"),
    Function("number_strongly_connected_components", "components"),
    Function("is_strongly_connected", "components"),
    Function("is_semiconnected", "components"),
    Function("condensation", "components"),
    Function("attracting_components", "components"),
    Function("number_attracting_components", "components"),
    Function("is_attracting_component", "components"),
    Function("flow_hierarchy", "components", conditions=(attribute_names("weight"),)),
)

"""Connected components of every kind."""

from __future__ import annotations

from gpu_pregel.networkx.conditions import attribute_names
from gpu_pregel.networkx.function import Function, Reads

FUNCTIONS = (
    Function("connected_components", "components", is_search=True),
    Function("number_connected_components", "components", is_search=True),
    Function("is_connected", "components", reads=Reads(from_first=True, along="each"), is_search=True),
    Function("node_connected_component", "components", reads=Reads(start="n"), keeps=("n",)),
    Function("weakly_connected_components", "components", is_search=True),
    Function("number_weakly_connected_components", "components", is_search=True),
    Function("is_weakly_connected", "components", reads=Reads(from_first=True, along="both"), is_search=True),
    Function("strongly_connected_components", "components"),
    Function("kosaraju_strongly_connected_components", "components", mixes=("source",)),
    Function("number_strongly_connected_components", "components"),
    Function("is_strongly_connected", "components", reads=Reads(from_first=True, along="each"), is_search=True),
    Function("is_semiconnected", "components", reads=Reads(from_first=True, along="both")),
    Function("condensation", "components"),
    Function("attracting_components", "components"),
    Function("number_attracting_components", "components"),
    Function("is_attracting_component", "components"),
    Function("flow_hierarchy", "components", conditions=(attribute_names("weight"),)),
)

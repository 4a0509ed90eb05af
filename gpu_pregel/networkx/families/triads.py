"""Triads and structural holes."""

from __future__ import annotations

from gpu_pregel.networkx.conditions import attribute_names, unset
from gpu_pregel.networkx.function import Function

_ALL_NODES = (attribute_names("weight"), unset("nodes"))
_NOTE = "of all nodes, with weights above 0"

FUNCTIONS = (
    Function("triadic_census", "triads", conditions=(unset("nodelist"),), note="of all nodes"),
    Function("constraint", "triads", conditions=_ALL_NODES, note=_NOTE),
    Function("effective_size", "triads", conditions=_ALL_NODES, note=_NOTE),
)

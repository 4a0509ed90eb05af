"""Triads and structural holes."""

from __future__ import annotations

from gpu_pregel.networkx.conditions import attribute_names, simple_if_given, unset
from gpu_pregel.networkx.function import Function, Reads

_BY_NAME = (attribute_names("weight"), simple_if_given("nodes"))
_POSITIVE = "with weights above 0, without nodes if there are parallel edges"

FUNCTIONS = (
    Function("triadic_census", "triads", conditions=(unset("nodelist"),), note="without nodelist"),
    Function("constraint", "triads", conditions=_BY_NAME, note=_POSITIVE, reads=Reads(rows="nodes"), keeps=("nodes",)),
    Function(
        "effective_size", "triads", conditions=_BY_NAME, note=_POSITIVE, reads=Reads(rows="nodes"), keeps=("nodes",)
    ),
)

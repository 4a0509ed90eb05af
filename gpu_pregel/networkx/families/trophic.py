"""Trophic levels of food webs."""

from __future__ import annotations

from gpu_pregel.networkx.conditions import attribute_names, simple
from gpu_pregel.networkx.function import Function

_BY_NAME = (attribute_names("weight"),)
_POSITIVE = "with weights above 0"

FUNCTIONS = (
    Function("trophic_levels", "trophic", conditions=_BY_NAME, note=_POSITIVE),
    Function("trophic_differences", "trophic", conditions=(*_BY_NAME, simple()), note=_POSITIVE),
    Function("trophic_incoherence_parameter", "trophic", conditions=(*_BY_NAME, simple()), note=_POSITIVE),
)

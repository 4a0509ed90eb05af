"""Cuts, boundaries and the volume of sets of nodes; regular graphs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpu_pregel.networkx.conditions import attribute_names, simple
from gpu_pregel.networkx.function import Function


def _plain_sets(values: Mapping[str, Any]) -> str | None:
    """Require collections, which may be read more than once."""
    plain = (list, tuple, set, frozenset, dict, range, type(None))
    return next((f"{name} is no collection" for name in ("S", "T") if not isinstance(values.get(name), plain)), None)


def _plain_data(values: Mapping[str, Any]) -> str | None:
    return None if isinstance(values["data"], bool) else "data is no bool"


_SETS = (_plain_sets, attribute_names("weight"))

FUNCTIONS = (
    Function("edge_boundary", "cuts", conditions=(simple(), _plain_data), note="for simple graphs"),
    Function("node_boundary", "cuts"),
    Function("cut_size", "cuts", conditions=_SETS),
    Function("volume", "cuts", conditions=_SETS),
    Function("normalized_cut_size", "cuts", conditions=_SETS),
    Function("conductance", "cuts", conditions=_SETS),
    Function("edge_expansion", "cuts", conditions=_SETS),
    Function("mixing_expansion", "cuts", conditions=_SETS),
    Function("node_expansion", "cuts", conditions=(_plain_sets,)),
    Function("boundary_expansion", "cuts", conditions=(_plain_sets,)),
    Function("is_regular", "cuts"),
    Function("is_k_regular", "cuts"),
)

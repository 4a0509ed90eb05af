"""Cuts, boundaries and the volume of sets of nodes; regular graphs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpu_pregel.networkx.conditions import attribute_names, collections_of_nodes, numbers, plain_data, simple
from gpu_pregel.networkx.function import Function, Reads


def _distinct(values: Mapping[str, Any]) -> str | None:
    """Require that no node is repeated: NetworkX counts such a node twice in some of the sums."""
    if values["S"] is None:
        return "S is None"
    for name in ("S", "T"):
        nodes = values.get(name) or ()
        try:
            repeated = len(set(nodes)) < len(nodes)
        except TypeError as error:
            return str(error)
        if repeated:
            return f"{name} has a node twice"
    return None


_PLAIN = (collections_of_nodes("S", "T"), _distinct)
_SETS = (*_PLAIN, attribute_names("weight"))

FUNCTIONS = (
    Function(
        "edge_boundary",
        "cuts",
        conditions=(simple(), plain_data),
        note="for simple graphs",
        reads=Reads(rows="nbunch1", share=30),
        mixes=("nbunch1", "nbunch2"),
    ),
    Function("node_boundary", "cuts", reads=Reads(rows="nbunch1", share=30), mixes=("nbunch1", "nbunch2")),
    Function("cut_size", "cuts", conditions=_SETS, reads=Reads(rows="S", share=50)),
    Function("volume", "cuts", conditions=_SETS, reads=Reads(rows="S", share=6)),
    Function("normalized_cut_size", "cuts", conditions=_SETS),
    Function("conductance", "cuts", conditions=_SETS),
    Function("edge_expansion", "cuts", conditions=_SETS),
    Function("mixing_expansion", "cuts", conditions=_SETS),
    Function("node_expansion", "cuts", conditions=_PLAIN, reads=Reads(rows="S", share=15)),
    Function("boundary_expansion", "cuts", conditions=_PLAIN, reads=Reads(rows="S", share=15)),
    Function("is_regular", "cuts"),
    Function("is_k_regular", "cuts", conditions=(numbers("k"),)),
)

"""Pairs of degrees and attributes at the ends of edges, and the correlation of both ends."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any

from gpu_pregel.networkx.conditions import attribute_names
from gpu_pregel.networkx.function import Function, Reads


def _indices(values: Mapping[str, Any]) -> str | None:
    """Require integers as indices of a matrix: True and False choose all rows or none."""
    mapping = values["mapping"]
    plain = mapping is None or all(isinstance(i, Integral) and not isinstance(i, bool) for i in mapping.values())
    return None if plain else "mapping has values that are no integers"


_BY_NAME = (attribute_names("weight"),)

FUNCTIONS = (
    Function("node_degree_xy", "mixing", conditions=_BY_NAME, reads=Reads(rows="nodes", share=200)),
    Function("node_attribute_xy", "mixing"),
    Function("degree_mixing_dict", "mixing", conditions=_BY_NAME),
    Function("degree_mixing_matrix", "mixing", conditions=(*_BY_NAME, _indices)),
    Function("attribute_mixing_dict", "mixing"),
    Function("attribute_mixing_matrix", "mixing", conditions=(_indices,)),
    Function("degree_assortativity_coefficient", "mixing", conditions=_BY_NAME, reads=Reads(rows="nodes", share=30)),
    Function(
        "degree_pearson_correlation_coefficient", "mixing", conditions=_BY_NAME, reads=Reads(rows="nodes", share=30)
    ),
    Function("attribute_assortativity_coefficient", "mixing"),
    Function("numeric_assortativity_coefficient", "mixing"),
)

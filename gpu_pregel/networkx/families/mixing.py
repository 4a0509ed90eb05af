"""Pairs of degrees and attributes at the ends of edges, and the correlation of both ends."""

from __future__ import annotations

from gpu_pregel.networkx.conditions import attribute_names
from gpu_pregel.networkx.function import Function

_BY_NAME = (attribute_names("weight"),)

FUNCTIONS = (
    Function("node_degree_xy", "mixing", conditions=_BY_NAME),
    Function("node_attribute_xy", "mixing"),
    Function("degree_mixing_dict", "mixing", conditions=_BY_NAME),
    Function("degree_mixing_matrix", "mixing", conditions=_BY_NAME),
    Function("attribute_mixing_dict", "mixing"),
    Function("attribute_mixing_matrix", "mixing"),
    Function("degree_assortativity_coefficient", "mixing", conditions=_BY_NAME),
    Function("degree_pearson_correlation_coefficient", "mixing", conditions=_BY_NAME),
    Function("attribute_assortativity_coefficient", "mixing"),
    Function("numeric_assortativity_coefficient", "mixing"),
)

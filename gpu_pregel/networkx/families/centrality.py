"""Centralities that follow from degrees, neighbours and eigenvectors."""

from __future__ import annotations

from gpu_pregel.networkx.conditions import attribute_names, integers, lists, plain_numbers, undirected
from gpu_pregel.networkx.function import Function

_BY_NAME = (attribute_names("weight"),)

FUNCTIONS = (
    Function("degree_centrality", "centrality"),
    Function("in_degree_centrality", "centrality"),
    Function("out_degree_centrality", "centrality"),
    Function("eigenvector_centrality", "centrality", conditions=_BY_NAME),
    Function("eigenvector_centrality_numpy", "centrality", conditions=_BY_NAME),
    Function("katz_centrality", "centrality", conditions=(*_BY_NAME, plain_numbers("alpha"))),
    Function(
        "laplacian_centrality",
        "centrality",
        conditions=(*_BY_NAME, undirected(), lists("nodelist")),
        note="for undirected graphs",
    ),
    Function("voterank", "centrality", conditions=(integers("number_of_nodes"),)),
)

"""Centralities by the number of shortest paths through nodes and edges."""

from __future__ import annotations

from gpu_pregel.networkx.conditions import attribute_names, collections_of_nodes, float_or_none, simple, sortable_nodes
from gpu_pregel.networkx.function import Function, Reads

_BY_NAME = (attribute_names("weight"),)
_SUBSETS = (*_BY_NAME, collections_of_nodes("sources", "targets"))
_POSITIVE, _SIMPLE = "with weights above 0", "without parallel edges, with weights above 0"

FUNCTIONS = (
    Function("betweenness_centrality", "betweenness", conditions=_BY_NAME, note=_POSITIVE, reads=Reads(samples="k")),
    Function(
        "edge_betweenness_centrality",
        "betweenness",
        conditions=(*_BY_NAME, simple()),
        note=_SIMPLE,
        reads=Reads(samples="k"),
    ),
    Function(
        "betweenness_centrality_subset",
        "betweenness",
        conditions=_SUBSETS,
        note=_POSITIVE,
        reads=Reads(sources="sources"),
    ),
    Function(
        "edge_betweenness_centrality_subset",
        "betweenness",
        conditions=(*_SUBSETS, simple()),
        note=_SIMPLE,
        reads=Reads(sources="sources"),
    ),
    Function("percolation_centrality", "betweenness", conditions=_BY_NAME, note=_POSITIVE),
    Function(
        "newman_betweenness_centrality",
        "betweenness",
        public="load_centrality",
        conditions=(*_BY_NAME, float_or_none("cutoff"), sortable_nodes()),
        note=_POSITIVE,
    ),
)

"""Functions of bipartite graphs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpu_pregel.networkx.conditions import collections_of_nodes, simple, undirected
from gpu_pregel.networkx.function import Function, Reads


def _without_loops(values: Mapping[str, Any]) -> str | None:
    graph = values["G"]
    if hasattr(graph, "topology"):
        loops = bool((graph.topology.sources == graph.topology.neighbors).any())
    else:
        loops = any(node in row for node, row in graph._adj.items())
    return "G has self-loops" if loops else None


def _listed(values: Mapping[str, Any]) -> str | None:
    """Require collections, which may be read more than once."""
    if values.get("multigraph"):
        return "the projection is a multigraph"
    return None if isinstance(values["nodes"], (list, tuple, set, frozenset, dict, range)) else "nodes is no collection"


FUNCTIONS = (
    Function("color", "bipartite", "bipartite", reads=Reads(ends_early=True)),
    Function("is_bipartite", "bipartite", reads=Reads(ends_early=True)),
    Function("sets", "bipartite", "bipartite"),
    Function("is_bipartite_node_set", "bipartite", "bipartite"),
    Function("bipartite_degree_centrality", "bipartite", "bipartite", "degree_centrality"),
    Function(
        *("bipartite_betweenness_centrality", "bipartite", "bipartite", "betweenness_centrality"),
        conditions=(simple(),),
        note="for simple graphs",
    ),
    Function("bipartite_closeness_centrality", "bipartite", "bipartite", "closeness_centrality"),
    Function(
        *("latapy_clustering", "bipartite", "bipartite"), conditions=(undirected(),), note="for undirected graphs"
    ),
    Function(
        *("bipartite_average_clustering", "bipartite", "bipartite", "average_clustering"),
        conditions=(undirected(),),
        note="for undirected graphs",
    ),
    Function(
        *("robins_alexander_clustering", "bipartite", "bipartite"),
        conditions=(simple(), undirected(), _without_loops),
        note="for simple undirected graphs without self-loops",
    ),
    Function("hopcroft_karp_matching", "bipartite", "bipartite", mixes=("top_nodes",)),
    Function("projected_graph", "projections", "bipartite", conditions=(_listed,), note="without multigraph"),
    Function("weighted_projected_graph", "projections", "bipartite", conditions=(_listed,)),
    Function(
        *("node_redundancy", "projections", "bipartite"),
        conditions=(undirected(), collections_of_nodes("nodes")),
        note="for undirected graphs",
    ),
)

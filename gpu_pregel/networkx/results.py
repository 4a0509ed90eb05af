"""NetworkX graphs as results: their dicts are built directly."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import networkx as nx

from gpu_pregel.networkx.graph import BackendGraph


def with_nodes_of(graph: BackendGraph) -> Any:
    """Return a simple NetworkX graph with the same nodes and attributes, without edges."""
    result = nx.DiGraph() if graph.is_directed() else nx.Graph()
    result.graph.update(graph.graph)
    nodes = graph.topology.nodes
    result._node.update(zip(nodes, map(dict, graph.node_data()), strict=True))
    result._adj.update((node, {}) for node in nodes)
    if graph.is_directed():
        result._pred.update((node, {}) for node in nodes)
    return result


def add_new_edges(result: Any, edges: Iterable[tuple[Any, Any, dict[Any, Any]]]) -> None:
    """Add edges that an undirected graph does not have yet, with copies of their attributes."""
    adjacency = result._adj
    for u, v, data in edges:
        adjacency[u][v] = adjacency[v][u] = dict(data)

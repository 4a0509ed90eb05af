"""NetworkX graphs as results: their dicts are built directly."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import networkx as nx
import numpy as np

from gpu_pregel.host.graphs.networkx_adjacency import Adjacency
from gpu_pregel.kernels.networkx.rows_cpu import append_edges
from gpu_pregel.networkx.graph import BackendGraph
from gpu_pregel.networkx.topology import Topology

Array = np.ndarray[Any, Any]


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


def graph_of_edges(n: int, sources: Array, targets: Array, *, directed: bool = False) -> Any:
    """Return the NetworkX graph of the nodes from 0 to n - 1 to which these edges are added, all of them distinct.

    It is known in converted form, too.
    """
    result = nx.DiGraph() if directed else nx.Graph()
    nodes = list(range(n))
    result._node.update((node, {}) for node in nodes)
    rows: list[dict[Any, Any]] = [{} for _ in nodes]
    columns: list[dict[Any, Any]] = [{} for _ in nodes] if directed else rows
    # Nodes are taken from the list, so that each is one object.
    ends = (map(nodes.__getitem__, column.tolist()) for column in (sources, targets))
    for u, v in zip(*ends, strict=True):
        rows[u][v] = columns[v][u] = {}
    result._adj.update(zip(nodes, rows, strict=True))
    if directed:
        result._pred.update(zip(nodes, columns, strict=True))
    _remember(result, nodes, sources.astype(np.uint32), targets.astype(np.uint32))
    return result


def _remember(result: Any, nodes: list[int], sources: Array, targets: Array) -> None:
    """Put the converted form into the cache of a graph."""
    n, both = len(nodes), not result.is_directed()
    degrees = np.bincount(sources, minlength=n)
    if both:
        degrees += np.bincount(targets, minlength=n)
    indptr = np.zeros(n + 1, np.int64)
    np.cumsum(degrees, out=indptr[1:])
    neighbors, values = np.empty(indptr[-1], np.uint32), np.empty(indptr[-1])
    append_edges(sources, targets, np.ones(len(sources)), both, indptr[:-1].copy(), neighbors, values)
    adjacency = Adjacency(nodes, indptr, neighbors)
    topology = Topology(adjacency, directed=not both, multigraph=False, source=result)
    converted = BackendGraph._converted(topology, columns={}, edge_data=None, node_data=None, attributes={})
    # Under the key of a conversion without attributes: those may be set in the dicts at any time.
    result.__networkx_cache__["backends"] = {"gpu_pregel": {(False, False): converted}}

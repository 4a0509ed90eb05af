"""Builds the results of functions: graphs of NetworkX, and sets and pairs of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any

import networkx as nx
import numpy as np

from gpu_pregel.host.graphs.networkx_adjacency import Adjacency
from gpu_pregel.kernels.networkx.rows_cpu import append_edges
from gpu_pregel.networkx.graph import Array, BackendGraph
from gpu_pregel.networkx.topology import Topology


def pairs(graph: BackendGraph, sources: Array, targets: Array) -> Iterator[tuple[Any, Any]]:
    """Return an iterator of pairs of nodes."""
    return zip(graph.nodes_at(sources), graph.nodes_at(targets), strict=True)


def sets(nodes: Sequence[Any], ends: Array) -> Iterator[set[Any]]:
    """Yield the sets of consecutive nodes, of which set ``i`` ends at ``ends[i]``."""
    begin = 0
    for end in ends.tolist():
        # Most sets of many are of one node.
        yield {nodes[begin]} if end - begin == 1 else set(nodes[begin:end])
        begin = end


def digraph(
    nodes: Sequence[Any],
    edges: Iterator[tuple[Any, Any]],
    node_data: Sequence[dict[Any, Any]] | None = None,
    **attributes: Any,
) -> nx.DiGraph[Any]:
    """Return a directed graph of NetworkX with these nodes and edges between them, in this order.

    The dicts are written directly, since ``add_edges_from`` takes several times as long.
    """
    graph: nx.DiGraph[Any] = nx.DiGraph(**attributes)
    successors: dict[Any, dict[Any, Any]] = {node: {} for node in nodes}
    predecessors: dict[Any, dict[Any, Any]] = {node: {} for node in nodes}
    for u, v in edges:
        successors[u][v] = predecessors[v][u] = {}
    data = [{} for _ in nodes] if node_data is None else node_data
    graph._node = dict(zip(nodes, data, strict=True))
    graph._adj = successors
    graph._pred = predecessors
    return graph


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


def copied_subgraph(
    graph: BackendGraph, nodes: Iterable[Any] | None = None, *, kept: Array | None = None, present: Array | None = None
) -> nx.Graph[Any]:
    """Return what ``graph.subgraph(nodes).copy()`` does of a graph without parallel edges; its attributes are kept.

    Parameters
    ----------
    nodes : iterable of nodes, optional
        Default: all; the copy is in the order in which NetworkX's views iterate.
    kept : bool[m], optional
        The stored edges that the copy has, both of each undirected edge. Default: all among the nodes.
    present : bool[n], optional
        The nodes that the copy has, in the order of the graph, instead of ``nodes``.
    """
    vertices = _iteration_order(graph, nodes) if present is None else np.flatnonzero(present)
    topology = graph.topology
    ranks = np.full(len(graph), -1, np.int64)
    ranks[vertices] = np.arange(len(vertices))
    sources, targets = ranks[topology.sources], ranks[topology.neighbors]
    chosen = (sources >= 0) & (targets >= 0)
    if kept is not None:
        chosen &= kept
    edges = np.flatnonzero(chosen)
    edges = edges[np.argsort(sources[edges], kind="stable")]
    directed = topology.directed
    result: Any = nx.DiGraph() if directed else nx.Graph()
    result.graph.update(graph.graph)
    names, data = graph.nodes_at(vertices), graph.node_data()
    result._node.update((name, data[v].copy()) for name, v in zip(names, vertices.tolist(), strict=True))
    copies = _copies(graph, edges, sources, targets)
    if directed:
        _fill(result._succ, names, sources[edges], targets[edges], copies)
        order = np.argsort(targets[edges], kind="stable")
        _fill(result._pred, names, targets[edges][order], sources[edges][order], [copies[e] for e in order.tolist()])
    else:
        order = order_of_insertion(sources[edges], targets[edges])
        _fill(result._adj, names, sources[edges][order], targets[edges][order], [copies[e] for e in order.tolist()])
    return result


def _iteration_order(graph: BackendGraph, nodes: Iterable[Any] | None) -> Array:
    if nodes is None:
        return np.arange(len(graph))
    numbers = graph.topology.numbers
    chosen = {node for node in nodes if node in numbers}
    vertices = np.fromiter((numbers[node] for node in chosen), np.int64, len(chosen))
    # A view of less than half of the nodes is iterated in the order of their set.
    return vertices if 2 * len(vertices) < graph.topology.base_size else np.sort(vertices)


def _copies(graph: BackendGraph, edges: Array, sources: Array, targets: Array) -> list[dict[Any, Any]]:
    """Return a copy of the attributes of each edge; the two entries of an undirected edge share it."""
    data = graph.edge_data()
    if graph.is_directed():
        return [data[e].copy() for e in edges.tolist()]
    first, second = sources[edges], targets[edges]
    keys = np.minimum(first, second) * len(graph) + np.maximum(first, second)
    _, places, members = np.unique(keys, return_index=True, return_inverse=True)
    copies = [data[e].copy() for e in edges[places].tolist()]
    return [copies[i] for i in members.tolist()]


def order_of_insertion(sources: Array, targets: Array) -> Array:
    """Return the order of rows filled edge by edge: earlier nodes first, then the others as they were."""
    earlier = targets < sources
    keys = np.where(earlier, targets, np.iinfo(np.int64).max)
    return np.lexsort((np.arange(len(sources)), keys, sources))


def _fill(
    adjacency: dict[Any, Any], names: list[Any], sources: Array, targets: Array, data: list[dict[Any, Any]]
) -> None:
    """Add a row for each node; edges are sorted by source."""
    adjacency.update(zip(names, map(dict, repeat((), len(names))), strict=True))
    neighbors = [names[v] for v in targets.tolist()]
    begins, firsts = np.unique(sources, return_index=True)
    ends = np.append(firsts, len(neighbors))[1:]
    for u, begin, end in zip(begins.tolist(), firsts.tolist(), ends.tolist(), strict=True):
        adjacency[names[u]].update(zip(neighbors[begin:end], data[begin:end], strict=True))

"""NetworkX graphs that functions return, built from the arrays and the attributes of a graph of this backend."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np

from gpu_pregel.networkx.graph import BackendGraph

if TYPE_CHECKING:
    import networkx

Array = np.ndarray[Any, Any]


def copied_subgraph(
    graph: BackendGraph, nodes: Iterable[Any] | None = None, *, kept: Array | None = None, present: Array | None = None
) -> networkx.Graph[Any]:
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

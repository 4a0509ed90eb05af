"""Projections of bipartite graphs onto one side, and the redundancy of nodes in them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import networkx as nx
import numpy as np

from gpu_pregel.kernels.networkx.bipartite_cpu import count_paths, count_redundant
from gpu_pregel.networkx.graph import Array, BackendGraph

_VERTICES_PER_CALL = 1 << 8


def projected_graph(B: BackendGraph, nodes: Collection[Any], multigraph: bool = False) -> Any:
    """Return the graph in which nodes are adjacent that have a common neighbour."""
    if B.is_multigraph():
        raise nx.NetworkXError("not defined for multigraphs")
    result = _onto(B, nodes)
    paths = _Paths(B)
    for node in nodes:
        ends, _ = paths.from_node(paths.row(node))
        # NetworkX adds edges in the order of this set.
        for end in {end for end in ends if end != node}:
            _add_edge(result, node, end, {})
    return result


def weighted_projected_graph(B: BackendGraph, nodes: Collection[Any], ratio: bool = False) -> Any:
    """Return the projection with the number or the share of common neighbours as weights."""
    result = _onto(B, nodes)
    others = len(B) - len(nodes)
    if others < 1:
        raise nx.NetworkXAlgorithmError(
            f"the size of the nodes to project onto ({len(nodes)}) is >= the graph size ({len(B)}).\n"
            "They are either not a valid bipartite partition or contain duplicates"
        )
    paths = _Paths(B)
    numbers = B.topology.numbers
    for node in nodes:
        middles = [numbers[middle] for middle in set(B.nodes_at(paths.row(node)))]
        ends, counts = paths.from_node(np.array(middles, np.uint32))
        weights = dict(zip(ends, counts, strict=True))
        for end in set(ends) - {node}:
            weight = weights[end] / others if ratio else weights[end]
            _add_edge(result, node, end, {"weight": weight})
    return result


def node_redundancy(G: BackendGraph, nodes: Iterable[Any] | None = None) -> dict[Any, float]:
    """Return the share of the pairs of neighbours of each node that have another neighbour in common."""
    listed = G.topology.nodes if nodes is None else list(nodes)
    numbers, (indptr, neighbors) = G.topology.numbers, G.topology.distinct
    vertices = np.array([numbers[node] for node in listed], np.int64)
    degrees = np.diff(indptr)[vertices]
    if (degrees < 2).any():
        raise nx.NetworkXError("Cannot compute redundancy coefficient for a node that has fewer than two neighbors.")
    pairs, inside, last = np.empty(len(vertices), np.int64), np.full(len(G), -1), np.full(len(G), -1)
    for begin in range(0, len(vertices), _VERTICES_PER_CALL):
        part = slice(begin, begin + _VERTICES_PER_CALL)
        count_redundant(indptr, neighbors, vertices[part], inside, last, pairs[part])
    return dict(zip(listed, (pairs / (degrees * (degrees - 1))).tolist(), strict=True))


class _Paths:
    """Counts the paths of two edges from a node."""

    def __init__(self, graph: BackendGraph) -> None:
        self._graph = graph
        self._counts = np.zeros(len(graph), np.int64)
        self._ends = np.empty(len(graph), np.uint32)

    def row(self, node: Any) -> Array:
        """Return the neighbours of a node."""
        topology = self._graph.topology
        vertex = topology.numbers[node]
        neighbors: Array = topology.neighbors[topology.indptr[vertex] : topology.indptr[vertex + 1]]
        return neighbors

    def from_node(self, middles: Array) -> tuple[list[Any], list[int]]:
        """Return the ends of the paths over these vertices, as they are found, and how many lead to each."""
        topology = self._graph.topology
        ends = self._ends[: count_paths(topology.indptr, topology.neighbors, middles, self._counts, self._ends)]
        counts = self._counts[ends].tolist()
        self._counts[ends] = 0
        return self._graph.nodes_at(ends), counts


def _onto(graph: BackendGraph, nodes: Iterable[Any]) -> Any:
    """Return a graph of these nodes with their attributes, which NetworkX does not pass on for all projections."""
    result = nx.DiGraph() if graph.is_directed() else nx.Graph()
    source, topology = graph.topology.source, graph.topology
    result.graph.update(graph.graph if source is None else source.graph)
    attributes = graph.node_data() if source is None else list(source._node.values())
    result.add_nodes_from((node, attributes[topology.numbers[node]]) for node in nodes)
    return result


def _add_edge(result: Any, u: Any, v: Any, data: dict[Any, Any]) -> None:
    if v not in result._adj:
        result.add_node(v)
    row = result._adj[u]
    if v in row:
        row[v].update(data)
    else:
        row[v] = (result._pred if result.is_directed() else result._adj)[v][u] = data

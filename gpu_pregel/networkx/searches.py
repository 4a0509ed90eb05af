"""Searches in the order of NetworkX, for functions of several families."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

import networkx as nx
import numpy as np

from gpu_pregel.kernels.networkx import depth_first_cpu, searches_cpu
from gpu_pregel.networkx.graph import Array, BackendGraph

FORWARD, NONTREE, REVERSE, LIMITED = (
    1 << kind
    for kind in (depth_first_cpu.FORWARD, depth_first_cpu.NONTREE, depth_first_cpu.REVERSE, depth_first_cpu.LIMITED)
)
"""Bits of the events that a depth-first search reports."""


class BreadthFirst(NamedTuple):
    """What a breadth-first search finds.

    Attributes
    ----------
    order : uint32[found]
        The vertices as they are found, the sources first.
    depths : int64[n]
        The number of steps to each vertex; -1 if it is not found.
    parents : uint32[n]
        The vertex from which each is found; undefined for the sources and for vertices that are not found.
    """

    order: Array
    depths: Array
    parents: Array


class Events(NamedTuple):
    """What a depth-first search reports: edges, and the kind of each."""

    sources: Array
    targets: Array
    kinds: Array


def vertex_of(graph: BackendGraph, node: Any) -> int:
    """Return the vertex of a node whose neighbours are asked for; NetworkX raises this error if there is none."""
    try:
        return graph.topology.numbers[node]
    except KeyError:
        kind = "digraph" if graph.is_directed() else "graph"
        raise nx.NetworkXError(f"The node {node} is not in the {kind}.") from None


def starts_of(graph: BackendGraph, source: Any) -> Array:
    """Return the vertices of one node or of those of several that are in the graph; all vertices if it is None."""
    if source is None:
        return np.arange(len(graph), dtype=np.uint32)
    if source in graph:
        return np.array([graph.topology.numbers[source]], np.uint32)
    if not isinstance(source, Iterable):
        raise nx.NetworkXError(f"Node {source} is not in the graph.")
    vertices: dict[int, None] = {}
    for node in source:
        if not isinstance(node, Hashable):
            raise nx.NetworkXError(f"Node {node} in sequence nbunch is not a valid node.")
        if node in graph:
            vertices[graph.topology.numbers[node]] = None
    return np.array(list(vertices), np.uint32)


def breadth_first(
    graph: BackendGraph, sources: Iterable[int], depth_limit: float | None = None, *, reverse: bool = False
) -> BreadthFirst:
    """Search from distinct vertices, along in-edges if ``reverse``."""
    topology = graph.topology
    indptr, neighbors = topology.predecessors if reverse else (topology.indptr, topology.neighbors)
    return search_rows(indptr, neighbors, np.fromiter(sources, np.uint32), depth_limit)


def limit_of(cutoff: float | None) -> float:
    """Return how far a search may go, as kernels take it."""
    return np.inf if cutoff is None else float(cutoff)


def search_rows(indptr: Array, neighbors: Array, starts: Array, depth_limit: float | None) -> BreadthFirst:
    """Search from distinct vertices along edges; none is followed from vertices ``depth_limit`` steps away."""
    n = len(indptr) - 1
    order, depths, parents = np.empty(n, np.uint32), np.full(n, -1, np.int64), np.empty(n, np.uint32)
    order[: len(starts)] = starts
    depths[starts] = 0
    count = searches_cpu.breadth_first(indptr, neighbors, limit_of(depth_limit), len(starts), order, depths, parents)
    return BreadthFirst(order[:count], depths, parents)


def depth_first(
    graph: BackendGraph, start: int | None, kept: int, depth_limit: float | None = None, *, reverse: bool = False
) -> Events:
    """Search from one vertex or, in the order of the graph, from all; ``kept`` has the bits of the events to report."""
    topology = graph.topology
    indptr, neighbors = topology.distinct_predecessors if reverse else topology.distinct
    n = topology.n
    starts = np.arange(n, dtype=np.uint32) if start is None else np.array([start], np.uint32)
    # Every vertex is found and left at most once.
    size = n * (kept & ~NONTREE).bit_count() + (len(neighbors) if kept & NONTREE else 0)
    sources, targets = np.empty((2, size), np.uint32)
    kinds = np.empty(size, np.uint8)
    limit = limit_of(depth_limit)
    count = depth_first_cpu.depth_first(indptr, neighbors, starts, limit, kept, sources, targets, kinds)
    return Events(sources[:count], targets[:count], kinds[:count])

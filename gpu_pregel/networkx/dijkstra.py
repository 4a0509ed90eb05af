"""Dijkstra's algorithm in NetworkX's order, and its results as NetworkX returns them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import networkx as nx
import numpy as np

from gpu_pregel.kernels.library.bits_cpu import WORD_BITS
from gpu_pregel.kernels.networkx.dijkstra_cpu import (
    CONTRADICTION,
    UNCONNECTED,
    UNSEEN,
    bucket_dijkstra,
    collect_weighted_predecessors,
    dijkstra,
    dijkstra_from_each,
    mark_floats,
    meet_weighted,
)
from gpu_pregel.networkx.graph import Array, BackendGraph
from gpu_pregel.networkx.hop_searches import chain, meeting_path, node_lists, paths_by_place, tree_paths
from gpu_pregel.networkx.rows import WeightedRows, mixed_numbers, weighted_rows
from gpu_pregel.networkx.searches import limit_of

NONE = -1
"""No target."""


class Dijkstra:
    """Searches on one graph, which reuse their arrays; the latest one's results are read from them."""

    def __init__(self, graph: BackendGraph, edges: WeightedRows, cutoff: float | None = None) -> None:
        n = len(graph)
        self._graph, self._edges = graph, edges
        self._cutoff = limit_of(cutoff)
        self._states = np.zeros(n, np.uint8)
        self._distances, self._parents = np.empty(n), np.empty(n, np.int64)
        self._order, self._places = np.empty(n, np.uint32), np.empty(n, np.int64)
        self._floats, self._members = np.empty(n, np.bool_), np.empty(len(edges.neighbors), np.uint32)
        self.order, self._stopped = self._order[:0], False
        """The vertices that the last search has settled, and whether it has found others, too."""
        self._reserve(1)

    def _reserve(self, sources: int) -> None:
        """Make room in the heap for all edges and ``sources`` sources."""
        capacity = len(self._edges.neighbors) + sources
        self._heap = np.empty(capacity), np.empty(capacity, np.int64), np.empty(capacity, np.uint32)

    def run(self, sources: Sequence[int], target: int = NONE) -> None:
        """Search from vertices until a target is reached, or everywhere.

        Raises
        ------
        ValueError
            Weights are negative, and NetworkX's search contradicts itself.
        """
        if len(sources) > 1:
            if len(self._edges.weights) and self._edges.weights.min() < 0:
                raise NotImplementedError("an edge's weight is negative in a search from several nodes")
            self._reserve(len(sources))
        if self._stopped:
            self._states[:] = UNSEEN
        else:
            self._states[self.order] = UNSEEN
        self._stopped = True
        arrays = (self._states, self._distances, self._parents, self._order)
        edges = (self._edges.indptr, self._edges.neighbors, self._edges.weights)
        numbers = np.array(sources, np.int64)
        call = (*edges, self._cutoff, target, numbers)
        if buckets := self._edges.buckets:
            rings, filled = np.empty((2, buckets), np.int64), np.empty(buckets // WORD_BITS, np.uint64)
            count = bucket_dijkstra(*call, rings, filled, *self._heap[1:], *arrays)
        else:
            count = dijkstra(*call, *self._heap, *arrays)
        if count == CONTRADICTION:
            raise ValueError("Contradictory paths found:", "negative weights?")
        self._sources, self.order, self._stopped = numbers, self._order[:count], target != NONE

    def values(self) -> list[Any]:
        """Return the distances by distance; those of sources are the integer 0."""
        values = self._edges.numbers(self._distances[self.order])
        if self._edges.floats is not None:
            is_float = self._have_floats()[self.order].tolist()
            values = mixed_numbers(values, is_float)
        values[: len(self._sources)] = [0] * len(self._sources)
        return values

    def lengths(self) -> dict[Any, Any]:
        """Return the distance of each node by distance."""
        if self._edges.floats is not None:
            return dict(zip(self._graph.nodes_at(self.order), self.values(), strict=True))
        return self._edges.lengths(self._graph, self.order, self._distances, len(self._sources))

    def paths(self) -> dict[Any, list[Any]]:
        """Return a path to each node."""
        return tree_paths(self._graph, self.order, self._parents, len(self._sources))

    def reached(self, vertex: int) -> bool:
        """Return whether the search settled a vertex, which was its target."""
        return vertex != NONE and len(self.order) > 0 and int(self.order[-1]) == vertex

    def length_to(self, vertex: int) -> Any:
        """Return the distance of a vertex that is not a source."""
        length = self._distances[vertex]
        if self._edges.floats is not None and not self._have_floats()[vertex]:
            return int(length)
        return self._edges.number(length)

    def _have_floats(self) -> Array:
        """Return whether a float is among the mixed weights of the path to each settled vertex; bool[n]."""
        edges = self._edges
        assert edges.floats is not None
        mark_floats(edges.indptr, edges.neighbors, edges.floats, self.order, self._parents, self._floats)
        return self._floats

    def path_to(self, vertex: int) -> list[Any]:
        """Return the path to a vertex."""
        return self._graph.nodes_at(np.array(chain(self._parents, vertex)[::-1]))

    def roots(self) -> Array:
        """Return the source nearest to each vertex that is reached; int64[n]."""
        roots = np.arange(len(self._parents))
        children = self.order[self._parents[self.order] >= 0]
        roots[children] = self._parents[children]
        for _ in range(len(roots).bit_length()):
            roots = roots[roots]
        return roots

    def predecessors(self) -> dict[Any, list[Any]]:
        """Return all predecessors of each node on shortest paths from the only source."""
        edges = (self._edges.indptr, self._edges.neighbors, self._edges.weights)
        found, starts = np.empty(len(self.order), np.uint32), np.zeros(len(self.order) + 1, np.int64)
        known = (self.order, self._states, self._distances)
        collect_weighted_predecessors(*edges, self._cutoff, *known, found, self._places, starts, self._members)
        return node_lists(self._graph, found, starts, self._members)


def lengths_from(graph: BackendGraph, edges: WeightedRows, source: int, cutoff: float | None = None) -> dict[Any, Any]:
    """Return the distances of one search."""
    search = Dijkstra(graph, edges, cutoff)
    search.run([source])
    return search.lengths()


def paths_from(
    graph: BackendGraph, edges: WeightedRows, sources: Sequence[int], cutoff: float | None = None
) -> dict[Any, list[Any]]:
    """Return the paths of one search."""
    search = Dijkstra(graph, edges, cutoff)
    search.run(sources)
    return search.paths()


def weighted_path_between(
    graph: BackendGraph, source: Any, target: Any, weight: Any, *, mixed: bool = False
) -> tuple[Any, list[Any]]:
    """Return the length and the nodes of the path that NetworkX's search from both ends finds."""
    for node, role in ((source, "Source"), (target, "Target")):
        if node not in graph:
            raise nx.NodeNotFound(f"{role} {node} is not in G")
    if source == target:
        return 0, [source]
    edges, in_edges = (weighted_rows(graph, weight, reverse=reverse, mixed=mixed) for reverse in (False, True))
    shape = (2, len(graph))
    states, distances, parents = np.zeros(shape, np.uint8), np.empty(shape), np.empty(shape, np.int64)
    numbers = graph.topology.numbers
    ends = (numbers[source], numbers[target])
    meeting, length = meet_weighted(tuple(edges[:3]), tuple(in_edges[:3]), *ends, states, distances, parents)
    if meeting == CONTRADICTION:
        raise ValueError("Contradictory paths found: negative weights?")
    if meeting == UNCONNECTED:
        raise nx.NetworkXNoPath(f"No path between {source} and {target}.")
    vertices = [*reversed(chain(parents[0], meeting)), *chain(parents[1], meeting)[1:]]
    return edges.number(length), meeting_path(graph, vertices, meeting)


_BATCH = 1 << 14
"""Searches are made until they have settled this many vertices in all."""


class Found(NamedTuple):
    """What a search from one node has found."""

    graph: BackendGraph
    vertices: Array
    """Those that are settled, in that order; the source is the first."""
    distances: Array
    """Their distances, int64 or float64."""
    edges: WeightedRows
    is_float: list[bool] | None
    """Which distances are not integers; None if all are of one type."""
    nodes: Sequence[Any]
    places: list[int]
    """The place among the nodes of the one before each on its path; 0 for the source."""

    def lengths(self) -> dict[Any, Any]:
        """Return the distance of each node by distance; that of the source is the integer 0."""
        if self.is_float is not None:
            values = mixed_numbers(self.distances.tolist(), self.is_float)
            found = dict(zip(self.nodes, values, strict=True))
        elif self.edges.scalar is not None:
            found = dict(zip(self.nodes, self.edges.numbers(self.distances), strict=True))
        else:
            found = self.graph.values_at(self.vertices, self.distances)
        found[self.nodes[0]] = 0
        return found

    def paths(self) -> dict[Any, list[Any]]:
        """Return a path to each node."""
        return paths_by_place(self.nodes, self.places[1:])


def searches_from_each(
    graph: BackendGraph, edges: WeightedRows, cutoff: float | None = None
) -> Iterator[tuple[Any, Found]]:
    """Yield each node, and what a search from it finds.

    Raises
    ------
    ValueError
        Weights are negative, and NetworkX's search from the next node contradicts itself.
    """
    n, m = len(graph), len(edges.neighbors)
    order, lengths = np.empty(n + _BATCH, np.uint32), np.empty(n + _BATCH)
    places, ends = np.empty(n + _BATCH, np.int64), np.empty(n, np.int64)
    floats = np.empty(0, np.bool_) if edges.floats is None else edges.floats
    kinds = np.empty(len(order) if len(floats) else 0, np.bool_)
    heap = np.empty(0 if edges.buckets else m + 1), np.empty(m + 1, np.int64), np.empty(m + 1, np.uint32)
    rings = np.empty((2, edges.buckets), np.int64), np.empty(edges.buckets // WORD_BITS, np.uint64)
    arrays = np.zeros(n, np.uint8), np.empty(n), np.empty(n, np.int64), np.empty(n, np.bool_), np.empty(n, np.int64)
    limit, first = limit_of(cutoff), 0
    while first < n:
        call = (*edges[:3], floats, limit, first, _BATCH, *heap, *rings, *arrays)
        count = dijkstra_from_each(*call, order, lengths, places, kinds, ends)
        if count == 0:
            raise ValueError("Contradictory paths found:", "negative weights?")
        bounds = [0, *ends[:count].tolist()]
        size = bounds[-1]
        nodes, parents = graph.nodes_at(order[:size]), places[:size].tolist()
        values = lengths[:size].astype(np.int64) if edges.integers else lengths[:size]
        is_float = kinds[:size].tolist() if len(floats) else None
        for begin, end in pairwise(bounds):
            part = slice(begin, end)
            kept = None if is_float is None else is_float[part]
            yield nodes[begin], Found(graph, order[part], values[part], edges, kept, nodes[part], parents[part])
        first += count

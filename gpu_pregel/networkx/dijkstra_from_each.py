"""Dijkstra's algorithm from each node in turn, as NetworkX's functions of all pairs yield its results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from gpu_pregel.kernels.library.bits_cpu import WORD_BITS
from gpu_pregel.kernels.networkx.dijkstra_from_each_cpu import dijkstra_from_each
from gpu_pregel.networkx.graph import BackendGraph
from gpu_pregel.networkx.hop_searches import paths_by_place
from gpu_pregel.networkx.rows import WeightedRows, mixed_numbers
from gpu_pregel.networkx.searches import limit_of

Array = np.ndarray[Any, Any]

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

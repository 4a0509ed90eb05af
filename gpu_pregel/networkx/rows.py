"""The rows of a graph without parallel edges, as kernels read them: NetworkX's searches see each neighbour once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpu_pregel.algorithms._triangles import without_repetitions
from gpu_pregel.networkx.conditions import EXACT
from gpu_pregel.networkx.edge_columns import EdgeColumn
from gpu_pregel.networkx.graph import Array, BackendGraph
from gpu_pregel.networkx.topology import first_of_parallel

_FEWEST_BUCKETS, _MOST_BUCKETS = 64, 4096
"""Buckets are found by words of a bitmap: up to 64 of them are faster than a heap."""


class Rows(NamedTuple):
    """The neighbours of each vertex in the order of NetworkX's dicts: int64[n + 1] and uint32[m]."""

    indptr: Array
    neighbors: Array


class WeightedRows(NamedTuple):
    """The neighbours of each vertex, and the smallest weight of the edges to each as float64[m]."""

    indptr: Array
    neighbors: Array
    weights: Array
    integers: bool
    """Whether distances are integers, which all sums of weights are if all weights are."""
    floats: Array | None = None
    """bool[m]: which weights are floats if others are not; a distance is an integer if all weights of its path are."""
    buckets: int = 0
    """How many buckets a search for small integer weights needs, or 0 if a heap is better."""
    scalar: type | None = None
    """NumPy's type of all weights, which distances have, too; None if they are Python's numbers."""

    def numbers(self, values: Array) -> list[Any]:
        """Return sums of weights as numbers of the type of the weights."""
        column = values.astype(np.int64) if self.integers else values
        numbers: list[Any] = column.tolist() if self.scalar is None else list(column)
        return numbers

    def lengths(self, graph: BackendGraph, order: Array, distances: Array, roots: int) -> dict[Any, Any]:
        """Return the distance of each vertex of ``order`` by its node; that of the first ``roots`` is the integer 0."""
        values = distances[order]
        if self.scalar is None:
            found = graph.values_at(order, values.astype(np.int64) if self.integers else values)
        else:
            found = dict(zip(graph.nodes_at(order), self.numbers(values), strict=True))
        found.update(dict.fromkeys(graph.nodes_at(order[:roots]), 0))
        return found

    def number(self, value: float) -> Any:
        """Return a sum of weights as a number of the type of the weights."""
        kind: Any = self.scalar or (int if self.integers else float)
        return kind(value)


def mixed_numbers(values: list[float], is_float: list[bool]) -> list[Any]:
    """Return sums of weights of both types: an integer where no weight of the path is a float."""
    return [value if kept else int(value) for value, kept in zip(values, is_float, strict=True)]


def rows(graph: BackendGraph, *, reverse: bool = False) -> Rows:
    """Return the out-edges of each vertex, or the in-edges."""
    topology = graph.topology
    return Rows(*(topology.distinct_predecessors if reverse else topology.distinct))


def weighted_rows(graph: BackendGraph, weight: Any, *, reverse: bool = False, mixed: bool = False) -> WeightedRows:
    """Return the edges of each vertex with an attribute as weights, 1 if ``weight`` is None; the graph keeps them.

    ``mixed`` weights are taken by functions that return paths without their lengths, or read ``floats``.

    Raises
    ------
    NotImplementedError
        A path's length may be an integer that is not exact as a float.
    """
    key = weight, reverse
    known: WeightedRows | None = graph.weighted_rows.get(key)
    if known is None or (known.floats is not None and not mixed):
        known = graph.weighted_rows[key] = _read_weighted_rows(graph, weight, reverse, mixed)
    return known


def _read_weighted_rows(graph: BackendGraph, weight: Any, reverse: bool, mixed: bool) -> WeightedRows:
    topology = graph.topology
    column, floats, scalar = EdgeColumn(np.ones(topology.m, np.int64)) if weight is None else graph.edge_column(weight)
    if floats is not None and not mixed:
        raise NotImplementedError(f"the edges' {weight!r} are of different types: float and int")
    integers = column.dtype.kind == "i"
    weights = column.astype(np.float64)
    whole = column if integers else np.empty(0) if floats is None else column[~floats]
    if len(whole) and max(int(whole.max()), -int(whole.min())) * topology.n >= EXACT:
        raise NotImplementedError(f"an edge's {weight!r} is so large that the length of a path may exceed 2^53")
    edges = topology.indptr, topology.neighbors
    if reverse and graph.is_directed():
        edges = topology.predecessors
        weights = weights[topology.predecessor_edges]
        floats = None if floats is None else floats[topology.predecessor_edges]
    if graph.is_multigraph() and len(weights):
        starts = np.flatnonzero(first_of_parallel(*edges))
        smallest = np.minimum.reduceat(weights, starts)
        if floats is not None:
            # Of equal weights NetworkX takes the first.
            is_smallest = weights == np.repeat(smallest, np.diff(starts, append=len(weights)))
            places = np.where(is_smallest, np.arange(len(weights)), len(weights))
            floats = floats[np.minimum.reduceat(places, starts)]
        weights = smallest
    return WeightedRows(
        *rows(graph, reverse=reverse), weights, integers, floats, bucket_count(weights) if integers else 0, scalar
    )


def bucket_count(weights: Array) -> int:
    """Return how many buckets a search by integer weights needs; see :class:`WeightedRows`."""
    if len(weights) == 0 or weights.min() < 0:
        return 0
    largest = int(weights.max())
    return max(_FEWEST_BUCKETS, 1 << largest.bit_length()) if largest < _MOST_BUCKETS else 0


def edges_of_rows(indptr: Array, vertices: Array) -> Array:
    """Return the positions of the edges of vertices, row after row."""
    degrees = np.diff(indptr)[vertices]
    shifts = indptr[vertices] - (np.cumsum(degrees) - degrees)
    edges: Array = np.repeat(shifts, degrees) + np.arange(int(degrees.sum()))
    return edges


LengthRows = tuple[Array, Array, Array]
"""``indptr``, ``indices`` and ``weights``: int64[n + 1], uint32[m], float64[m], empty if all lengths are 1."""


def rows_by_length(graph: BackendGraph, weight: Any, *, positive: bool = False) -> tuple[LengthRows, LengthRows]:
    """Return the out-edges and the in-edges, sorted, without self-loops, and the shortest of parallel edges.

    Raises
    ------
    NotImplementedError
        A length is negative or infinite, or ``positive`` and so small that adding it does not change that of a path.
    """
    lengths = graph.edge_values(weight, mixed=True)
    if lengths is not None and len(lengths):
        longest_path = float(lengths.max()) * len(graph)
        if lengths.min() < 0 or (positive and longest_path + lengths.min() == longest_path):
            raise NotImplementedError(f"the edges' {weight!r} are not all positive, or some are too small")
        if np.isinf(lengths.max()):
            raise NotImplementedError(f"an edge's {weight!r} is infinite")
    simple = without_repetitions(graph.engine(weight))
    out, back = (
        (rows.indptr, rows.indices, np.empty(0) if rows.weights is None else np.asarray(rows.weights, np.float64))
        for rows in (simple.to_csr(), simple.csc)
    )
    return out, back

"""Rows of the neighbours of each vertex in either direction, without self-loops, for counting triangles and triads."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from gpu_pregel.networkx.graph import Array, BackendGraph


class NeighborRows(NamedTuple):
    """Sorted rows with a number for each entry: int64[n + 1], uint32[k], float64[k]."""

    indptr: Array
    neighbors: Array
    values: Array


def symmetric_rows(
    graph: BackendGraph, values: Array | None, *, backward: float = 1.0, loops: bool = False
) -> NeighborRows:
    """Return the rows in which u has v with the values of its out-edges, plus ``backward`` times those of in-edges.

    An edge of an undirected graph counts in one direction; parallel edges are added up.
    """
    n, topology = len(graph), graph.topology
    data = np.ones(topology.m) if values is None else values.astype(np.float64)
    places = (topology.sources.astype(np.int64), topology.neighbors.astype(np.int64))
    kept = slice(None) if loops else places[0] != places[1]
    matrix = scipy.sparse.coo_array((data[kept], (places[0][kept], places[1][kept])), shape=(n, n)).tocsr()
    if topology.directed:
        matrix = (matrix + backward * matrix.T.tocsr()).tocsr()
    return as_rows(matrix)


def as_rows(matrix: Any) -> NeighborRows:
    """Return the rows of a sparse matrix."""
    matrix.sort_indices()
    return NeighborRows(matrix.indptr.astype(np.int64), matrix.indices.astype(np.uint32), matrix.data)


def acyclic_rows(rows: NeighborRows) -> NeighborRows:
    """Return each edge in the row of its end of the lower degree only, so that rows are short."""
    degrees = np.diff(rows.indptr)
    sources = np.repeat(np.arange(len(degrees)), degrees)
    keys = degrees * len(degrees) + np.arange(len(degrees))
    kept = keys[sources] < keys[rows.neighbors]
    indptr = np.zeros(len(rows.indptr), np.int64)
    np.cumsum(np.bincount(sources[kept], minlength=len(degrees)), out=indptr[1:])
    return NeighborRows(indptr, rows.neighbors[kept], rows.values[kept])

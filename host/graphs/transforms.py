"""Makes the CSR of a graph from that of another: some of its vertices, some of its edges, both directions."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.host.graphs import csr as host_csr
from gpu_pregel.host.graphs.csr import CSR, INDEX_DTYPE, INDPTR_DTYPE

Array = np.ndarray[Any, Any]

_EDGES_AT_ONCE = 1 << 17
"""Temporary arrays take about 30 bytes per edge; in the cache, they are twice as fast."""


def induce(csr: CSR, chosen: Array) -> CSR:
    """Return the edges among the chosen vertices, which ascend; vertex ``chosen[i]`` becomes ``i``.

    Reads only the rows of these vertices.
    """
    n, k = len(csr.indptr) - 1, len(chosen)
    number = np.full(n, k, INDEX_DTYPE)
    number[chosen] = np.arange(k, dtype=INDEX_DTYPE)
    begins = csr.indptr[chosen]
    offsets = np.concatenate([[0], np.cumsum(csr.indptr[chosen + 1] - begins)])
    degrees = np.empty(k, np.int64)
    parts = []
    first = 0
    while first < k:
        last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + _EDGES_AT_ONCE, side="right")) - 1)
        lengths = np.diff(offsets[first : last + 1])
        shifts = np.repeat(begins[first:last] - offsets[first:last], lengths)
        edges = shifts + np.arange(offsets[first], offsets[last])
        targets = number[csr.indices[edges]]
        kept = targets < k
        degrees[first:last] = _count_by_row(kept, offsets[first : last + 1] - offsets[first])
        parts.append((targets[kept], None if csr.weights is None else csr.weights[edges[kept]]))
        first = last
    return _join(degrees, parts, csr)


def simplify(csr: CSR) -> CSR:
    """Return the edges without self-loops and, of several to one destination, the one of smallest weight."""
    n = len(csr.indptr) - 1
    degrees = np.empty(n, np.int64)
    parts = []
    first = 0
    while first < n:
        limit = csr.indptr[first] + _EDGES_AT_ONCE
        last = max(first + 1, int(np.searchsorted(csr.indptr, limit, side="right")) - 1)
        begin, end = int(csr.indptr[first]), int(csr.indptr[last])
        row_starts = csr.indptr[first : last + 1] - begin
        targets = csr.indices[begin:end]
        # Rows are sorted by destination, then weight: the first of a run of equal destinations is kept.
        kept = np.ones(end - begin, bool)
        kept[1:] = targets[1:] != targets[:-1]
        kept[row_starts[:-1][row_starts[:-1] < end - begin]] = True
        kept &= targets != np.repeat(np.arange(first, last, dtype=INDEX_DTYPE), np.diff(row_starts))
        degrees[first:last] = _count_by_row(kept, row_starts)
        parts.append((targets[kept], None if csr.weights is None else csr.weights[begin:end][kept]))
        first = last
    return _join(degrees, parts, csr)


def symmetrise(csr: CSR, *, drop_duplicates: bool, threads: int) -> CSR:
    """Return every edge in both directions; ``drop_duplicates`` keeps one of smallest weight between two vertices."""
    return host_csr.build_csr(
        *(host_csr.sources(csr, threads=threads), csr.indices, csr.weights, len(csr.indptr) - 1),
        symmetric=True,
        drop_duplicates=drop_duplicates,
        threads=threads,
    )


def _count_by_row(kept: Array, row_starts: Array) -> Array:
    """Return the number of edges kept in each row; row ``i`` ends where row ``i + 1`` starts."""
    counts = np.zeros(len(row_starts) - 1, np.int64)
    filled = row_starts[1:] > row_starts[:-1]
    if filled.any():
        counts[filled] = np.add.reduceat(kept, row_starts[:-1][filled], dtype=np.int64)
    return counts


def _join(degrees: Array, parts: list[tuple[Array, Array | None]], csr: CSR) -> CSR:
    """Return the CSR of rows of these lengths; ``csr`` tells whether there are weights, and their dtype."""
    indptr = np.concatenate([np.zeros(1, INDPTR_DTYPE), np.cumsum(degrees, dtype=INDPTR_DTYPE)])
    indices = np.concatenate([np.empty(0, INDEX_DTYPE), *(indices for indices, _ in parts)])
    if csr.weights is None:
        return CSR(indptr, indices, None)
    found = [weights for _, weights in parts if weights is not None]
    return CSR(indptr, indices, np.concatenate([np.empty(0, csr.weights.dtype), *found]))

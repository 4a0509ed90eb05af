"""Makes the CSR of a graph from that of another: some of its vertices, some of its edges, both directions."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.errors import GraphError
from gpu_pregel.host.graphs import csr as host_csr
from gpu_pregel.host.graphs.combine import check_order_known
from gpu_pregel.host.graphs.csr import CSR, INDEX_DTYPE, INDPTR_DTYPE
from gpu_pregel.host.graphs.edge_arrays import find_parallel

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


def combine_parallel(csr: CSR, combine: str | None, *, keep_loops: bool, ids: Array | None, threads: int) -> CSR:
    """Return the CSR with parallel edges combined, as ``Graph.simplify`` does; the same one if it has none.

    Raises
    ------
    ArgumentError
        ``combine`` cannot be applied to these edges.
    GraphError
        A sum does not fit; or ``combine`` is None, and edges with weights are parallel.
    """
    check_order_known(combine, csr.weights)
    if combine is None and csr.weights is not None:
        pair = find_parallel(csr, loops=keep_loops)
        if pair is not None:
            source, target = pair if ids is None else ids[list(pair)].tolist()
            raise GraphError(
                f"several edges from {source!r} to {target!r} have weights: pass combine='sum', 'min', 'max', 'mean' "
                "or 'count', the weight of the edge that replaces them"
            )
    combined = host_csr.combine_rows(csr, combine, keep_loops=keep_loops, ids=ids, threads=threads)
    if len(combined.indices) < len(csr.indices) or combine == "count":
        return combined
    if csr.weights is not None and combined.weights is not None and csr.weights.dtype != combined.weights.dtype:
        return combined
    return csr


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

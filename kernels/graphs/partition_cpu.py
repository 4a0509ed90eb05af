"""Kernels that divide the rows of a graph among partitions, on the CPU."""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.library.work_cpu import claim


@inline
def _partition_of(v, bounds):
    """The partition that owns vertex ``v``: the last one whose first vertex is at or below it."""
    low = 0
    high = len(bounds) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if bounds[middle] <= v:
            low = middle
        else:
            high = middle
    return low


@inline
def _first_edge_from(indices, begin, end, v):
    """The first edge of a sorted row whose other end is ``v`` or above."""
    while begin < end:
        middle = (begin + end) // 2
        if np.int64(indices[middle]) < v:
            begin = middle + 1
        else:
            end = middle
    return begin


@jit
def count_rows(work, indptr, indices, bounds, block, counts):
    """Count the rows of each block of vertices that have edges in each partition: ``counts[block, partition]``."""
    first, last = claim(work)
    while first < last:
        for b in range(first, last):
            for u in range(b * block, min((b + 1) * block, len(indptr) - 1)):
                e = indptr[u]
                while e < indptr[u + 1]:
                    part = _partition_of(np.int64(indices[e]), bounds)
                    counts[b, part] += 1
                    e = _first_edge_from(indices, e, indptr[u + 1], bounds[part + 1])
        first, last = claim(work)


@jit
def cut_rows(work, indptr, indices, bounds, block, places, rows, begins, ends):
    """Write each partition's share of every row, beginning at ``places[block, partition]``."""
    first, last = claim(work)
    while first < last:
        for b in range(first, last):
            for u in range(b * block, min((b + 1) * block, len(indptr) - 1)):
                e = indptr[u]
                while e < indptr[u + 1]:
                    part = _partition_of(np.int64(indices[e]), bounds)
                    end = _first_edge_from(indices, e, indptr[u + 1], bounds[part + 1])
                    place = places[b, part]
                    places[b, part] = place + 1
                    rows[place] = u
                    begins[place] = e
                    ends[place] = end
                    e = end
        first, last = claim(work)

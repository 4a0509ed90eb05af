"""Kernels of triangles and clustering on the CPU that read the rows of the CSR; ``packed_rows_cpu`` has others.

In a directed graph a neighbour is the other end of an edge in either direction; ``back_indptr`` and ``back_indices``
are its CSC, None if the graph is undirected.
"""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.library.atomics_cpu import fetch_and_add, prefetch
from gpu_pregel.kernels.library.bits_cpu import bit
from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.library.work_cpu import claim

_EMPTY = np.uint64(0)


@jit
def count_neighbors(work, indptr, indices, back_indptr, back_indices, neighbors):
    """Count the neighbours of each vertex: other vertices, each once; rows are sorted."""
    first, last = claim(work)
    while first < last:
        for u in range(first, last):
            begin = indptr[u]
            end = indptr[u + 1]
            skipped = np.int64(begin < end and indices[begin] == u)
            for e in range(begin + 1, end):
                skipped += np.int64((indices[e] == u) | (indices[e] == indices[e - 1]))
            count = end - begin - skipped
            if back_indptr is not None:
                # Merge the rows; count the in-neighbours that the row of out-edges lacks.
                e = begin
                for f in range(back_indptr[u], back_indptr[u + 1]):
                    v = back_indices[f]
                    if v == u or (f > back_indptr[u] and back_indices[f - 1] == v):
                        continue
                    while e < end and indices[e] < v:
                        e += 1
                    count += np.int64(e == end or indices[e] != v)
            neighbors[u] = count
        first, last = claim(work)


@jit
def divide_links(work, links, neighbors, orders, coefficients):
    """Divide the number of links by that of pairs of neighbours; ``orders`` is 2 for unordered links."""
    first, last = claim(work)
    while first < last:
        for v in range(first, last):
            degree = np.float64(neighbors[v])
            pairs = degree * (degree - 1.0)
            coefficients[v] = orders * links[v] / pairs if pairs > 0.0 else 0.0
        first, last = claim(work)


@inline
def _count_one(indptr, indices, u, v, w, counts):
    """Count the triangle of u, which has no other smaller neighbours than v > w, if v has the neighbour w."""
    e = indptr[v]
    while indices[e] < w:  # the row of v has u, which is larger
        e += 1
    if indices[e] == w and w != v:
        fetch_and_add(counts, u, 1)
        fetch_and_add(counts, v, 1)
        fetch_and_add(counts, w, 1)


@inline
def _prefetch_rows(indptr, indices, u, last):
    """Prefetch the offsets of the neighbours of u + 2, and the rows of those of u + 1."""
    if u + 2 < last:
        e = indptr[u + 2]
        while e < indptr[u + 3] and indices[e] < u:
            prefetch(indptr, indices[e])
            e += 1
    if u + 1 < last:
        e = indptr[u + 1]
        while e < indptr[u + 2] and indices[e] < u:
            row = indptr[indices[e]]
            prefetch(indices, row)
            prefetch(indices, row + 16)
            e += 1


@jit
def count_plain(work, indptr, indices, counts):
    """Count the triangles of each vertex of an undirected graph; rows are sorted.

    The triangle u > v > w is found in the row of u, as a vertex common to u and v. Rows of equal vertices are adjacent:
    a repeated v or w is skipped.
    """
    marks = np.zeros((len(counts) >> 6) + 1, np.uint64)
    first, last = claim(work)
    while first < last:
        for u in range(first, last):
            begin = indptr[u]
            end = indptr[u + 1]
            if end - begin < 2 or indices[begin + 1] >= u:
                continue
            stop = begin + 2
            while stop < end and indices[stop] < u:
                stop += 1
            if stop == begin + 2:
                _count_one(indptr, indices, u, indices[begin + 1], indices[begin], counts)
                continue
            _prefetch_rows(indptr, indices, u, last)
            for e in range(begin, stop):
                w = indices[e]
                marks[w >> np.uint32(6)] |= bit(w)
            at_u = np.int64(0)
            for e in range(begin + 1, stop):
                v = indices[e]
                if v == indices[e - 1]:
                    continue
                at_v = np.int64(0)
                row = indptr[v]
                f = row
                while indices[f] < v:  # the row of v has u, which is larger
                    w = indices[f]
                    if marks[w >> np.uint32(6)] & bit(w) != _EMPTY and (f == row or indices[f - 1] != w):
                        fetch_and_add(counts, w, 1)
                        at_v += 1
                    f += 1
                if at_v > 0:
                    fetch_and_add(counts, v, at_v)
                    at_u += at_v
            if at_u > 0:
                fetch_and_add(counts, u, at_u)
            for e in range(begin, stop):
                marks[indices[e] >> np.uint32(6)] = _EMPTY
        first, last = claim(work)

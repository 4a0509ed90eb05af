"""Kernels that score the similarity of pairs of vertices on the CPU, without weights."""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.algorithms.coefficients import ratio
from gpu_pregel.kernels.library.bits_cpu import bit
from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.library.sorted_rows import count_common, find
from gpu_pregel.kernels.library.work_cpu import claim

LONGER = 32
"""A row is searched for the elements of another one, instead of being read, if it is this many times as long."""


@inline
def _mark(indptr, indices, u, marks):
    """Set the bits of the neighbours of u."""
    for e in range(indptr[u], indptr[u + 1]):
        w = indices[e]
        marks[w >> np.uint32(6)] |= bit(w)


@inline
def _unmark(indptr, indices, u, marks):
    for e in range(indptr[u], indptr[u + 1]):
        marks[indices[e] >> np.uint32(6)] = np.uint64(0)


@inline
def _count_marked(indptr, indices, v, marks):
    """Count the neighbours of v whose bits are set."""
    count = np.int64(0)
    for e in range(indptr[v], indptr[v + 1]):
        w = indices[np.uint64(e)]
        count += np.int64(marks[w >> np.uint32(6)] >> np.uint64(w & np.uint32(63)) & np.uint64(1))
    return count


@jit
def score_adjacent(work, indptr, indices, begins, kind, scores):
    """Score all pairs of adjacent vertices u < v; those of u begin at ``begins[u]`` and are in the order of its row.

    Each pair is dealt with at the vertex of higher degree, whose neighbours are marked; the other's row is read.
    """
    marks = np.zeros((len(indptr) >> 6) + 1, np.uint64)
    first, last = claim(work)
    while first < last:
        for u in range(first, last):
            end = indptr[u + 1]
            one = end - indptr[u]
            _mark(indptr, indices, u, marks)
            for e in range(indptr[u], end):
                v = np.int64(indices[e])
                other_end = indptr[v + 1]
                other = other_end - indptr[v]
                if other < one or (other == one and v < u):
                    # The larger neighbours of a vertex are the last of its row.
                    place = begins[u + 1] - (end - e)
                    if v < u:
                        place = begins[v + 1] - (other_end - find(indices, indptr[v], other_end, u))
                    common = _count_marked(indptr, indices, v, marks)
                    scores[place] = ratio(kind, float(common), float(one), float(other))
            _unmark(indptr, indices, u, marks)
        first, last = claim(work)


@jit
def score_pairs(work, indptr, indices, first, second, kind, scores):
    """Score each pair. Of consecutive pairs with the same first vertex, its neighbours are marked in a bitmap."""
    marks = np.zeros((len(indptr) >> 6) + 1, np.uint64)
    begin, last = claim(work)
    while begin < last:
        marked = np.int64(-1)
        for i in range(begin, last):
            u = np.int64(first[i])
            v = np.int64(second[i])
            if u != marked and (i + 1 < last and first[i + 1] == u):
                if marked >= 0:
                    _unmark(indptr, indices, marked, marks)
                marked = u
                _mark(indptr, indices, u, marks)
            one = indptr[u + 1] - indptr[u]
            other = indptr[v + 1] - indptr[v]
            if u == marked and other <= LONGER * one:
                common = _count_marked(indptr, indices, v, marks)
            else:
                common = np.int64(count_common(indices, indptr[u], indptr[u + 1], indices, indptr[v], indptr[v + 1]))
            scores[i] = ratio(kind, float(common), float(one), float(other))
        if marked >= 0:
            _unmark(indptr, indices, marked, marks)
        begin, last = claim(work)

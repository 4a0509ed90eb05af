"""Kernel that scores the similarity of pairs of vertices on the CPU, without weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.kernels.algorithms.coefficients import ratio
from gpu_pregel.kernels.library.bits_cpu import bit
from gpu_pregel.kernels.library.jit_cpu import jit
from gpu_pregel.kernels.library.sorted_rows import count_common
from gpu_pregel.kernels.library.work_cpu import claim

LONGER = 8
"""A row is searched for the elements of another one, instead of being read, if it is this many times as long."""


@jit
def score_pairs(work: Any, indptr: Any, indices: Any, first: Any, second: Any, kind: Any, scores: Any) -> None:
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
                    for e in range(indptr[marked], indptr[marked + 1]):
                        marks[indices[e] >> np.uint32(6)] = np.uint64(0)
                marked = u
                for e in range(indptr[u], indptr[u + 1]):
                    w = indices[e]
                    marks[w >> np.uint32(6)] |= bit(w)
            one = indptr[u + 1] - indptr[u]
            other = indptr[v + 1] - indptr[v]
            if u == marked and other <= LONGER * one:
                common = np.int64(0)
                for e in range(indptr[v], indptr[v + 1]):
                    w = indices[e]
                    common += np.int64(marks[w >> np.uint32(6)] >> np.uint64(w & np.uint32(63)) & np.uint64(1))
            else:
                common = count_common(indices, indptr[u], indptr[u + 1], indices, indptr[v], indptr[v + 1])
            scores[i] = ratio(kind, float(common), float(one), float(other))
        if marked >= 0:
            for e in range(indptr[marked], indptr[marked + 1]):
                marks[indices[e] >> np.uint32(6)] = np.uint64(0)
        begin, last = claim(work)

"""What the neighbours of pairs of vertices have in common."""

from __future__ import annotations

from gpu_pregel.kernels.library.jit_cpu import jit
from gpu_pregel.kernels.library.work_cpu import claim

ALL, OTHERS, ALIKE, UNKNOWN, COUNTS = 0, 1, 2, 3, 4
"""Counts of the common neighbours of u and v: all; those other than u and v; of these, those
in the community of u; those without one."""


@jit
def compare_pairs(work, indptr, neighbors, first, second, values, communities, counts, sums):
    """Count the common neighbours of each pair, and add up the values of all of them and of those in one community.

    Rows are sorted; ``counts`` is int64[k, 4], ``sums`` float64[k, 2]. A negative community is unknown.
    """
    begin, end = claim(work)
    while begin < end:
        for k in range(begin, end):
            u = first[k]
            v = second[k]
            every = 0
            others = 0
            alike = 0
            unknown = 0
            total = 0.0
            alike_total = 0.0
            e = indptr[u]
            f = indptr[v]
            while e < indptr[u + 1] and f < indptr[v + 1]:
                w = neighbors[e]
                x = neighbors[f]
                if w == x:
                    every += 1
                    if w != u and w != v:
                        others += 1
                        total += values[w]
                        if communities[w] < 0:
                            unknown += 1
                        if communities[w] == communities[u]:
                            alike += 1
                            alike_total += values[w]
                e += w <= x
                f += x <= w
            counts[k, 0] = every
            counts[k, 1] = others
            counts[k, 2] = alike
            counts[k, 3] = unknown
            sums[k, 0] = total
            sums[k, 1] = alike_total
        begin, end = claim(work)

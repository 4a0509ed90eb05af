"""Kernels that renumber the vertices by descending degree, in groups within which the order is kept.

A counting sort: each block of vertices is counted by group, then placed from its offsets.
"""

from __future__ import annotations

from gpu_pregel.kernels.library.atomics_cpu import load, prefetch
from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.library.work_cpu import CHUNK, claim

GROUPS = 256
EDGES_AHEAD = 256
"""Prefetch distance for neighbours."""


@inline
def _group(degree):
    """Return the group of a degree; the largest degrees have the smallest number."""
    shift = 0
    while degree >= 8:
        degree >>= 1
        shift += 1
    return GROUPS - 1 - (4 * shift + degree)


@jit
def count_groups(work, grouping, indptr, vertices, edges):
    """Count the vertices and the edges of each group in each block; both arrays are [blocks, GROUPS].

    The degrees are the lengths of the rows of ``grouping``; ``indptr`` has those that are copied.
    """
    first, last = claim(work)
    while first < last:
        block = first // work[CHUNK]
        for v in range(first, last):
            group = _group(grouping[v + 1] - grouping[v])
            vertices[block, group] += 1
            edges[block, group] += indptr[v + 1] - indptr[v]
        first, last = claim(work)


@jit
def place(work, grouping, indptr, vertices, edges, order, ranks, begins):
    """Write the new number of each vertex, its inverse and the beginning of each new row, from the blocks' offsets."""
    first, last = claim(work)
    while first < last:
        block = first // work[CHUNK]
        for v in range(first, last):
            group = _group(grouping[v + 1] - grouping[v])
            rank = vertices[block, group]
            vertices[block, group] = rank + 1
            order[rank] = v
            ranks[v] = rank
            begins[rank] = edges[block, group]
            edges[block, group] += indptr[v + 1] - indptr[v]
        first, last = claim(work)


@jit
def renumber(work, indptr, indices, ranks, begins, renumbered):
    """Copy the rows to their new places, with the new numbers of the neighbours.

    Rows are read in the old order: each group's rows are then written in order as well.
    """
    first, last = claim(work)
    while first < last:
        end = indptr[first]
        for v in range(first, last):
            begin = end
            end = indptr[v + 1]
            shift = begins[ranks[v]] - begin
            for e in range(begin, end):
                prefetch(indices, e + EDGES_AHEAD)
                renumbered[e + shift] = ranks[load(indices, e)]
        first, last = claim(work)

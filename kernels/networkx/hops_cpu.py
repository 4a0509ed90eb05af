"""Breadth-first searches in NetworkX's order that find the number of hops alone, level by level on one thread."""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.library.jit_cpu import jit

# Numba checks whether signed indices are negative: with unsigned ones a search takes two thirds of the time or less.
U = np.uint64
_FEW = 8
"""A level is found backwards if it has ``_FEW`` times as many edges as all vertices to be found."""


@jit
def find_hops(indptr, neighbors, source, cutoff, is_symmetric, found, order, depths):
    """Search from a vertex; return how many vertices are found, and how many levels were found backwards.

    Parameters
    ----------
    cutoff : float
        Levels from this one on are not searched from.
    is_symmetric : bool
        Whether each edge is in the rows of both ends. A level is then found from its own side where that is faster.
    found : uint8[n]
        Zeros; 1 for the vertices that have been found.
    order : uint32[n + 1]
        Gets the vertices as they are found, level by level. There is one place more, which is written.
    depths : int64[n]
        Gets the number of steps to each of them.
    """
    n, left = U(len(found)), len(neighbors)
    order[0], found[source], depths[0] = source, 1, 0
    begin, end, level, backwards = U(0), U(1), 0, 0
    while begin < end < n and level < cutoff:
        edges = 0
        for i in range(begin, end):
            edges += indptr[order[i] + U(1)] - indptr[order[i]]
        left -= edges
        if is_symmetric and n + left * _FEW < edges:
            backwards += 1
            count = _find_backwards(indptr, neighbors, begin, end, order, found, np.empty((3, n), np.uint32))
        else:
            count = end
            for i in range(begin, end):
                if count == n:
                    break
                for e in range(U(indptr[order[i]]), U(indptr[order[i] + U(1)])):
                    # Without a branch: whether a vertex has been found cannot be predicted.
                    v = neighbors[e]
                    order[count] = v
                    count += U(1) - U(found[v])
                    found[v] = 1
        level += 1
        depths[end:count] = level
        begin, end = end, count
    return end, backwards


@jit
def _find_backwards(indptr, neighbors, begin, end, order, found, scratch):
    """Find the level after that from ``begin`` to ``end``, from the vertices that have not been found; return its end.

    A vertex is found from the first of its neighbours in ``order``, and those of one parent in the order of its row.
    ``scratch`` is uint32[3, n].
    """
    places, parents, children = scratch
    far = np.uint32(len(found))
    places[:] = far
    for i in range(begin, end):
        places[order[i]] = i
        children[i] = 0
    count = end
    for v in range(U(len(found))):
        order[count] = v
        count += U(1) - U(found[v])
    for i in range(end, count):
        v = order[i]
        first = far
        for e in range(U(indptr[v]), U(indptr[v + U(1)])):
            first = min(first, places[neighbors[e]])
        parents[v] = first
        if first < far:
            children[first] += np.uint32(1)
    count = end
    for i in range(begin, end):
        place, last, left = U(indptr[order[i]]), U(indptr[order[i] + U(1)]), children[i]
        while left > 0 and place < last:
            v = neighbors[place]
            if not found[v] and parents[v] == i:
                found[v] = 1
                order[count] = v
                count += U(1)
                left -= np.uint32(1)
            place += U(1)
    return count


@jit
def reaches_fewer(limit, indptr, neighbors, order, found):
    """Return whether a search from the first vertex finds fewer vertices than ``limit``, which is at least 1.

    ``order``, uint32[limit], is scratch memory, and ``found``, uint8[n], is 0.
    """
    order[0], found[0] = 0, 1
    begin, count = U(0), U(1)
    while begin < count < U(limit):
        u = order[begin]
        begin += U(1)
        for e in range(U(indptr[u]), U(indptr[u + U(1)])):
            v = neighbors[e]
            if count < U(limit) and not found[v]:
                found[v] = 1
                order[count] = v
                count += U(1)
    return count < U(limit)

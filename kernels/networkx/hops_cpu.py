"""Breadth-first searches in NetworkX's order that find the number of hops alone, level by level on one thread."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.kernels.library.jit_cpu import jit

# Numba checks whether signed indices are negative: with unsigned ones a search takes two thirds of the time or less.
U = np.uint64
_FEW = 8
"""A level is found backwards if the edges of all vertices to be found are so many times fewer than its own."""


@jit
def search_levels(
    indptr: Any,
    neighbors: Any,
    cutoff: Any,
    is_symmetric: Any,
    level: Any,
    left: Any,
    order: Any,
    found: Any,
    ends: Any,
) -> Any:
    """Search on from a level; return the last level, the edges of vertices yet to be found, and whether to go back.

    Parameters
    ----------
    cutoff : float
        Levels from this one on are not searched from.
    is_symmetric : bool
        Whether each edge is in the rows of both ends. The search then stops where ``find_level`` is faster.
    level, left : int
        The last level that has been found, and the number of edges of vertices beyond the one before it.
    order : uint32[n + 1]
        The vertices as they are found, level by level. There is one place more, which is written.
    found : uint8[n]
        1 for the vertices that have been found.
    ends : int64[n]
        How many vertices have been found up to each level.
    """
    begin, count = U(ends[level - 1]) if level > 0 else U(0), U(ends[level])
    while begin < count < len(found) and level < cutoff:
        edges = 0
        for i in range(begin, count):
            edges += indptr[order[i] + U(1)] - indptr[order[i]]
        left -= edges
        if is_symmetric and len(found) + left * _FEW < edges:
            return level, left, True
        end = count
        for i in range(begin, end):
            if count == len(found):
                break
            for e in range(U(indptr[order[i]]), U(indptr[order[i] + U(1)])):
                # Without a branch: whether a vertex has been found cannot be predicted.
                v = neighbors[e]
                order[count] = v
                count += U(1) - U(found[v])
                found[v] = 1
        begin = end
        if count > end:
            level += 1
            ends[level] = count
    return level, left, False


@jit
def find_level(
    indptr: Any,
    neighbors: Any,
    level: Any,
    order: Any,
    found: Any,
    ends: Any,
    places: Any,
    parents: Any,
    children: Any,
) -> Any:
    """Find the level after this one from the vertices that have not been found; return whether it has any.

    A vertex is found from the first of its neighbours in ``order``, and those of one parent in the order of its row.
    ``places``, ``parents`` and ``children``, uint32[n], are scratch memory.
    """
    far = np.uint32(len(found))
    begin, end = U(ends[level - 1]) if level > 0 else U(0), U(ends[level])
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
        place, left = U(indptr[order[i]]), children[i]
        while left > 0:
            v = neighbors[place]
            if not found[v] and parents[v] == i:
                found[v] = 1
                order[count] = v
                count += U(1)
                left -= np.uint32(1)
            place += U(1)
    ends[level + 1] = count
    return count > end


@jit
def reaches_fewer(limit: Any, indptr: Any, neighbors: Any, order: Any, found: Any) -> Any:
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

"""Searches that visit vertices in the order in which NetworkX does, on one thread.

Rows are in the order of NetworkX's dicts: ``neighbors`` is not sorted.
"""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.library.jit_cpu import jit

# Numba checks whether signed indices are negative.
U = np.uint64


@jit
def breadth_first(indptr, neighbors, cutoff, count, order, depths, parents):
    """Search from the first ``count`` vertices of ``order``; return the number of vertices that are found.

    The caller has set ``depths`` to 0 at the sources and to -1 elsewhere. ``order`` gets the vertices as they are
    found, ``parents`` the vertex from which each was. Vertices ``cutoff`` steps away are not searched from, and none
    are if it is 0, or once all have been found.
    """
    begin, end = U(0), U(count)
    while begin < end < len(order):
        u = order[begin]
        begin += U(1)
        depth = depths[u]
        if depth >= cutoff:
            break
        for e in range(U(indptr[u]), U(indptr[u + U(1)])):
            v = neighbors[e]
            if depths[v] < 0:
                depths[v] = depth + 1
                parents[v] = u
                order[end] = v
                end += U(1)
    return end


@jit
def breadth_first_from_each(indptr, neighbors, cutoff, first, limit, order, parents, ends, depths):
    """Search from each vertex from ``first`` on until ``limit`` are found in all; return how many searches that took.

    Parameters
    ----------
    cutoff : float
        Vertices at this distance are not searched from.
    order : uint32[limit + n]
        Gets the vertices as they are found, search after search.
    parents : int64[limit + n]
        Gets the place in its search of the vertex from which each was found; undefined for the sources.
    ends : int64[n]
        Gets the end of each search in ``order``.
    depths : int64[n]
        -1, which it is again afterwards.
    """
    total, last = U(0), U(first)
    while last < len(depths) and (total < limit or last == first):
        begin = total
        order[begin], depths[last] = last, 0
        i, total = begin, begin + U(1)
        while i < total < begin + len(depths):
            u = order[i]
            depth = depths[u]
            if depth >= cutoff:
                break
            for e in range(U(indptr[u]), U(indptr[u + U(1)])):
                v = neighbors[e]
                if depths[v] < 0:
                    depths[v] = depth + 1
                    parents[total] = i - begin
                    order[total] = v
                    total += U(1)
            i += U(1)
        for v in order[begin:total]:
            depths[v] = -1
        ends[last - U(first)] = total
        last += U(1)
    return last - U(first)

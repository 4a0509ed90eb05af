"""Searches that visit vertices in the order in which NetworkX does, on one thread.

Rows are in the order of NetworkX's dicts: ``neighbors`` is not sorted.
"""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.networkx.rows_cpu import add_up, shift

# Numba checks whether signed indices are negative: with unsigned ones a search takes two thirds of the time or less.
U = np.uint64
_FEW = 8
"""A level is found backwards if it has ``_FEW`` times as many edges as all vertices to be found."""


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


@inline
def _expand_level(indptr, neighbors, fringe, begin, end, links, others):
    """Search from a level of one side; return its new end and one more than the vertex where both sides meet, or 0."""
    new_end = end
    for i in range(begin, end):
        u = fringe[i]
        for e in range(indptr[u], indptr[u + 1]):
            v = neighbors[e]
            if links[v] == 0:
                fringe[new_end] = v
                new_end += 1
                links[v] = u + 1
            if others[v] != 0:
                return new_end, np.int64(v + 1)
    return new_end, np.int64(0)


@jit
def meet(indptr, neighbors, in_indptr, in_neighbors, fringes, links):
    """Search from both ends of a path at once, from the shorter level each time.

    ``fringes`` is uint32[2, n] and begins with the source and the target. ``links`` is int64[2, n] of zeros, which need
    not be in memory as long as they are not read; it gets one more than the vertex from which each was found, by side.
    The ends are their own. Returned is one more than the vertex where both sides meet, or 0.
    """
    for side in range(2):
        links[side, fringes[side, 0]] = fringes[side, 0] + 1
    begin, end = 0, 1
    back_begin, back_end = 0, 1
    while begin < end and back_begin < back_end:
        if end - begin <= back_end - back_begin:
            new_end, found = _expand_level(indptr, neighbors, fringes[0], begin, end, links[0], links[1])
            begin, end = end, new_end
        else:
            new_end, found = _expand_level(
                in_indptr, in_neighbors, fringes[1], back_begin, back_end, links[1], links[0]
            )
            back_begin, back_end = back_end, new_end
        if found != 0:
            return found
    return 0


@jit
def collect_predecessors(indptr, neighbors, cutoff, order, depths, places, starts, predecessors):
    """List all predecessors on shortest paths of the vertices of a search, in the order in which they were found.

    ``starts``, int64[found + 1] of zeros, and ``predecessors``, uint32[m], get a row for each vertex of ``order``.
    ``places``, int64[n], is scratch memory.
    """
    for i in range(len(order)):
        places[order[i]] = i
    for writing in range(2):
        for u in order:
            depth = depths[u]
            if depth >= cutoff:
                break
            for e in range(indptr[u], indptr[u + 1]):
                v = neighbors[e]
                if depths[v] == depth + 1:
                    if writing:
                        predecessors[starts[places[v]]] = u
                    starts[places[v]] += 1
        if not writing:
            add_up(starts)
    shift(starts)

"""Shortest paths by the number of edges, in the order in which NetworkX finds them, on one thread.

Rows are in the order of NetworkX's dicts and without parallel edges.
"""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.networkx.rows_cpu import add_up, shift


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

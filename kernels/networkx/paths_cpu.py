"""Shortest paths by the number of edges, in the order in which NetworkX finds them, on one thread.

Rows are in the order of NetworkX's dicts and without parallel edges.
"""

from __future__ import annotations

from typing import Any

from gpu_pregel.kernels.library.jit_cpu import inline, jit


@inline
def _expand_level(
    indptr: Any, neighbors: Any, fringe: Any, begin: Any, end: Any, parents: Any, others: Any, none: Any
) -> Any:
    """Search from a level of one side; return its new end and the vertex where both sides meet, or ``none``."""
    new_end = end
    for i in range(begin, end):
        u = fringe[i]
        for e in range(indptr[u], indptr[u + 1]):
            v = neighbors[e]
            if parents[v] == none:
                fringe[new_end] = v
                new_end += 1
                parents[v] = u
            if others[v] != none:
                return new_end, v
    return new_end, none


@jit
def meet(
    indptr: Any, neighbors: Any, in_indptr: Any, in_neighbors: Any, fringes: Any, parents: Any, children: Any
) -> Any:
    """Search from both ends of a path at once, from the shorter level each time; return where they meet, or n.

    ``fringes`` is uint32[2, n] and begins with the source and the target. ``parents`` and ``children``, int64[n], are
    n where a side has not been; the caller has set those of the source and of the target to -1.
    """
    none = len(parents)
    begin, end = 0, 1
    back_begin, back_end = 0, 1
    while begin < end and back_begin < back_end:
        if end - begin <= back_end - back_begin:
            new_end, found = _expand_level(indptr, neighbors, fringes[0], begin, end, parents, children, none)
            begin, end = end, new_end
        else:
            new_end, found = _expand_level(
                in_indptr, in_neighbors, fringes[1], back_begin, back_end, children, parents, none
            )
            back_begin, back_end = back_end, new_end
        if found != none:
            return found
    return none


@jit
def collect_predecessors(
    indptr: Any, neighbors: Any, cutoff: Any, order: Any, depths: Any, starts: Any, predecessors: Any
) -> None:
    """List all predecessors on shortest paths of the vertices of a search, in the order in which they were found.

    ``starts``, int64[n + 1] of zeros, and ``predecessors``, uint32[m], get a row for each vertex of the graph.
    """
    for writing in range(2):
        for u in order:
            depth = depths[u]
            if depth >= cutoff:
                break
            for e in range(indptr[u], indptr[u + 1]):
                v = neighbors[e]
                if depths[v] == depth + 1:
                    if writing:
                        predecessors[starts[v]] = u
                    starts[v] += 1
        if not writing:
            total = 0
            for v in range(len(starts)):
                count = starts[v]
                starts[v] = total
                total += count
    # Each start has moved on to the next row's.
    for v in range(len(starts) - 1, 0, -1):
        starts[v] = starts[v - 1]
    starts[0] = 0

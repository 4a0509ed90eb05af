"""Cycles, chains and bridges in the order of NetworkX, on one thread."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.kernels.library.jit_cpu import inline, jit


@jit
def walk_chains(
    firsts: Any, seconds: Any, order: Any, numbers: Any, parents: Any, sources: Any, targets: Any, ends: Any
) -> None:
    """Follow each edge from ``firsts`` to ``seconds``, then the parents up to a vertex that is visited.

    The edges are sorted by the number of their first vertex in ``order``; vertices are visited in this order, too.
    ``sources`` and ``targets`` get the edges of the chains, of which chain ``i`` ends at ``ends[i]``.
    """
    visited = np.zeros(len(numbers), np.bool_)
    reached = size = 0
    for i in range(len(firsts)):
        u, v = firsts[i], seconds[i]
        while reached <= numbers[u]:
            visited[order[reached]] = True
            reached += 1
        while not visited[v]:
            sources[size] = u
            targets[size] = v
            size += 1
            visited[v] = True
            u, v = v, parents[v]
        sources[size] = u
        targets[size] = v
        size += 1
        ends[i] = size


@inline
def _have_common(indptr: Any, indices: Any, u: Any, v: Any) -> bool:
    """Return whether two sorted rows have a common vertex."""
    i, j = indptr[u], indptr[v]
    while i < indptr[u + 1] and j < indptr[v + 1]:
        if indices[i] == indices[j]:
            return True
        if indices[i] < indices[j]:
            i += 1
        else:
            j += 1
    return False


@jit
def find_local_bridges(indptr: Any, neighbors: Any, sorted_indptr: Any, sorted_indices: Any, is_local: Any) -> None:
    """Mark the edges to later vertices whose ends have no common neighbour."""
    for u in range(len(indptr) - 1):
        for e in range(indptr[u], indptr[u + 1]):
            v = neighbors[e]
            is_local[e] = u < v and not _have_common(sorted_indptr, sorted_indices, u, np.int64(v))


@jit
def distance_without_edge(indptr: Any, neighbors: Any, u: Any, v: Any, run: Any, stamps: Any, queues: Any) -> Any:
    """Return the distance from u to v in a graph without the edge between them, or 0; searches from both ends.

    ``stamps``, int64[2, n], has the number of the last run that found a vertex from either end; ``queues`` has
    uint32[2, n].
    """
    heads, tails = np.zeros(2, np.int64), np.ones(2, np.int64)
    queues[0, 0], queues[1, 0] = u, v
    stamps[0, u] = stamps[1, v] = run
    distance = 0
    while heads[0] < tails[0] and heads[1] < tails[1]:
        # The narrower level is expanded.
        side = 0 if tails[0] - heads[0] <= tails[1] - heads[1] else 1
        distance += 1
        end = tails[side]
        for position in range(heads[side], end):
            x = queues[side, position]
            for e in range(indptr[x], indptr[x + 1]):
                y = neighbors[e]
                if (x == u and y == v) or (x == v and y == u):
                    continue
                if stamps[1 - side, y] == run:
                    return distance
                if stamps[side, y] != run:
                    stamps[side, y] = run
                    queues[side, tails[side]] = y
                    tails[side] += 1
        heads[side] = end
    return 0

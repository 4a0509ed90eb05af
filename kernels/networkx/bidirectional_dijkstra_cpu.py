"""Dijkstra's algorithm from both ends of a path at once, as NetworkX runs it; see ``dijkstra_cpu`` for the heap."""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.library.jit_cpu import jit
from gpu_pregel.kernels.networkx.dijkstra_cpu import CONTRADICTION, SEEN, SETTLED, UNSEEN, pop, push

UNCONNECTED = -2


@jit
def meet_weighted(edges, in_edges, source, target, states, distances, parents):
    """Search from both ends in turn; return the vertex where the shortest path meets, and the path's length.

    Instead of the vertex it returns CONTRADICTION or UNCONNECTED. ``states`` is uint8[2, n] of UNSEEN, ``distances``
    float64[2, n] and ``parents`` int64[2, n].
    """
    capacity = len(edges[1]) + 1
    keys = np.empty((2, capacity), np.float64)
    tickets = np.empty((2, capacity), np.int64)
    owners = np.empty((2, capacity), np.uint32)
    sizes = np.ones(2, np.int64)
    used = np.ones(2, np.int64)
    for side in range(2):
        end = source if side == 0 else target
        states[side, end] = SEEN
        distances[side, end] = 0.0
        parents[side, end] = -1
        keys[side, 0] = 0.0
        tickets[side, 0] = 0
        owners[side, 0] = end
    best = np.inf
    meeting = np.int64(-1)
    side = 1
    while sizes[0] > 0 and sizes[1] > 0:
        side = 1 - side
        distance = keys[side, 0]
        u = owners[side, tickets[side, 0]]
        sizes[side] -= 1
        pop(keys[side], tickets[side], sizes[side])
        if states[side, u] == SETTLED:
            continue
        states[side, u] = SETTLED
        if states[1 - side, u] == SETTLED:
            return meeting, best
        indptr, neighbors, weights = edges if side == 0 else in_edges
        for e in range(indptr[u], indptr[u + 1]):
            v = neighbors[e]
            length = distance + weights[e]
            if states[side, v] == SETTLED:
                if length < distances[side, v]:
                    return CONTRADICTION, best
            elif states[side, v] == UNSEEN or length < distances[side, v]:
                states[side, v] = SEEN
                distances[side, v] = length
                parents[side, v] = u
                ticket = used[side]
                owners[side, ticket] = v
                push(keys[side], tickets[side], sizes[side], length, ticket)
                sizes[side] += 1
                used[side] += 1
                if states[1 - side, v] != UNSEEN:
                    total = length + distances[1 - side, v]
                    if meeting < 0 or total < best:
                        best = total
                        meeting = v
    return UNCONNECTED, best

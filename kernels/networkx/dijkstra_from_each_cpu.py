"""Dijkstra's algorithm from each vertex in turn, in NetworkX's order; many searches a call."""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.library.jit_cpu import jit
from gpu_pregel.kernels.networkx.bucket_dijkstra_cpu import bucket_dijkstra
from gpu_pregel.kernels.networkx.dijkstra_cpu import CONTRADICTION, UNSEEN, dijkstra, mark_floats


@jit
def dijkstra_from_each(
    indptr,
    neighbors,
    weights,
    floats,
    cutoff,
    first,
    limit,
    keys,
    tickets,
    owners,
    rings,
    filled,
    states,
    distances,
    parents,
    marks,
    spots,
    order,
    lengths,
    places,
    kinds,
    ends,
):
    """Search from each vertex from ``first`` on until ``limit`` are settled in all; return how many searches that took.

    A search that contradicts itself, by an edge of negative weight, ends the last search before it; it returns 0 if
    that is the first one.

    Parameters
    ----------
    floats : bool[m]
        Which weights are floats if others are not; empty if all are of one type.
    keys, tickets, owners : float64[m + 1], int64[m + 1], uint32[m + 1]
        Scratch memory for the heap of ``dijkstra``; without keys, for that of ``bucket_dijkstra``.
    rings, filled : int64[2, buckets], uint64[buckets / 64]
        That of ``bucket_dijkstra``; empty if it is not to be used.
    states : uint8[n]
        UNSEEN, which it is again afterwards.
    distances, parents, marks, spots : float64[n], int64[n], bool[n], int64[n]
        Scratch memory.
    order : uint32[limit + n]
        Gets the vertices as they are settled, search after search.
    lengths, kinds : float64[limit + n], bool[limit + n]
        Get the distance of each, and with ``floats`` whether a float is among the weights of its path.
    places : int64[limit + n]
        Gets the place in its search of the vertex from which each was found; 0 for the sources.
    ends : int64[n]
        Gets the end of each search in ``order``.
    """
    n = len(states)
    sources = np.empty(1, np.int64)
    total = 0
    last = first
    while last < n and (total < limit or last == first):
        sources[0] = last
        settled = order[total : total + n]
        if len(filled) > 0:
            count = bucket_dijkstra(
                *(indptr, neighbors, weights, cutoff, -1, sources, rings, filled, tickets),
                *(owners, states, distances, parents, settled),
            )
        else:
            count = dijkstra(
                *(indptr, neighbors, weights, cutoff, -1, sources, keys, tickets),
                *(owners, states, distances, parents, settled),
            )
        if count == CONTRADICTION:
            states[:] = UNSEEN
            break
        if len(floats) > 0:
            mark_floats(indptr, neighbors, floats, settled[:count], parents, marks)
        for i in range(count):
            v = settled[i]
            states[v] = UNSEEN
            spots[v] = i
            lengths[total + i] = distances[v]
            places[total + i] = spots[parents[v]] if i > 0 else 0
            if len(floats) > 0:
                kinds[total + i] = marks[v]
        total += count
        ends[last - first] = total
        last += 1
    return last - first

"""Kernels of weighted betweenness centrality on the CPU: Dijkstra's algorithm from one source after the other.

Each block of sources has its row of every array. ``order`` has the reached vertices by distance, and ``ranks`` their
positions in it. A vertex in the heap has the rank -2 - (its position there), one that is not reached -1 and infinite
distance. If ``wide``, counts of paths exceed the range of float64 and ``paths`` are their logarithms.

An edge may be so short that its length does not change the rounded distance. Vertices of equal distance are ordered by
``hops``: how many such edges lead to them.
"""

from __future__ import annotations

import math

import numpy as np

from gpu_pregel.kernels.algorithms.path_counts_cpu import LIMIT
from gpu_pregel.kernels.library.jit_cpu import always_inline, inline, jit
from gpu_pregel.kernels.library.work_cpu import claim


@always_inline
def _is_before(u, v, distances, hops):
    return distances[u] < distances[v] or (distances[u] == distances[v] and hops[u] < hops[v])


@always_inline
def move_up(heap, place, vertex, distances, hops, ranks):
    """Put a vertex at a free place of the heap, or above it; without ``hops`` that are counted, pass ``distances``."""
    while place > 0:
        above = (place - 1) >> 1
        other = heap[above]
        if not _is_before(vertex, other, distances, hops):
            break
        heap[place] = other
        ranks[other] = -2 - place
        place = above
    heap[place] = vertex
    ranks[vertex] = -2 - place


@always_inline
def move_down(heap, size, vertex, distances, hops, ranks):
    """Put a vertex at the free top of the heap, or below it; without ``hops`` that are counted, pass ``distances``."""
    place = 0
    while True:
        below = 2 * place + 1
        if below >= size:
            break
        if below + 1 < size and _is_before(heap[below + 1], heap[below], distances, hops):
            below += 1
        other = heap[below]
        if not _is_before(other, vertex, distances, hops):
            break
        heap[place] = other
        ranks[other] = -2 - place
        place = below
    heap[place] = vertex
    ranks[vertex] = -2 - place


@always_inline
def _is_predecessor(u, v, length, distances, hops):
    """Whether a shortest path to v, which is reached, ends with the edge from u."""
    return distances[u] + length == distances[v] and _is_before(u, v, distances, hops)


@inline
def _count_paths(in_indptr, in_indices, in_weights, wide, distances, hops, paths, v):
    """Return the number of shortest paths to the vertex that was reached last."""
    total = 0.0
    highest = -np.inf
    if wide:
        for e in range(in_indptr[v], in_indptr[v + 1]):
            u = in_indices[e]
            if _is_predecessor(u, v, in_weights[e], distances, hops):
                highest = max(highest, paths[u])
    for e in range(in_indptr[v], in_indptr[v + 1]):
        u = in_indices[e]
        if _is_predecessor(u, v, in_weights[e], distances, hops):
            total += math.exp(paths[u] - highest) if wide else paths[u]
    return highest + math.log(total) if wide else total


@inline
def _search(out, back, source, wide, heap, order, distances, hops, ranks, paths):
    """Find the distances from a source and the numbers of paths; return how many vertices it reaches.

    The number is negative if a count overflows.
    """
    indptr, indices, weights = out
    in_indptr, in_indices, in_weights = back
    distances[source] = 0.0
    hops[source] = 0
    heap[0] = source
    ranks[source] = -2
    size = 1
    reached = 0
    sign = 1
    while size > 0:
        u = np.int64(heap[0])
        size -= 1
        if size > 0:
            move_down(heap, size, np.int64(heap[size]), distances, hops, ranks)
        order[reached] = u
        ranks[u] = reached
        reached += 1
        if reached == 1:
            paths[u] = 0.0 if wide else 1.0
        else:
            paths[u] = _count_paths(in_indptr, in_indices, in_weights, wide, distances, hops, paths, u)
            if not wide and paths[u] > LIMIT:
                sign = -1
        for e in range(indptr[u], indptr[u + 1]):
            v = np.int64(indices[e])
            distance = distances[u] + weights[e]
            if ranks[v] < 0 and distance <= distances[v] and distance < np.inf:
                hop = hops[u] + np.int32(1) if distance == distances[u] else np.int32(0)
                if distance < distances[v] or hop < hops[v]:
                    distances[v] = distance
                    hops[v] = hop
                    place = -2 - ranks[v]
                    if ranks[v] == -1:
                        place = size
                        size += 1
                    move_up(heap, place, v, distances, hops, ranks)
    return sign * reached


@inline
def _return(out, wide, reached, order, distances, hops, ranks, paths, dependencies, extra, scores, edges):
    """Add up the dependencies from the farthest vertex to the source."""
    indptr, indices, weights = out
    for i in range(reached - 1, -1, -1):
        u = np.int64(order[i])
        total = 0.0
        for e in range(indptr[u], indptr[u + 1]):
            v = indices[e]
            if ranks[v] > i and _is_predecessor(u, v, weights[e], distances, hops):
                part = (1.0 + dependencies[v]) * (math.exp(paths[u] - paths[v]) if wide else paths[u] / paths[v])
                if len(edges) > 0:
                    edges[e] += part
                total += part
        dependencies[u] = total
        scores[u] += extra * (reached - 1) if i == 0 else total + extra


@inline
def _clear(reached, order, distances, hops, ranks):
    """Forget the reached vertices."""
    for i in range(reached):
        distances[order[i]] = np.inf
        ranks[order[i]] = -1


@jit
def search_blocks(
    work, out, back, sources, blocks, heap, order, distances, hops, ranks, paths, dependencies, extra, scores, edges
):
    """Search from all sources; each item is a block of them."""
    block, last_block = claim(work)
    while block < last_block:
        found = (order[block], distances[block], hops[block], ranks[block])
        for k in range(len(sources) * block // blocks, len(sources) * (block + 1) // blocks):
            wide = False
            reached = _search(out, back, sources[k], wide, heap[block], *found, paths[block])
            if reached < 0:
                _clear(-reached, *found)
                wide = True
                reached = _search(out, back, sources[k], wide, heap[block], *found, paths[block])
            results = (dependencies[block], extra, scores[block], edges[block])
            _return(out, wide, reached, *found, paths[block], *results)
            _clear(reached, *found)
        block, last_block = claim(work)

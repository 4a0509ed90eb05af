"""Sums over shortest paths from many sources, by breadth-first search or by Dijkstra's algorithm.

``out`` has ``indptr``, ``indices`` and ``weights`` without parallel edges, ``back`` those of the in-edges. Unless
``weighted``, all lengths are 1 and the weights are not read; lengths are above 0 where dependencies are summed.
"""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.algorithms.weighted_paths_cpu import move_down, move_up
from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.library.work_cpu import claim

BY_PATHS, TO_TARGETS, EVENLY = 0, 1, 2
"""How a dependency is divided between predecessors: by numbers of paths; so at targets, else evenly; evenly, and not at
all where the source is one of them."""


@inline
def _search(out, weighted, cutoff, count, heap, order, distances, ranks):
    """Find the vertices within the cutoff of the first ``count`` of ``order``; return their number.

    ``order`` gets them by distance. A vertex in the heap has the rank -2 - (its position there), others -1.
    """
    indptr, indices, weights = out
    for i in range(count):
        distances[order[i]] = 0.0
    if not weighted:
        begin = 0
        while begin < count:
            u = order[begin]
            begin += 1
            distance = distances[u] + 1.0
            if distance > cutoff:
                break
            for e in range(indptr[u], indptr[u + 1]):
                v = indices[e]
                if distances[v] == np.inf:
                    distances[v] = distance
                    order[count] = v
                    count += 1
        return count
    size = count
    for i in range(count):
        heap[i] = order[i]
        ranks[order[i]] = -2 - i
    reached = 0
    while size > 0:
        u = np.int64(heap[0])
        size -= 1
        if size > 0:
            move_down(heap, size, np.int64(heap[size]), distances, distances, ranks)
        order[reached] = u
        ranks[u] = reached
        reached += 1
        for e in range(indptr[u], indptr[u + 1]):
            v = np.int64(indices[e])
            distance = distances[u] + weights[e]
            if ranks[v] < 0 and distance < distances[v] and distance <= cutoff:
                distances[v] = distance
                place = -2 - ranks[v]
                if ranks[v] == -1:
                    place = size
                    size += 1
                move_up(heap, place, v, distances, distances, ranks)
    return reached


@inline
def _is_predecessor(u, v, length, distances):
    return distances[u] < distances[v] and distances[u] + length == distances[v]


@inline
def _count_paths(back, weighted, v, distances, paths):
    """Set the number of paths to v, and return its number of predecessors."""
    indptr, indices, weights = back
    total = 0.0
    count = 0
    for e in range(indptr[v], indptr[v + 1]):
        u = indices[e]
        if _is_predecessor(u, v, weights[e] if weighted else 1.0, distances):
            total += paths[u]
            count += 1
    paths[v] = total
    return count


@inline
def _divide(back, weighted, v, part, count, distances, paths, dependencies, edges):
    """Divide a dependency between the predecessors of v: evenly if they are ``count``, by paths if it is 0."""
    indptr, indices, weights = back
    for e in range(indptr[v], indptr[v + 1]):
        u = indices[e]
        if _is_predecessor(u, v, weights[e] if weighted else 1.0, distances):
            flow = part / count if count > 0 else paths[u] / paths[v] * part
            dependencies[u] += flow
            if len(edges) > 0:
                edges[e] += flow


@inline
def _is_adjacent(back, weighted, source, v, distances):
    """Return whether the source is a predecessor of v."""
    indptr, indices, weights = back
    for e in range(indptr[v], indptr[v + 1]):
        if indices[e] == source and _is_predecessor(source, v, weights[e] if weighted else 1.0, distances):
            return True
    return False


@jit
def add_dependencies(work, out, back, weighted, sources, blocks, cutoff, targets, shares, kind, scores, edges):
    """Add the dependency of each source on each vertex, times the source's share; each item is a block of sources.

    A vertex begins with what it has in ``targets``. Unless ``edges`` is empty, it gets what flows over each in-edge.
    """
    n = len(targets)
    heap, order = np.empty(n, np.uint32), np.empty(n, np.uint32)
    distances, ranks = np.full(n, np.inf), np.full(n, -1, np.int64)
    paths, dependencies = np.zeros(n), np.zeros(n)
    counts = np.zeros(n, np.int64)
    block, last_block = claim(work)
    while block < last_block:
        for k in range(len(sources) * block // blocks, len(sources) * (block + 1) // blocks):
            source = np.int64(sources[k])
            order[0] = source
            reached = _search(out, weighted, cutoff, 1, heap, order, distances, ranks)
            paths[source] = 1.0
            for i in range(1, reached):
                counts[order[i]] = _count_paths(back, weighted, np.int64(order[i]), distances, paths)
            for i in range(reached - 1, 0, -1):
                v = np.int64(order[i])
                scores[block, v] += shares[source] * dependencies[v]
                # The source has no predecessor; where it is one, it is the first, and the others get nothing.
                if kind == EVENLY and _is_adjacent(back, weighted, source, v, distances):
                    continue
                evenly = kind == EVENLY or (kind == TO_TARGETS and targets[v] == 0.0)
                part = targets[v] + dependencies[v]
                count = counts[v] if evenly else 0
                _divide(back, weighted, v, part, count, distances, paths, dependencies, edges[block])
            for i in range(reached):
                v = order[i]
                distances[v] = np.inf
                ranks[v] = -1
                paths[v] = 0.0
                dependencies[v] = 0.0
        block, last_block = claim(work)


@jit
def sum_distances(work, out, sources, chosen, figures):
    """Find for each source the number of ``chosen`` vertices at other distances than 0, and two sums over them.

    ``figures`` gets the number, the sum of distances, that of the inverses, and the number of all reached vertices.
    """
    n = len(chosen)
    heap, order = np.empty(n, np.uint32), np.empty(n, np.uint32)
    distances, ranks = np.full(n, np.inf), np.full(n, -1, np.int64)
    first, last = claim(work)
    while first < last:
        for k in range(first, last):
            order[0] = sources[k]
            reached = _search(out, True, np.inf, 1, heap, order, distances, ranks)
            count = 0
            total = 0.0
            inverses = 0.0
            for i in range(reached):
                v = order[i]
                if chosen[v] and distances[v] != 0.0:
                    count += 1
                    total += distances[v]
                    inverses += 1.0 / distances[v]
                distances[v] = np.inf
                ranks[v] = -1
            figures[k, 0] = count
            figures[k, 1] = total
            figures[k, 2] = inverses
            figures[k, 3] = reached
        first, last = claim(work)


@jit
def find_distances(out, weighted, sources, distances):
    """Set the distance of each vertex from the nearest source, in ``distances`` of infinities."""
    n = len(distances)
    heap, order, ranks = np.empty(n, np.uint32), np.empty(n, np.uint32), np.full(n, -1, np.int64)
    for i in range(len(sources)):
        order[i] = sources[i]
    return _search(out, weighted, np.inf, len(sources), heap, order, distances, ranks)

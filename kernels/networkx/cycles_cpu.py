"""Cycles, chains and bridges in the order of NetworkX, on one thread."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.kernels.library.jit_cpu import inline, jit


@jit
def walk_chains(firsts, seconds, order, numbers, parents, sources, targets, ends):
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
def find_local_bridges(indptr, neighbors, sorted_indptr, sorted_indices, is_local):
    """Mark the edges to later vertices whose ends have no common neighbour."""
    for u in range(len(indptr) - 1):
        for e in range(indptr[u], indptr[u + 1]):
            v = neighbors[e]
            is_local[e] = u < v and not _have_common(sorted_indptr, sorted_indices, u, np.int64(v))


@jit
def distance_without_edge(indptr, neighbors, u, v, run, stamps, queues):
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


@jit
def find_cycle(indptr, neighbors, starts, directed, path):
    """Search from each of ``starts`` for an edge to a vertex on the path to it; return the length of the cycle, or 0.

    ``path``, uint32[n], gets the vertices of the cycle. There are no parallel edges.
    """
    n = len(indptr) - 1
    known, active = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    edges = np.empty(n, np.int64)
    for start in starts:
        if known[start]:
            continue
        known[start] = active[start] = True
        path[0] = start
        edges[0] = indptr[start]
        height = 1
        while height > 0:
            u = path[height - 1]
            e, end = edges[height - 1], indptr[u + 1]
            entered = False
            while e < end and not entered:
                v = neighbors[e]
                e += 1
                if active[v] and (directed or height < 2 or v != path[height - 2]):
                    first = 0
                    while path[first] != v:
                        first += 1
                    for i in range(first, height):
                        path[i - first] = path[i]
                    return height - first
                entered = not known[v]
            if entered:
                edges[height - 1] = e
                known[v] = active[v] = True
                path[height] = v
                edges[height] = indptr[v]
                height += 1
            else:
                active[u] = False
                height -= 1
    return 0


@inline
def _contains(indptr, indices, u, v):
    """Return whether the sorted row of u has v."""
    first, last = indptr[u], indptr[u + 1]
    while first < last:
        middle = (first + last) // 2
        if indices[middle] < v:
            first = middle + 1
        else:
            last = middle
    return first < indptr[u + 1] and indices[first] == v


@jit
def cycle_basis(indptr, neighbors, sorted_indptr, sorted_indices, root):
    """Find a basis of the cycles as Paton does; return the vertices by cycle, and where each cycle ends.

    The first spanning tree grows from ``root``, if it is not -1; then each grows from the last vertex that is left.
    """
    n = len(indptr) - 1
    parents = np.full(n, -1, np.int64)
    done = np.zeros(n, np.bool_)
    stack = np.empty(n, np.int64)
    vertices, ends = np.empty(1024, np.uint32), np.empty(len(neighbors), np.int64)
    size = count = 0
    left = n - 1
    while left >= 0:
        if root < 0:
            root = left
            left -= 1
        if parents[root] >= 0:
            root = -1
            continue
        parents[root] = root
        stack[0] = root
        root = -1
        height = 1
        while height > 0:
            height -= 1
            u = stack[height]
            done[u] = True
            for e in range(indptr[u], indptr[u + 1]):
                v = np.int64(neighbors[e])
                if parents[v] < 0:
                    parents[v] = u
                    stack[height] = v
                    height += 1
                    continue
                if done[v] and v != u:
                    continue
                # The cycle leads along the tree to the next vertex that has an edge to v.
                other = v
                while True:
                    if size + 2 > len(vertices):
                        longer = np.empty(2 * len(vertices), np.uint32)
                        longer[:size] = vertices[:size]
                        vertices = longer
                    vertices[size] = other
                    size += 1
                    if u == v:
                        break
                    if other == v:
                        other = u
                    elif other != u and _contains(sorted_indptr, sorted_indices, v, other):
                        break
                    else:
                        other = parents[other]
                ends[count] = size
                count += 1
    return vertices[:size], ends[:count]


@jit
def shortest_cycle(indptr, neighbors, first, last, shortest, depths, parents, queue):
    """Return the length of the shortest cycle that searches from vertices ``first`` to ``last`` find below a bound.

    ``depths``, int64[n], is -1 before and after.
    """
    for start in range(first, last):
        depths[start] = 0
        queue[0] = start
        parents[start] = start
        head = 0
        tail = 1
        while head < tail:
            u = queue[head]
            head += 1
            if 2 * depths[u] + 1 >= shortest:
                break
            for e in range(indptr[u], indptr[u + 1]):
                v = neighbors[e]
                if depths[v] < 0:
                    depths[v] = depths[u] + 1
                    parents[v] = u
                    queue[tail] = v
                    tail += 1
                elif v != parents[u]:
                    shortest = min(shortest, depths[u] + depths[v] + 1)
        for i in range(tail):
            depths[queue[i]] = -1
    return shortest


@jit
def walk_edges(indptr, neighbors, reverse, start, walk):
    """Follow every edge that can be reached once, as Hierholzer does; return the number of vertices in ``walk``.

    ``reverse`` has the position of the same edge in the other row, or its own position if the graph is directed. The
    vertices are in the order in which none of their edges is left.
    """
    n = len(indptr) - 1
    seen = np.zeros(len(neighbors), np.bool_)
    edges = np.empty(n, np.int64)
    edges[:] = indptr[:n]
    stack = np.empty(len(neighbors) + 1, np.uint32)
    stack[0] = start
    height = 1
    count = 0
    while height > 0:
        u = stack[height - 1]
        e, end = edges[u], indptr[u + 1]
        while e < end and seen[e]:
            e += 1
        if e == end:
            edges[u] = e
            walk[count] = u
            count += 1
            height -= 1
            continue
        edges[u] = e + 1
        seen[e] = True
        seen[reverse[e]] = True
        stack[height] = neighbors[e]
        height += 1
    return count

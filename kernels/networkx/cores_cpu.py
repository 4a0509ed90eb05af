"""Cores, onion layers and trusses, by removing vertices or edges one after the other, on one thread."""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.library.sorted_rows import find


@jit
def peel(indptr, neighbors, cores):
    """Find the core numbers; parallel edges count. ``cores`` begins with the degrees.

    Vladimir Batagelj, Matjaž Zaveršnik: An O(m) algorithm for cores decomposition of networks, 2003.
    """
    n = len(cores)
    highest = 0
    for v in range(n):
        highest = max(highest, cores[v])
    begins = np.zeros(highest + 2, np.int64)
    for v in range(n):
        begins[cores[v] + 1] += 1
    for degree in range(1, highest + 2):
        begins[degree] += begins[degree - 1]
    order, places = np.empty(n, np.int64), np.empty(n, np.int64)
    filled = begins.copy()
    for v in range(n):
        places[v] = filled[cores[v]]
        order[places[v]] = v
        filled[cores[v]] += 1
    for i in range(n):
        v = order[i]
        for e in range(indptr[v], indptr[v + 1]):
            u = neighbors[e]
            if cores[u] > cores[v]:
                # Swap u with the first vertex of its degree, then make it the last of one less.
                first = begins[cores[u]]
                other = order[first]
                order[first] = u
                order[places[u]] = other
                places[other] = places[u]
                places[u] = first
                begins[cores[u]] += 1
                cores[u] -= 1


@jit
def find_layers(indptr, neighbors, degrees, layers, at_removal):
    """Set the onion layer of each vertex, and its degree when the layer is removed; isolated vertices are layer 1."""
    n = len(layers)
    current, following = np.empty(n, np.int64), np.empty(n, np.int64)
    left = n
    size = 0
    for v in range(n):
        if degrees[v] == 0:
            layers[v] = 1
            left -= 1
    layer = 2 if left < n else 1
    core = 0
    while left > 0:
        if size == 0:
            lowest = np.iinfo(np.int64).max
            for v in range(n):
                if layers[v] == 0:
                    lowest = min(lowest, degrees[v])
            core = lowest
            for v in range(n):
                if layers[v] == 0 and degrees[v] <= core:
                    current[size] = v
                    size += 1
        for i in range(size):
            layers[current[i]] = layer
            at_removal[current[i]] = degrees[current[i]]
        left -= size
        count = 0
        for i in range(size):
            v = current[i]
            for e in range(indptr[v], indptr[v + 1]):
                u = neighbors[e]
                if layers[u] == 0:
                    degrees[u] -= 1
                    if degrees[u] == core:
                        following[count] = u
                        count += 1
        current, following = following, current
        size = count
        layer += 1


@inline
def _find(neighbors, begin, end, v):
    """Return where v is in a sorted row."""
    while begin < end:
        middle = (begin + end) >> 1
        if neighbors[middle] < v:
            begin = middle + 1
        else:
            end = middle
    return begin


@inline
def _lose(indptr, neighbors, u, e, need, support, queue, tail):
    """Take a triangle from the edge e of u, and queue it if it has too few left; return the end of the queue."""
    v = np.int64(neighbors[e])
    back = _find(neighbors, indptr[v], indptr[v + 1], u)
    support[e] -= 1
    support[back] -= 1
    if support[e] == need - 1:
        queue[tail] = e
        tail += 1
    return tail


@jit
def peel_edges(indptr, neighbors, sources, need, support, kept):
    """Remove edges with fewer than ``need`` triangles until there are none; ``support`` has the triangles of each.

    Rows are sorted, without self-loops; ``kept`` begins with True for all.
    """
    queue = np.empty(len(neighbors), np.int64)
    tail = 0
    for e in range(len(neighbors)):
        if sources[e] < neighbors[e] and support[e] < need:
            queue[tail] = e
            tail += 1
    head = 0
    while head < tail:
        edge = queue[head]
        head += 1
        u = np.int64(sources[edge])
        v = np.int64(neighbors[edge])
        kept[edge] = False
        kept[_find(neighbors, indptr[v], indptr[v + 1], u)] = False
        if indptr[u + 1] - indptr[u] > indptr[v + 1] - indptr[v]:
            u, v = v, u
        # The longer row, as of a hub, is not read as a whole.
        f = indptr[v]
        for e in range(indptr[u], indptr[u + 1]):
            f = find(neighbors, f, indptr[v + 1], neighbors[e])
            if f == indptr[v + 1]:
                break
            if neighbors[f] == neighbors[e] and kept[e] and kept[f]:
                w = np.int64(neighbors[e])
                first = e if u < w else _find(neighbors, indptr[w], indptr[w + 1], u)
                second = f if v < w else _find(neighbors, indptr[w], indptr[w + 1], v)
                tail = _lose(indptr, neighbors, min(u, w), first, need, support, queue, tail)
                tail = _lose(indptr, neighbors, min(v, w), second, need, support, queue, tail)

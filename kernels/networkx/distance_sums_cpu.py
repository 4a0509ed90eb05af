"""Sums over the distances of all pairs of vertices, which breadth-first searches find."""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.library.jit_cpu import jit
from gpu_pregel.kernels.library.work_cpu import claim


@jit
def hop_moments(work, indptr, neighbors, degrees, moments):
    """Search from each vertex; a work item is one of them.

    ``moments``, int64[n, 2], gets the sum of the squared distances of the vertices reached, and that of the distances
    times the degrees.
    """
    n = len(indptr) - 1
    first, last = claim(work)
    if first < last:
        queue = np.empty(n, np.uint32)
        depths = np.full(n, -1, np.int64)
    while first < last:
        for source in range(first, last):
            queue[0] = source
            depths[source] = 0
            begin = 0
            count = 1
            while begin < count:
                u = queue[begin]
                begin += 1
                depth = depths[u]
                moments[source, 0] += depth * depth
                moments[source, 1] += depth * degrees[u]
                for e in range(indptr[u], indptr[u + 1]):
                    v = neighbors[e]
                    if depths[v] < 0:
                        depths[v] = depth + 1
                        queue[count] = v
                        count += 1
            for i in range(count):
                depths[queue[i]] = -1
        first, last = claim(work)


@jit
def local_efficiencies(work, indptr, neighbors, efficiencies):
    """Find the mean inverse distance of the pairs of neighbours of each vertex in the graph of these; float64[n].

    A work item is a vertex.
    """
    n = len(indptr) - 1
    first, last = claim(work)
    if first < last:
        places = np.full(n, -1, np.int64)
        largest = np.int64(0)
        for v in range(n):
            largest = max(largest, indptr[v + 1] - indptr[v])
        queue = np.empty(largest, np.int64)
        depths = np.empty(largest, np.int64)
        starts = np.empty(largest + 1, np.int64)
        capacity = np.int64(1024)
        members = np.empty(capacity, np.uint32)
    while first < last:
        for center in range(first, last):
            begin, end = indptr[center], indptr[center + 1]
            size = end - begin
            for i in range(size):
                places[neighbors[begin + i]] = i
            total = np.int64(0)
            for i in range(size):
                starts[i] = total
                u = neighbors[begin + i]
                if total + indptr[u + 1] - indptr[u] > capacity:
                    capacity = 2 * (total + indptr[u + 1] - indptr[u])
                    larger = np.empty(capacity, np.uint32)
                    larger[:total] = members[:total]
                    members = larger
                for e in range(indptr[u], indptr[u + 1]):
                    place = places[neighbors[e]]
                    if place >= 0:
                        members[total] = place
                        total += 1
            starts[size] = total
            for i in range(size):
                places[neighbors[begin + i]] = -1
            inverses = 0.0
            for source in range(size):
                depths[:size] = -1
                depths[source] = 0
                queue[0] = source
                head = 0
                count = 1
                while head < count:
                    i = queue[head]
                    head += 1
                    depth = depths[i]
                    if depth > 0:
                        inverses += 1.0 / depth
                    for e in range(starts[i], starts[i + 1]):
                        k = np.int64(members[e])
                        if depths[k] < 0:
                            depths[k] = depth + 1
                            queue[count] = k
                            count += 1
            efficiencies[center] = inverses / (size * (size - 1)) if size > 1 else 0.0
        first, last = claim(work)

"""The Floyd-Warshall algorithm on a matrix of distances, float64[n, n], one vertex on the way after the other."""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.library.jit_cpu import jit
from gpu_pregel.kernels.library.work_cpu import claim


@jit
def shorten(work, row, column, distances):
    """Take the way through a vertex where it is shorter; a work item is a row of the matrix.

    ``row`` and ``column`` are copies of those of the vertex.
    """
    first, last = claim(work)
    while first < last:
        for u in range(first, last):
            start = column[u]
            if start < np.inf:
                for v in range(len(row)):
                    length = row[v] + start
                    if length < distances[u, v]:
                        distances[u, v] = length
        first, last = claim(work)


@jit
def shorten_with_predecessors(w, distances, predecessors, times):
    """Take the way through ``w`` where it is shorter, and note the vertex before each, one row after the other.

    ``times``, int32[n, n], is -1 where there is no predecessor yet; it gets the ``w`` that brought the first.
    """
    n = len(distances)
    for u in range(n):
        if distances[u, w] < np.inf:
            for v in range(n):
                # The first part changes in this loop if a negative cycle passes through w.
                length = distances[u, w] + distances[w, v]
                if length < distances[u, v]:
                    distances[u, v] = length
                    if predecessors[u, v] < 0:
                        times[u, v] = w
                    predecessors[u, v] = predecessors[w, v]

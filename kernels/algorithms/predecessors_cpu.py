"""Kernels that find the predecessors of vertices on shortest paths on the CPU, from the words of the distances."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.kernels.algorithms.sssp_cpu import add_weight
from gpu_pregel.kernels.library.atomics_cpu import fetch_and_add
from gpu_pregel.kernels.library.jit_cpu import jit
from gpu_pregel.kernels.library.work_cpu import claim


@jit
def find_predecessors(work, indptr, indices, weights, unreached, distances, predecessors, figures):
    """Find the smallest predecessor at a smaller distance of every vertex reached; count those that have none.

    ``indptr`` and ``indices`` are the in-edges. Vertices without a predecessor get -1.
    """
    left = 0
    first, last = claim(work)
    while first < last:
        for v in range(first, last):
            distance = distances[v]
            found: Any = np.int64(-1)
            if distance != unreached:
                for e in range(indptr[v], indptr[v + 1]):
                    before = distances[indices[e]]
                    if before < distance and add_weight(before, weights[e]) == distance:
                        found = np.int64(indices[e])
                        break
                left += found < 0
            predecessors[v] = found
        first, last = claim(work)
    fetch_and_add(figures, 0, left)


@jit
def settle_plateaus(work, rows, in_rows, unreached, distances, predecessors, levels, queue):
    """Find predecessors at the same distance, by breadth-first search from the vertices that have one.

    Only edges of weight 0, or too small to change a sum, lead there. ``rows`` and ``in_rows`` are indptr, indices and
    weights of the out-edges and the in-edges; ``levels`` is 0 at first. Has one work item.
    """
    indptr, indices, weights = rows
    in_indptr, in_indices, in_weights = in_rows
    first, last = claim(work)
    while first < last:
        tail = 0
        for v in range(len(distances)):
            if predecessors[v] < 0 and distances[v] != unreached:
                for e in range(in_indptr[v], in_indptr[v + 1]):
                    u = in_indices[e]
                    is_tight = distances[u] == distances[v] and add_weight(distances[u], in_weights[e]) == distances[v]
                    # Level 1 has its predecessor from level 0, where levels is still 0.
                    if is_tight and predecessors[u] >= 0 and levels[u] == 0:
                        predecessors[v] = u
                        levels[v] = 1
                        queue[tail] = v
                        tail += 1
                        break
        i = 0
        while i < tail:
            u = queue[i]
            i += 1
            for e in range(indptr[u], indptr[u + 1]):
                v = indices[e]
                if distances[v] != distances[u] or add_weight(distances[u], weights[e]) != distances[v]:
                    continue
                if predecessors[v] < 0:
                    predecessors[v] = u
                    levels[v] = levels[u] + 1
                    queue[tail] = v
                    tail += 1
                elif levels[v] == levels[u] + 1 and u < predecessors[v]:
                    predecessors[v] = u
        first, last = claim(work)

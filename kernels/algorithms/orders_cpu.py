"""Serial searches on the CPU: a topological order, and an odd cycle. Each kernel has one work item."""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.library.jit_cpu import jit
from gpu_pregel.kernels.library.work_cpu import claim


@jit
def sort_topologically(work, indptr, indices, waiting, levels, order):
    """Order the vertices by level, then number; vertices on or behind a cycle keep the level -1 and are left out.

    ``waiting`` becomes the number of in-edges that are left of each vertex; ``waiting``, ``levels`` and ``order`` have
    int64[n].
    """
    n = len(levels)
    begin, end = claim(work)
    while begin < end:
        waiting[:] = 0
        for e in range(len(indices)):
            waiting[indices[e]] += 1
        size = 0
        for v in range(n):
            levels[v] = -1
            if waiting[v] == 0:
                levels[v] = 0
                order[size] = v
                size += 1
        head = 0
        while head < size:
            u = order[head]
            head += 1
            for e in range(indptr[u], indptr[u + 1]):
                v = indices[e]
                waiting[v] -= 1
                # The last of its predecessors is on the highest level, because the queue is in the order of levels.
                if waiting[v] == 0:
                    levels[v] = levels[u] + 1
                    order[size] = v
                    size += 1
        if size > 0:
            firsts = np.zeros(levels[order[size - 1]] + 2, np.int64)
            for v in range(n):
                firsts[levels[v] + 1] += levels[v] >= 0
            for level in range(1, len(firsts)):
                firsts[level] += firsts[level - 1]
            for v in range(n):
                if levels[v] >= 0:
                    order[firsts[levels[v]]] = v
                    firsts[levels[v]] += 1
        begin, end = claim(work)


@jit
def search_odd_edge(work, indptr, indices, root, parents, edge):
    """Search an undirected graph from ``root`` until an edge joins vertices at equal distances.

    ``parents``, int64[n], has -1 at first and the root as its own parent; ``edge``, int64[2], has -1 at first.
    """
    begin, end = claim(work)
    while begin < end:
        n = len(parents)
        hops = np.zeros(n, np.int64)
        queue = np.empty(n, np.int64)
        queue[0] = root
        parents[root] = root
        head = 0
        size = 1
        while head < size and edge[0] < 0:
            u = queue[head]
            head += 1
            for e in range(indptr[u], indptr[u + 1]):
                v = np.int64(indices[e])
                if parents[v] < 0:
                    parents[v] = u
                    hops[v] = hops[u] + 1
                    queue[size] = v
                    size += 1
                elif hops[v] == hops[u] and edge[0] < 0:
                    edge[0] = u
                    edge[1] = v
        begin, end = claim(work)

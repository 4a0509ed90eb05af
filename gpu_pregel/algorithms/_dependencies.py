"""Betweenness by operators: the dependencies of sources on all vertices, by Brandes's algorithm, on any device.

All sums are pulled in the order of rows, so that they are the same in every run. ``paths`` are the logarithms of the
numbers of shortest paths, which may exceed the range of float64.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.programs.frontier import Frontier
from gpu_pregel.host.programs.operators import process_edges, process_vertices
from gpu_pregel.kernels.library import atomics

Array = np.ndarray[Any, Any]


def _start(v: Any, levels: Any, paths: Any) -> Any:
    levels[v] = 0
    paths[v] = 0.0
    return 1


def _discover(u: Any, v: Any, weight: Any, levels: Any, level: Any) -> Any:
    """Reach a vertex, once."""
    return atomics.compare_and_swap(levels, v, -1, level)


def _is_unseen(v: Any, levels: Any, level: Any) -> Any:
    return atomics.load(levels, v) < 0


def _count_paths(v: Any, level: Any, indptr: Any, indices: Any, levels: Any, paths: Any) -> Any:
    """Add up the numbers of paths to the in-neighbours of the level before."""
    highest = 0.0
    for e in range(indptr[v], indptr[v + 1]):
        u = indices[e]
        if levels[u] == level - 1:
            highest = max(highest, paths[u])
    total = 0.0
    for e in range(indptr[v], indptr[v + 1]):
        u = indices[e]
        if levels[u] == level - 1:
            total += math.exp(paths[u] - highest)
    paths[v] = highest + math.log(total)
    return 0


def _depend(
    u: Any,
    level: Any,
    indptr: Any,
    indices: Any,
    levels: Any,
    paths: Any,
    dependencies: Any,
    extra: Any,
    scores: Any,
    edges: Any,
    has_edges: Any,
) -> Any:
    """Add up the dependencies over the out-edges to the next level; the source itself scores nothing."""
    total = 0.0
    for e in range(indptr[u], indptr[u + 1]):
        v = indices[e]
        if levels[v] == level + 1:
            part = (1.0 + dependencies[v]) * math.exp(paths[u] - paths[v])
            if has_edges:
                edges[e] += part
            total += part
    dependencies[u] = total
    if level > 0:
        scores[u] += total + extra
    return 1


def add_dependencies(
    graph: Graph, sources: Array, everything: Frontier, *, extra: float, with_edges: bool
) -> tuple[Array, Array | None]:
    """Return the sum of the dependencies of the sources on each vertex, and on each stored edge if ``with_edges``."""
    n = graph.num_vertices
    scores, paths, dependencies = (everything.full(0.0, np.float64) for _ in range(3))
    edges = everything.full(0.0, np.float64, max(1, graph.num_edges) if with_edges else 1)
    out, back = everything.csr()[:2], everything.csc()[:2]
    reached = np.zeros(n)
    for source in sources.tolist():
        levels = everything.full(-1, np.int32)
        frontiers = [everything.chosen([source])]
        process_vertices(_start, frontiers[0], [levels, paths])
        while frontier := process_edges(_discover, frontiers[-1], [levels, len(frontiers)], receives=_is_unseen):
            process_vertices(_count_paths, frontier, [len(frontiers), *back, levels, paths])
            frontiers.append(frontier)
        results = (dependencies, extra, scores, edges, with_edges)
        for level in range(len(frontiers) - 1, -1 if with_edges else 0, -1):
            process_vertices(_depend, frontiers[level], [level, *out, levels, paths, *results])
        reached[source] = sum(map(len, frontiers)) - 1
    return everything.download(scores) + extra * reached, everything.download(edges) if with_edges else None

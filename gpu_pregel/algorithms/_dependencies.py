"""Betweenness by operators: the dependencies of sources on all vertices, by Brandes's algorithm, on any device.

All sums are pulled in the order of rows, so that they are the same in every run. They need no distances: ``paths`` is 0
for vertices that are not reached yet, and so is ``ratios``, 1 + dependency, for those that the way back has not
reached. ``paths`` are 1 + ln(number of paths), whose numbers may exceed the range of float64.
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


def _discover(u: Any, v: Any, weight: Any, seen: Any) -> Any:
    """Reach a vertex, once."""
    return atomics.compare_and_swap(seen, v, 0, 1)


def _is_unseen(v: Any, seen: Any) -> Any:
    return atomics.load(seen, v) == 0


def _count_paths(v: Any, indptr: Any, indices: Any, paths: Any, sums: Any) -> Any:
    """Add up the numbers of paths to the in-neighbours that are reached."""
    highest = 0.0
    for e in range(indptr[v], indptr[v + 1]):
        highest = max(highest, paths[indices[e]])
    total = 0.0
    for e in range(indptr[v], indptr[v + 1]):
        count = paths[indices[e]]
        if count > 0.0:
            total += math.exp(count - highest)
    sums[v] = highest + math.log(total)
    return 0


def _settle_paths(v: Any, paths: Any, sums: Any) -> Any:
    paths[v] = sums[v]
    return 0


def _depend(u: Any, indptr: Any, indices: Any, paths: Any, ratios: Any, sums: Any, edges: Any, has_edges: Any) -> Any:
    """Add up the dependencies over the out-edges to the next level; unless the source is u, they are its own."""
    total = 0.0
    for e in range(indptr[u], indptr[u + 1]):
        v = indices[e]
        if ratios[v] > 0.0:
            part = ratios[v] * math.exp(paths[u] - paths[v])
            if has_edges:
                edges[e] += part
            total += part
    sums[u] = total
    return 0


def _settle_ratios(u: Any, ratios: Any, sums: Any, scores: Any, extra: Any) -> Any:
    ratios[u] = 1.0 + sums[u]
    scores[u] += sums[u] + extra
    return 1


def add_dependencies(
    graph: Graph, sources: Array, everything: Frontier, *, extra: float, with_edges: bool
) -> tuple[Array, Array | None]:
    """Return the sum of the dependencies of the sources on each vertex, and on each stored edge if ``with_edges``."""
    n = graph.num_vertices
    scores, sums = everything.full(0.0, np.float64), everything.full(0.0, np.float64)
    edges = everything.full(0.0, np.float64, max(1, graph.num_edges) if with_edges else 1)
    out, back = everything.csr()[:2], everything.csc()[:2]
    reached = np.zeros(n)
    for source in sources.tolist():
        first = np.zeros(n)
        first[source] = 1
        paths, seen = everything.upload(first), everything.upload(first.astype(np.int32))
        ratios = everything.full(0.0, np.float64)
        levels = [everything.chosen([source])]
        while frontier := process_edges(_discover, levels[-1], [seen], receives=_is_unseen):
            process_vertices(_count_paths, frontier, [*back, paths, sums])
            process_vertices(_settle_paths, frontier, [paths, sums])
            levels.append(frontier)
        for frontier in reversed(levels[1:]):
            process_vertices(_depend, frontier, [*out, paths, ratios, sums, edges, with_edges])
            reached[source] += process_vertices(_settle_ratios, frontier, [ratios, sums, scores, extra])
        if with_edges:
            process_vertices(_depend, levels[0], [*out, paths, ratios, sums, edges, True])
    return everything.download(scores) + extra * reached, everything.download(edges) if with_edges else None

"""Betweenness by operators: the dependencies of sources on all vertices, by Brandes's algorithm, on any device.

All sums are pulled in the order of rows, so that they are the same in every run. ``paths`` are the logarithms of the
numbers of shortest paths, which may exceed the range of float64.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.superstep.advance import Advance
from gpu_pregel.host.traverse.frontier import Frontier
from gpu_pregel.host.traverse.operators import process_edges, process_vertices
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
) -> tuple[Array, Array]:
    """Return the sum of the dependencies of the sources on each vertex, and on each stored edge if ``with_edges``."""
    n = graph.num_vertices
    scores, paths, dependencies = (everything.full(0.0, np.float64) for _ in range(3))
    edges = everything.full(0.0, np.float64, max(1, graph.num_stored_edges) if with_edges else 1)
    out, back = everything.csr()[:2], everything.csc()[:2]
    reached = np.zeros(n)
    for source in sources.tolist():
        levels = everything.full(-1, np.int32)
        frontiers = [everything.chosen([source])]
        process_vertices(_start, frontiers[0], [levels, paths])
        others = Advance("discovering vertices", everything.device, n - 1)
        while frontier := process_edges(_discover, frontiers[-1], [levels, len(frontiers)], receives=_is_unseen):
            others.take(len(frontier))
            process_vertices(_count_paths, frontier, [len(frontiers), *back, levels, paths])
            frontiers.append(frontier)
        results = (dependencies, extra, scores, edges, with_edges)
        for level in range(len(frontiers) - 1, -1 if with_edges else 0, -1):
            process_vertices(_depend, frontiers[level], [level, *out, levels, paths, *results])
        reached[source] = sum(map(len, frontiers)) - 1
    return everything.download(scores) + extra * reached, everything.download(edges)


# With weights.

_MANY = np.int32(np.iinfo(np.int32).max)
"""The hops of vertices that are not reached."""
_HALF_OF_LARGEST = 0.5 * np.finfo(np.float64).max


def _length(distance: Any, weight: Any) -> Any:
    """Return the length of a path with one edge more; beyond the range of float64 it is infinite."""
    if 0.5 * distance + 0.5 * weight > _HALF_OF_LARGEST:
        return np.inf
    return distance + weight


def _relax(u: Any, v: Any, weight: Any, distances: Any) -> Any:
    """Shorten the distance of a vertex."""
    distance = _length(atomics.load(distances, u), weight)
    return distance < atomics.min(distances, v, distance)


def _is_on_path(distances: Any, hops: Any, u: Any, v: Any, weight: Any) -> Any:
    """Whether a shortest path goes along an edge.

    It may be so short that its length does not change the rounded distance; then it leads to a vertex of more hops.
    """
    if distances[v] == np.inf or _length(distances[u], weight) != distances[v]:
        return False
    return distances[u] < distances[v] or hops[u] < hops[v]


def _find_hops(v: Any, indptr: Any, indices: Any, weights: Any, distances: Any, hops: Any) -> Any:
    """Set the hops of vertices that are reached from a smaller distance to 0; return whether v is none of them."""
    is_found = distances[v] == np.inf or distances[v] == 0.0
    for e in range(indptr[v], indptr[v + 1]):
        u = indices[e]
        if distances[u] < distances[v] and _length(distances[u], weights[e]) == distances[v]:
            is_found = True
    hops[v] = 0 if is_found else _MANY
    return 0 if is_found else 1


def _hop(u: Any, v: Any, weight: Any, distances: Any, hops: Any, hop: Any) -> Any:
    """Reach a vertex of the same distance, once."""
    if atomics.load(hops, u) != hop - 1 or distances[u] != distances[v] or distances[v] == np.inf:
        return False
    if _length(distances[u], weight) != distances[v]:
        return False
    return atomics.compare_and_swap(hops, v, _MANY, hop)


def _count_predecessors(v: Any, indptr: Any, indices: Any, weights: Any, distances: Any, hops: Any, left: Any) -> Any:
    count = 0
    for e in range(indptr[v], indptr[v + 1]):
        if _is_on_path(distances, hops, indices[e], v, weights[e]):
            count += 1
    left[v] = count
    return 0


def _release(u: Any, v: Any, weight: Any, distances: Any, hops: Any, left: Any) -> Any:
    """Put a vertex on the next level after its last predecessor."""
    return _is_on_path(distances, hops, u, v, weight) and atomics.add(left, v, -1) == 1


def _count_weighted_paths(
    v: Any, indptr: Any, indices: Any, weights: Any, distances: Any, hops: Any, paths: Any
) -> Any:
    """Add up the numbers of paths to the predecessors."""
    highest = -np.inf
    for e in range(indptr[v], indptr[v + 1]):
        if _is_on_path(distances, hops, indices[e], v, weights[e]):
            highest = max(highest, paths[indices[e]])
    total = 0.0
    for e in range(indptr[v], indptr[v + 1]):
        if _is_on_path(distances, hops, indices[e], v, weights[e]):
            total += math.exp(paths[indices[e]] - highest)
    paths[v] = highest + math.log(total)
    return 0


def _depend_weighted(
    u: Any,
    level: Any,
    indptr: Any,
    indices: Any,
    weights: Any,
    distances: Any,
    hops: Any,
    paths: Any,
    dependencies: Any,
    extra: Any,
    scores: Any,
    edges: Any,
    has_edges: Any,
) -> Any:
    """Add up the dependencies over the out-edges on shortest paths; the source itself scores nothing."""
    total = 0.0
    for e in range(indptr[u], indptr[u + 1]):
        v = indices[e]
        if _is_on_path(distances, hops, u, v, weights[e]):
            part = (1.0 + dependencies[v]) * math.exp(paths[u] - paths[v])
            if has_edges:
                edges[e] += part
            total += part
    dependencies[u] = total
    if level > 0:
        scores[u] += total + extra
    return 1


def _start_weighted(v: Any, distances: Any, paths: Any) -> Any:
    distances[v] = 0.0
    paths[v] = 0.0
    return 1


def add_weighted_dependencies(
    graph: Graph, sources: Array, everything: Frontier, *, extra: float, with_edges: bool
) -> tuple[Array, Array]:
    """Do as :func:`add_dependencies` with the weights of the edges as their lengths.

    Distances are found as by Bellman and Ford; a vertex is on the level after the last of its predecessors.
    """
    n = graph.num_vertices
    scores, paths, dependencies = (everything.full(0.0, np.float64) for _ in range(3))
    edges = everything.full(0.0, np.float64, max(1, graph.num_stored_edges) if with_edges else 1)
    left, hops = everything.full(0, np.int64), everything.full(0, np.int32)
    out, back = everything.csr(), everything.csc()
    reached = np.zeros(n)
    for source in sources.tolist():
        distances = everything.full(np.inf, np.float64)
        first = frontier = everything.chosen([source])
        process_vertices(_start_weighted, first, [distances, paths])
        rounds = Advance("shortening paths", everything.device, n)
        while frontier:
            rounds.take()
            frontier = process_edges(_relax, frontier, [distances])
        if process_vertices(_find_hops, everything, [*back, distances, hops]):
            frontier, hop = everything, 0
            while frontier:
                hop += 1
                frontier = process_edges(_hop, frontier, [distances, hops, hop])
        found = (distances, hops)
        process_vertices(_count_predecessors, everything, [*back, *found, left])
        frontiers = [first]
        others = Advance("ordering vertices", everything.device, n - 1)
        while frontier := process_edges(_release, frontiers[-1], [*found, left]):
            others.take(len(frontier))
            process_vertices(_count_weighted_paths, frontier, [*back, *found, paths])
            frontiers.append(frontier)
        results = (dependencies, extra, scores, edges, with_edges)
        for level in range(len(frontiers) - 1, -1 if with_edges else 0, -1):
            process_vertices(_depend_weighted, frontiers[level], [level, *out, *found, paths, *results])
        reached[source] = sum(map(len, frontiers)) - 1
    return everything.download(scores) + extra * reached, everything.download(edges)

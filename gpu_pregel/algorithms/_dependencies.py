"""Betweenness by operators: the dependencies of sources on all vertices, by Brandes's algorithm, on any device.

All sums are pulled in the order of rows, so that they are the same in every run. ``paths`` are the logarithms of the
numbers of shortest paths, which may exceed the range of float64.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpu_pregel.algorithms._driver import AlgorithmRun
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.superstep.advance import Advance
from gpu_pregel.host.traverse.frontier import Frontier
from gpu_pregel.host.traverse.operators import process_edges, process_vertices, reduce_rows
from gpu_pregel.kernels.library import atomics

Array = np.ndarray[Any, Any]


def _start(v: Any, levels: Any, paths: Any) -> None:
    levels[v] = 0
    paths[v] = 0.0


def _discover(u: Any, v: Any, weight: Any, levels: Any, level: Any) -> Any:
    """Reach a vertex, once."""
    return atomics.compare_and_swap(levels, v, -1, level)


def _is_unseen(v: Any, levels: Any, level: Any) -> Any:
    return atomics.load(levels, v) < 0


def _paths_before(v: Any, u: Any, weight: Any, level: Any, levels: Any, paths: Any, highest: Any) -> Any:
    """Return the logarithm of the number of paths to a vertex of the level before."""
    return paths[u] if levels[u] == level - 1 else -np.inf


def _keep_highest(v: Any, found: Any, level: Any, levels: Any, paths: Any, highest: Any) -> None:
    highest[v] = found


def _share_before(v: Any, u: Any, weight: Any, level: Any, levels: Any, paths: Any, highest: Any) -> Any:
    """Return the number of those paths in units of the largest such number."""
    return math.exp(paths[u] - highest[v]) if levels[u] == level - 1 else 0.0


def _keep_paths(v: Any, total: Any, level: Any, levels: Any, paths: Any, highest: Any) -> None:
    paths[v] = highest[v] + math.log(total)


def _dependency(
    u: Any, v: Any, weight: Any, level: Any, levels: Any, paths: Any, dependencies: Any, extra: Any, scores: Any
) -> Any:
    """Return the dependency on u by its edge to a vertex of the next level."""
    if levels[v] != level + 1:
        return 0.0
    return (1.0 + dependencies[v]) * math.exp(paths[u] - paths[v])


def _keep_dependency(
    u: Any, total: Any, level: Any, levels: Any, paths: Any, dependencies: Any, extra: Any, scores: Any
) -> None:
    """Keep the dependency; the source itself scores nothing."""
    dependencies[u] = total
    if level > 0:
        scores[u] += total + extra


def _depend(
    u: Any, level: Any, levels: Any, paths: Any, dependencies: Any, indptr: Any, indices: Any, edges: Any
) -> None:
    """Add to each out-edge to the next level the dependency by it."""
    for e in range(indptr[u], indptr[u + 1]):
        v = indices[e]
        if levels[v] == level + 1:
            edges[e] += (1.0 + dependencies[v]) * math.exp(paths[u] - paths[v])


_COUNTING: tuple[tuple[Any, Any, Any], ...] = (
    (_paths_before, "max", _keep_highest),
    (_share_before, "sum", _keep_paths),
)
"""What adds up the numbers of paths to the in-neighbours of the level before."""


def sum_dependencies(
    run: AlgorithmRun, graph: Graph, sources: Array, *, weighted: bool, extra: float, with_edges: bool
) -> tuple[Array, Array]:
    """Return the sum of the dependencies of the sources on each vertex, and on each stored edge if ``with_edges``."""
    add = _add_weighted_dependencies if weighted else _add_dependencies
    return add(graph, sources, run.frontier(graph=graph), extra=extra, with_edges=with_edges)


def _add_dependencies(
    graph: Graph, sources: Array, everything: Frontier, *, extra: float, with_edges: bool
) -> tuple[Array, Array]:
    n = graph.num_vertices
    scores, paths, dependencies = (everything.full(0.0, np.float64) for _ in range(3))
    edges = everything.full(0.0, np.float64, max(1, graph.num_stored_edges) if with_edges else 1)
    out = everything.csr()[:2]
    highest, reached = everything.full(0.0, np.float64), np.zeros(n)
    for source in sources.tolist():
        levels = everything.full(-1, np.int32)
        frontiers = [everything.chosen([source])]
        process_vertices(_start, frontiers[0], [levels, paths], returns=None)
        others = Advance("discovering vertices", everything.device, n - 1)
        while frontier := process_edges(_discover, frontiers[-1], [levels, len(frontiers)], receives=_is_unseen):
            others.take(len(frontier))
            arrays = [len(frontiers), levels, paths, highest]
            for message, combine, finish in _COUNTING:
                reduce_rows(message, combine, frontier, arrays, finish=finish, transpose=True, returns=None)
            frontiers.append(frontier)
        for level in range(len(frontiers) - 1, -1 if with_edges else 0, -1):
            own = [level, levels, paths, dependencies]
            reduce_rows(
                *(_dependency, "sum", frontiers[level], [*own, extra, scores]), finish=_keep_dependency, returns=None
            )
            if with_edges:
                process_vertices(_depend, frontiers[level], [*own, *out, edges], returns=None)
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


def _is_nearer(v: Any, u: Any, weight: Any, distances: Any, hops: Any) -> bool:
    """Whether a shortest path to v comes from a vertex of a smaller distance."""
    return bool(distances[u] < distances[v] and _length(distances[u], weight) == distances[v])


def _start_hops(v: Any, found: Any, distances: Any, hops: Any) -> Any:
    """Set the hops of vertices that are reached from a smaller distance to 0; return whether v is none of them."""
    is_found = found or distances[v] == np.inf or distances[v] == 0.0
    hops[v] = 0 if is_found else _MANY
    return 0 if is_found else 1


def _hop(u: Any, v: Any, weight: Any, distances: Any, hops: Any, hop: Any) -> Any:
    """Reach a vertex of the same distance, once."""
    if atomics.load(hops, u) != hop - 1 or distances[u] != distances[v] or distances[v] == np.inf:
        return False
    if _length(distances[u], weight) != distances[v]:
        return False
    return atomics.compare_and_swap(hops, v, _MANY, hop)


def _is_predecessor(v: Any, u: Any, weight: Any, distances: Any, hops: Any, left: Any) -> int:
    return 1 if _is_on_path(distances, hops, u, v, weight) else 0


def _keep_count(v: Any, count: Any, distances: Any, hops: Any, left: Any) -> None:
    left[v] = count


def _release(u: Any, v: Any, weight: Any, distances: Any, hops: Any, left: Any) -> Any:
    """Put a vertex on the next level after its last predecessor."""
    return _is_on_path(distances, hops, u, v, weight) and atomics.add(left, v, -1) == 1


def _weighted_paths_before(v: Any, u: Any, weight: Any, distances: Any, hops: Any, paths: Any, highest: Any) -> Any:
    """Return the logarithm of the number of paths to a predecessor."""
    return paths[u] if _is_on_path(distances, hops, u, v, weight) else -np.inf


def _keep_highest_weighted(v: Any, found: Any, distances: Any, hops: Any, paths: Any, highest: Any) -> None:
    highest[v] = found


def _weighted_share_before(v: Any, u: Any, weight: Any, distances: Any, hops: Any, paths: Any, highest: Any) -> Any:
    return math.exp(paths[u] - highest[v]) if _is_on_path(distances, hops, u, v, weight) else 0.0


def _keep_weighted_paths(v: Any, total: Any, distances: Any, hops: Any, paths: Any, highest: Any) -> None:
    paths[v] = highest[v] + math.log(total)


_WEIGHTED_COUNTING: tuple[tuple[Any, Any, Any], ...] = (
    (_weighted_paths_before, "max", _keep_highest_weighted),
    (_weighted_share_before, "sum", _keep_weighted_paths),
)
"""What adds up the numbers of paths to the predecessors."""


def _weighted_dependency(
    u: Any,
    v: Any,
    weight: Any,
    level: Any,
    distances: Any,
    hops: Any,
    paths: Any,
    dependencies: Any,
    extra: Any,
    scores: Any,
) -> Any:
    """Return the dependency on u by its edge to v, if that is on a shortest path."""
    if not _is_on_path(distances, hops, u, v, weight):
        return 0.0
    return (1.0 + dependencies[v]) * math.exp(paths[u] - paths[v])


def _keep_weighted_dependency(
    u: Any,
    total: Any,
    level: Any,
    distances: Any,
    hops: Any,
    paths: Any,
    dependencies: Any,
    extra: Any,
    scores: Any,
) -> None:
    """Keep the dependency; the source itself scores nothing."""
    dependencies[u] = total
    if level > 0:
        scores[u] += total + extra


def _depend_weighted(
    u: Any,
    distances: Any,
    hops: Any,
    paths: Any,
    dependencies: Any,
    indptr: Any,
    indices: Any,
    weights: Any,
    edges: Any,
) -> None:
    """Add to each out-edge on a shortest path the dependency by it."""
    for e in range(indptr[u], indptr[u + 1]):
        v = indices[e]
        if _is_on_path(distances, hops, u, v, weights[e]):
            edges[e] += (1.0 + dependencies[v]) * math.exp(paths[u] - paths[v])


def _start_weighted(v: Any, distances: Any, paths: Any) -> None:
    distances[v] = 0.0
    paths[v] = 0.0


def _add_weighted_dependencies(
    graph: Graph, sources: Array, everything: Frontier, *, extra: float, with_edges: bool
) -> tuple[Array, Array]:
    """Take the weights of the edges as their lengths.

    Distances are found as by Bellman and Ford; a vertex is on the level after the last of its predecessors.
    """
    n = graph.num_vertices
    scores, paths, dependencies = (everything.full(0.0, np.float64) for _ in range(3))
    edges = everything.full(0.0, np.float64, max(1, graph.num_stored_edges) if with_edges else 1)
    left, hops = everything.full(0, np.int64), everything.full(0, np.int32)
    out, highest, reached = everything.csr(), everything.full(0.0, np.float64), np.zeros(n)
    for source in sources.tolist():
        distances = everything.full(np.inf, np.float64)
        first = frontier = everything.chosen([source])
        process_vertices(_start_weighted, first, [distances, paths], returns=None)
        rounds = Advance("shortening paths", everything.device, n)
        while frontier:
            rounds.take()
            frontier = process_edges(_relax, frontier, [distances])
        given: dict[str, Any] = {"finish": _start_hops, "transpose": True, "returns": "sum"}
        if reduce_rows(_is_nearer, "or", everything, [distances, hops], **given):
            frontier, hop = everything, 0
            while frontier:
                hop += 1
                frontier = process_edges(_hop, frontier, [distances, hops, hop])
        found = (distances, hops)
        given = {"finish": _keep_count, "transpose": True, "returns": None}
        reduce_rows(_is_predecessor, "sum", everything, [*found, left], **given)
        frontiers = [first]
        others = Advance("ordering vertices", everything.device, n - 1)
        while frontier := process_edges(_release, frontiers[-1], [*found, left]):
            others.take(len(frontier))
            for message, combine, finish in _WEIGHTED_COUNTING:
                given = {"finish": finish, "transpose": True, "returns": None}
                reduce_rows(message, combine, frontier, [*found, paths, highest], **given)
            frontiers.append(frontier)
        for level in range(len(frontiers) - 1, -1 if with_edges else 0, -1):
            own, given = [*found, paths, dependencies], {"finish": _keep_weighted_dependency, "returns": None}
            reduce_rows(_weighted_dependency, "sum", frontiers[level], [level, *own, extra, scores], **given)
            if with_edges:
                process_vertices(_depend_weighted, frontiers[level], [*own, *out, edges], returns=None)
        reached[source] = sum(map(len, frontiers)) - 1
    return everything.download(scores) + extra * reached, everything.download(edges)

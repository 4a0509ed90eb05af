"""Communities of large modularity: Louvain's method, in NetworkX's order of vertices and ties, and Leiden's."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from gpu_pregel.algorithms.leiden import leiden
from gpu_pregel.host.graphs.edge_arrays import to_host
from gpu_pregel.kernels.networkx.communities_cpu import move_vertices
from gpu_pregel.kernels.networkx.rows_cpu import append_edges
from gpu_pregel.networkx.edge_lists import Edges, edges_once, merged
from gpu_pregel.networkx.graph import Array, BackendGraph
from gpu_pregel.networkx.groups import node_sets

_SEEDS = 1 << 32


def louvain_communities(
    G: BackendGraph,
    weight: str | None = "weight",
    resolution: float = 1,
    threshold: float = 1e-07,
    max_level: int | None = None,
    seed: Any = None,
) -> list[set[Any]]:
    """Return the communities of the last level."""
    levels = _louvain_levels(G, weight, resolution, threshold, seed)
    return node_sets(G, _last(levels, max_level))


def louvain_partitions(
    G: BackendGraph,
    weight: str | None = "weight",
    resolution: float = 1,
    threshold: float = 1e-07,
    seed: Any = None,
) -> Iterator[list[set[Any]]]:
    """Yield the communities of each level."""
    for labels in _louvain_levels(G, weight, resolution, threshold, seed):
        yield node_sets(G, labels)


def leiden_communities(
    G: BackendGraph,
    weight: str | None = "weight",
    resolution: float = 1,
    max_level: int | None = None,
    seed: Any = None,
) -> list[set[Any]]:
    """Return the communities of the last level."""
    return node_sets(G, _last(iter(_leiden_levels(G, weight, resolution, seed)), max_level))


def leiden_partitions(
    G: BackendGraph, weight: str | None = "weight", resolution: float = 1, seed: Any = None
) -> Iterator[list[set[Any]]]:
    """Yield the communities of each level."""
    for labels in _leiden_levels(G, weight, resolution, seed):
        yield node_sets(G, labels)


def _last(levels: Iterator[Array], max_level: int | None) -> Array:
    if max_level is not None:
        if max_level <= 0:
            raise ValueError("max_level argument must be a positive integer or None")
        levels = islice(levels, max_level)
    return deque(levels, maxlen=1).pop()


def _leiden_levels(G: BackendGraph, weight: str | None, resolution: float, seed: Any) -> list[Array]:
    """Return the community of each vertex at each level; isolated vertices are communities of their own."""
    if G.topology.m == 0:
        return [np.arange(len(G))]
    found = leiden(G.engine(weight), resolution=resolution, seed=seed.randrange(_SEEDS))
    return [to_host(level) for level in found.levels]


class _Level(NamedTuple):
    """A graph whose edges were added in this order.

    ``rows`` has ``indptr``, ``neighbors`` and weights of the out-edges, ``degrees`` a row for out-edges and one for
    in-edges, and ``size`` is the sum of the weights. ``whole`` says whether weights are integers.
    """

    n: int
    directed: bool
    whole: bool
    edges: Edges
    rows: Edges
    degrees: Array
    size: float


def _louvain_levels(
    G: BackendGraph, weight: str | None, resolution: float, threshold: float, seed: Any
) -> Iterator[Array]:
    """Yield the community of each vertex at each level."""
    labels = np.arange(len(G))
    if G.topology.m == 0:
        yield labels
        return
    level = _first_level(G, weight)
    quality = _modularity(level, labels, resolution)
    communities, _ = _search_level(level, resolution, seed)
    while True:
        labels = communities[labels]
        yield labels
        improved = _modularity(level, communities, resolution)
        if improved - quality <= threshold:
            return
        quality = improved
        level = _contracted(level, communities)
        communities, moved = _search_level(level, resolution, seed)
        if not moved:
            return


def _first_level(G: BackendGraph, weight: str | None) -> _Level:
    topology = G.topology
    values = G.edge_values(weight, mixed=True)
    whole = values is None or values.dtype.kind == "i"
    edges = edges_once(G, weight)
    if topology.multigraph:
        edges = merged(edges, len(G), both=not topology.directed)
    return _level(edges, len(G), directed=topology.directed, whole=whole)


def _level(edges: Edges, n: int, *, directed: bool, whole: bool) -> _Level:
    rows = _rows(edges, n, both=not directed)
    degrees = np.zeros((2, n))
    sources = np.repeat(np.arange(n), np.diff(rows.sources))
    degrees[0] = np.bincount(sources, rows.weights, n)
    if directed:
        degrees[1] = np.bincount(edges.targets, edges.weights, n)
        total = degrees[0] + degrees[1]
    else:
        loops = edges.select(edges.sources == edges.targets)
        degrees[0] += np.bincount(loops.sources, loops.weights, n)
        total = degrees[0]
    in_order = Edges(sources, rows.targets, rows.weights)
    if not directed:
        in_order = in_order.select(sources <= rows.targets)
    return _Level(n, directed, whole, in_order, rows, degrees, sum(total.tolist()) / 2)


def _rows(edges: Edges, n: int, *, both: bool) -> Edges:
    """Return ``indptr``, ``neighbors`` and weights of the graph to which these edges are added."""
    sources, targets = edges.sources.astype(np.uint32), edges.targets.astype(np.uint32)
    degrees = np.bincount(sources, minlength=n)
    if both:
        degrees += np.bincount(targets[sources != targets], minlength=n)
    indptr = np.zeros(n + 1, np.int64)
    np.cumsum(degrees, out=indptr[1:])
    neighbors, values = np.empty(indptr[-1], np.uint32), np.empty(indptr[-1])
    append_edges(sources, targets, edges.weights, both, indptr[:-1].copy(), neighbors, values)
    return Edges(indptr, neighbors, values)


def _contracted(level: _Level, communities: Array) -> _Level:
    """Return the graph of the communities."""
    edges = level.edges
    joined = Edges(communities[edges.sources], communities[edges.targets], edges.weights)
    n = int(communities.max()) + 1
    contracted = merged(joined, n, both=not level.directed)
    return _level(contracted, n, directed=level.directed, whole=level.whole)


def _search_level(level: _Level, resolution: float, seed: Any) -> tuple[Array, bool]:
    """Return the community of each vertex, numbered without gaps, and whether any moved."""
    order = list(range(level.n))
    seed.shuffle(order)
    labels = np.arange(level.n)
    community_degrees = level.degrees.copy()
    totals, found = np.empty(level.n + 1), np.full((2, level.n + 1), -1)
    square = level.size**2 if level.directed else 2 * level.size**2
    arguments = (
        *_neighborhoods(level), np.array(order), labels, level.directed, level.degrees, community_degrees, level.size,
        square, float(resolution), totals, found,
    )  # fmt: skip
    moved = False
    while move_vertices(*arguments):
        moved = True
    numbers: Array = np.unique(labels, return_inverse=True)[1]
    return numbers, moved


def _neighborhoods(level: _Level) -> Edges:
    """Return ``indptr``, ``neighbors`` and weights of the edges in both directions, without self-loops."""
    rows = level.rows
    sources = np.repeat(np.arange(level.n), np.diff(rows.sources))
    both = Edges(sources, rows.targets, rows.weights).without_loops()
    if level.directed:
        # A vertex's out-edges come first, then its in-edges in the order in which they were added.
        edges = level.edges.without_loops()
        joined = (np.concatenate(pair) for pair in zip(both, _reversed(edges), strict=True))
        both = merged(Edges(*joined), level.n, both=False)
    return _rows(both, level.n, both=False)


def _reversed(edges: Edges) -> Edges:
    return Edges(edges.targets, edges.sources, edges.weights)


def _modularity(level: _Level, communities: Array, resolution: float) -> float:
    edges = level.edges
    count = int(communities.max()) + 1
    of_source = communities[edges.sources]
    inside = of_source == communities[edges.targets]
    internal = np.bincount(of_source[inside], edges.weights[inside], count)
    degrees = [np.bincount(communities, degree, count) for degree in level.degrees]
    # Without weight NetworkX divides by zero, an integer or a float, of which the message tells.
    total = sum(level.degrees[0].tolist())
    norm = 1 / ((int(total) if level.whole else total) ** 2)
    size = total if level.directed else total / 2
    scores = internal / size - resolution * degrees[0] * degrees[level.directed] * norm
    return float(sum(scores.tolist()))

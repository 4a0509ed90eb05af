"""Scores of pairs of nodes by common neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import networkx as nx
import numpy as np

from gpu_pregel.host.devices.threads import parallel, thread_count
from gpu_pregel.kernels.networkx.neighborhoods_cpu import ALIKE, ALL, COUNTS, OTHERS, UNKNOWN, compare_pairs
from gpu_pregel.kernels.networkx.searches_cpu import breadth_first
from gpu_pregel.networkx.degrees import degrees
from gpu_pregel.networkx.graph import Array, BackendGraph

Batch = tuple[Sequence[Any], Sequence[Any]]
Scored = Iterator[tuple[Any, Any, Any]]

_BATCH, _CHUNK = 1 << 13, 1 << 7
"""Pairs that are scored at a time, and pairs that a thread claims at a time."""


def jaccard_coefficient(G: BackendGraph, ebunch: Any = None) -> Scored:
    """Yield pairs with the share of their neighbours that are common."""
    sizes = np.diff(G.engine().indptr)

    def score(first: Array, second: Array) -> Iterator[Any]:
        counts, _ = _compare(G, first, second)
        unions = sizes[first] + sizes[second] - counts[:, ALL]
        shares = (counts[:, OTHERS] / np.maximum(unions, 1)).tolist()
        return iter(
            shares if unions.all() else [share if union else 0 for share, union in zip(shares, unions, strict=True)]
        )

    return _predict(G, ebunch, score)


def adamic_adar_index(G: BackendGraph, ebunch: Any = None) -> Scored:
    """Yield pairs with the sum of the inverse logarithms of their common neighbours' degrees."""
    counts = degrees(G).astype(float)
    with np.errstate(divide="ignore"):
        values = 1 / np.log(np.maximum(counts, 1))

    def score(first: Array, second: Array) -> Iterator[Any]:
        for value in _sums(G, first, second, values):
            if value == np.inf:
                raise ZeroDivisionError("float division by zero")
            yield value

    return _predict(G, ebunch, score)


def resource_allocation_index(G: BackendGraph, ebunch: Any = None) -> Scored:
    """Yield pairs with the sum of the inverse degrees of their common neighbours."""
    values = 1 / np.maximum(degrees(G), 1)
    return _predict(G, ebunch, lambda first, second: _sums(G, first, second, values))


def preferential_attachment(G: BackendGraph, ebunch: Any = None) -> Scored:
    """Yield pairs with the product of their degrees."""
    counts = degrees(G)
    return _predict(G, ebunch, lambda first, second: iter((counts[first] * counts[second]).tolist()))


def common_neighbor_centrality(G: BackendGraph, ebunch: Any = None, alpha: float = 0.8) -> Scored:
    """Yield pairs with their number of common neighbours and their inverse distance, combined."""

    def score(first: Array, second: Array) -> Iterator[Any]:
        counts, _ = _compare(G, first, second)
        lengths = np.ones(len(first)) if alpha == 1 else _path_lengths(G, first, second)
        same = (first == second).tolist()
        for common, length, is_same in zip(counts[:, OTHERS].tolist(), lengths.tolist(), same, strict=True):
            if is_same:
                raise nx.NetworkXAlgorithmError("Self loops are not supported")
            yield common if alpha == 1 else alpha * common + (1 - alpha) * len(G) / length

    return _predict(G, ebunch, score)


def cn_soundarajan_hopcroft(G: BackendGraph, ebunch: Any = None, community: Any = "community") -> Scored:
    """Yield pairs with their number of common neighbours, those in the community of both counting twice."""

    def combine(common: Array, alike: Array, _: Array, together: Array) -> list[Any]:
        return list((common + alike * together).tolist())

    return _predict_in_communities(G, ebunch, community, combine)


def ra_index_soundarajan_hopcroft(G: BackendGraph, ebunch: Any = None, community: Any = "community") -> Scored:
    """Yield pairs with the sum of the inverse degrees of their common neighbours in the community of both."""

    def combine(_: Array, alike: Array, totals: Array, together: Array) -> list[Any]:
        return _or_zero(totals, together & (alike > 0))

    return _predict_in_communities(G, ebunch, community, combine)


def within_inter_cluster(
    G: BackendGraph, ebunch: Any = None, delta: float = 0.001, community: Any = "community"
) -> Scored:
    """Yield pairs with the ratio of their common neighbours in the community of both to the others."""
    if delta <= 0:
        raise nx.NetworkXAlgorithmError("Delta must be greater than zero")

    def combine(common: Array, alike: Array, _: Array, together: Array) -> list[Any]:
        return _or_zero(alike / (common - alike + delta), together)

    return _predict_in_communities(G, ebunch, community, combine)


def _predict(G: BackendGraph, ebunch: Any, score: Callable[[Array, Array], Iterator[Any]]) -> Scored:
    """Check the pairs, and return an iterator over them and their scores."""
    if ebunch is None:
        return _scored(G, _non_edges(G), score)
    numbers = G.topology.numbers
    for u, v in ebunch:
        try:
            known = u in numbers and v in numbers
        except TypeError:
            known = False
        if not known:
            raise nx.NodeNotFound(f"Node {v if u in G else u} not in G.")
    return _scored(G, _batches(ebunch), score)


def _batches(pairs: Iterable[Any]) -> Iterator[Batch]:
    """Yield the first and the second nodes of some pairs at a time."""
    iterator = iter(pairs)
    while batch := list(islice(iterator, _BATCH)):
        first, second = zip(*batch, strict=True)
        yield first, second


def _scored(G: BackendGraph, batches: Iterable[Batch], score: Callable[[Array, Array], Iterator[Any]]) -> Scored:
    number = G.topology.numbers.__getitem__
    for first, second in batches:
        vertices = (np.fromiter(map(number, nodes), np.int64, len(nodes)) for nodes in (first, second))
        # An error in a score is raised after the pairs before it.
        yield from zip(first, second, score(*vertices), strict=True)


def _non_edges(G: BackendGraph) -> Iterator[Batch]:
    """Yield the pairs of nodes that are not joined, in NetworkX's order, that of sets of nodes."""
    topology = G.topology
    nodes = set(G)
    first: list[Any] = []
    second: list[Any] = []
    while nodes:
        u = nodes.pop()
        row = topology.numbers[u]
        second += nodes - set(G.nodes_at(topology.neighbors[topology.indptr[row] : topology.indptr[row + 1]]))
        first += [u] * (len(second) - len(first))
        if len(second) >= _BATCH:
            yield first, second
            first, second = [], []
    yield first, second


def _compare(
    G: BackendGraph, first: Array, second: Array, values: Array | None = None, communities: Array | None = None
) -> tuple[Array, Array]:
    graph, n = G.engine(), len(G)
    counts, sums = np.empty((len(first), COUNTS), np.int64), np.empty((len(first), 2))
    vectors = (np.zeros(n) if values is None else values, np.zeros(n, np.int64) if communities is None else communities)
    rows = (graph.indptr, graph.indices, first, second)
    parallel(compare_pairs, len(first), _CHUNK, *rows, *vectors, counts, sums, threads=thread_count(None))
    return counts, sums


def _sums(G: BackendGraph, first: Array, second: Array, values: Array) -> Iterator[Any]:
    """Return the sums of the values of common neighbours; without any it is the integer 0."""
    counts, sums = _compare(G, first, second, values)
    return iter(_or_zero(sums[:, 0], counts[:, OTHERS] > 0))


def _path_lengths(G: BackendGraph, first: Array, second: Array) -> Array:
    topology, n = G.topology, len(G)
    lengths = np.full(len(first), np.inf)
    order, parents = np.empty(n, np.uint32), np.empty(n, np.uint32)
    for u in np.unique(first).tolist():
        depths = np.full(n, -1, np.int64)
        order[0], depths[u] = u, 0
        breadth_first(topology.indptr, topology.neighbors, np.inf, 1, order, depths, parents)
        here = np.flatnonzero(first == u)
        found = depths[second[here]]
        lengths[here[found >= 0]] = found[found >= 0]
    return lengths


def _predict_in_communities(
    G: BackendGraph, ebunch: Any, community: Any, combine: Callable[[Array, Array, Array, Array], list[Any]]
) -> Scored:
    """Score pairs by the nodes' communities, which need be known only of the nodes that NetworkX asks for."""
    codes: dict[Any, int] = {}
    data = G.node_data()
    given = [codes.setdefault(d[community], len(codes)) if community in d else -1 for d in data]
    communities, values = np.array(given, np.int64), 1 / np.maximum(degrees(G), 1)

    def score(first: Array, second: Array) -> Iterator[Any]:
        counts, sums = _compare(G, first, second, values, communities)
        together = communities[first] == communities[second]
        unknown = (communities[first] < 0) | (communities[second] < 0) | (together & (counts[:, UNKNOWN] > 0))
        known = len(first) if not unknown.any() else int(unknown.argmax())
        yield from combine(counts[:, OTHERS], counts[:, ALIKE], sums[:, 1], together)[:known]
        if known < len(first):
            w = _first_unknown(G, communities, int(first[known]), int(second[known]))
            raise nx.NetworkXAlgorithmError(f"No community information available for Node {G.topology.nodes[w]}")

    return _predict(G, ebunch, score)


def _first_unknown(G: BackendGraph, communities: Array, u: int, v: int) -> int:
    """Return the vertex without a community for which NetworkX asks first."""
    common = set(_row(G, u)) & set(_row(G, v)) - {u, v}
    return next(w for w in (u, v, *common) if communities[w] < 0)


def _or_zero(values: Array, valid: Array) -> list[Any]:
    """Return the valid values, and the integer 0 for the others."""
    return [value if is_valid else 0 for value, is_valid in zip(values.tolist(), valid.tolist(), strict=True)]


def _row(G: BackendGraph, u: int) -> list[int]:
    topology = G.topology
    neighbors: list[int] = topology.neighbors[topology.indptr[u] : topology.indptr[u + 1]].tolist()
    return neighbors

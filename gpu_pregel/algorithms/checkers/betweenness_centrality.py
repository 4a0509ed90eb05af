"""Checkers of betweenness centrality: Brandes's algorithm in plain Python, with exact numbers of paths."""

from __future__ import annotations

import math
from heapq import heappop, heappush
from itertools import pairwise
from typing import Any

import numpy as np

from gpu_pregel.errors import VerificationError
from gpu_pregel.host.graphs.graph import Graph

_TOLERANCE = 1e-9


def check_betweenness_centrality(graph: Graph, result: Any) -> None:
    """Raise ``VerificationError`` unless ``result`` has the betweenness centralities of ``graph``.

    Parameters
    ----------
    graph : Graph
    result : BetweennessScores
    """
    n = graph.num_vertices
    scores = np.asarray(result)
    if scores.shape != (n,):
        raise VerificationError(f"the scores have shape {scores.shape}, not ({n},)")
    ends = 1 if result.endpoints else 0
    totals = [0.0] * n
    sources = range(n) if result.sources is None else result.sources.tolist()
    neighbors = _neighbors(graph, weighted=result.weighted)
    for source in sources:
        dependencies, _ = _dependencies(neighbors, source)
        for v, dependency in dependencies.items():
            totals[v] += ends * (len(dependencies) - 1) if v == source else dependency + ends
    # The vertices that a path has beside v: its other end, and its source unless that is fixed.
    others = n if ends else n - 1
    chosen = set(sources)
    for v in range(n):
        count = others if result.sources is None else len(sources) - (v in chosen and not ends)
        _compare(f"vertex {v}", float(scores[v]), _scaled(graph, result, totals[v], count, others))


def check_edge_betweenness_centrality(graph: Graph, result: Any) -> None:
    """Raise ``VerificationError`` unless ``result`` has the betweenness centralities of the edges of ``graph``.

    Parameters
    ----------
    graph : Graph
    result : EdgeBetweennessScores
    """
    n = graph.num_vertices
    neighbors = _neighbors(graph, weighted=result.weighted)
    ways = [(u, v) for u in range(n) for v in neighbors[u] if u != v and (graph.is_directed or u < v)]
    scores = np.asarray(result)
    if list(zip(result.edge_sources.tolist(), result.edge_targets.tolist(), strict=True)) != ways:
        raise VerificationError("the edges are not those of the graph")
    if scores.shape != (len(ways),):
        raise VerificationError(f"the scores have shape {scores.shape}, not ({len(ways)},)")
    totals = dict.fromkeys(ways, 0.0)
    sources = range(n) if result.sources is None else result.sources.tolist()
    for source in sources:
        for (u, v), part in _dependencies(neighbors, source)[1].items():
            totals[(u, v) if (u, v) in totals else (v, u)] += part
    for (u, v), score in zip(ways, scores.tolist(), strict=True):
        _compare(f"the edge {u} to {v}", score, _scaled(graph, result, totals[u, v], len(sources), n))


def _neighbors(graph: Graph, *, weighted: bool) -> list[dict[int, float]]:
    """Return the distinct out-neighbours of each vertex, with the lengths of their edges."""
    targets = graph.indices.tolist()
    lengths = graph.weights.tolist() if weighted and graph.weights is not None else [1] * len(targets)
    rows = []
    for begin, end in pairwise(graph.indptr.tolist()):
        row: dict[int, float] = {}
        for v, length in zip(targets[begin:end], lengths[begin:end], strict=True):
            row[v] = min(length, row.get(v, length))
        rows.append(row)
    return rows


def _dependencies(
    neighbors: list[dict[int, float]], source: int
) -> tuple[dict[int, float], dict[tuple[int, int], float]]:
    """Return the dependency of a source on each vertex that it reaches, and on each edge of a shortest path."""
    # By distance and, where an edge is too short to change the rounded distance, by the number of such edges.
    places: dict[int, tuple[float, int]] = {source: (0.0, 0)}
    heap, order = [((0.0, 0), source)], []
    while heap:
        place, u = heappop(heap)
        if place > places[u]:
            continue
        order.append(u)
        for v, length in neighbors[u].items():
            beyond = _beyond(place, length)
            if beyond[0] < math.inf and (v not in places or beyond < places[v]):
                places[v] = beyond
                heappush(heap, (beyond, v))
    paths = dict.fromkeys(order, 0)
    paths[source] = 1
    for u in order:
        for v, length in neighbors[u].items():
            if v in places and _is_predecessor(places[u], length, places[v]):
                paths[v] += paths[u]
    found, parts = dict.fromkeys(order, 0.0), {}
    for u in reversed(order):
        for v, length in neighbors[u].items():
            if v in places and _is_predecessor(places[u], length, places[v]):
                parts[u, v] = paths[u] / paths[v] * (1 + found[v])
                found[u] += parts[u, v]
    return found, parts


def _beyond(place: tuple[float, int], length: float) -> tuple[float, int]:
    """Return the place of a vertex at the other end of an edge."""
    distance = place[0] + float(length)
    return distance, place[1] + 1 if distance == place[0] else 0


def _is_predecessor(place: tuple[float, int], length: float, other: tuple[float, int]) -> bool:
    return place < other and place[0] + float(length) == other[0]


def _scaled(graph: Graph, result: Any, total: float, sources: int, others: int) -> float:
    """Scale a sum over pairs of which the first is one of the sources."""
    if others < 2 or sources == 0:
        return total if sources else 0.0
    if result.normalized:
        return total / (sources * (others - 1))
    return total * others / sources / (1 if graph.is_directed else 2)


def _compare(name: str, score: float, expected: float) -> None:
    if not abs(score - expected) <= _TOLERANCE * max(abs(expected), 1e-3):
        raise VerificationError(f"{name} has the score {score!r}, but should have {expected!r}")

"""Checkers of the coefficients of similarity, which compare sets or weighted sums of neighbours pair by pair."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpu_pregel.algorithms.checkers.triangle_count import compare
from gpu_pregel.errors import VerificationError
from gpu_pregel.host.graphs.graph import Graph

Row = dict[int, float]
_TOLERANCE = 1e-9


def check_jaccard(graph: Graph, result: Any) -> None:
    """Raise ``VerificationError`` unless ``result`` has the Jaccard coefficients of its pairs.

    Parameters
    ----------
    graph : Graph
    result : PairScores

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> graph = gp.Graph.from_edgelist([0, 0, 1], [1, 2, 2])
    >>> check_jaccard(graph, gp.jaccard(graph))
    """
    _check(graph, result, lambda one, other: _divide(_minima(one, other), sum(_larger(one, other))))


def check_overlap(graph: Graph, result: Any) -> None:
    """Raise ``VerificationError`` unless ``result``, a ``PairScores``, has the overlap coefficients of its pairs."""
    _check(graph, result, lambda one, other: _divide(_minima(one, other), min(sum(one.values()), sum(other.values()))))


def check_cosine(graph: Graph, result: Any) -> None:
    """Raise ``VerificationError`` unless ``result``, a ``PairScores``, has the cosine similarities of its pairs."""

    def cosine(one: Row, other: Row) -> float:
        one, other = _divided(one), _divided(other)
        squares = [sum(weight * weight for weight in row.values()) for row in (one, other)]
        product = sum(weight * other[v] for v, weight in one.items() if v in other)
        return _divide(product, (squares[0] * squares[1]) ** 0.5)

    _check(graph, result, cosine)


def _check(graph: Graph, result: Any, coefficient: Callable[[Row, Row], float]) -> None:
    rows = _rows(graph, result.weighted)
    pairs = list(zip(result.first.tolist(), result.second.tolist(), strict=True))
    if result.adjacent and pairs != [(u, v) for u, row in enumerate(rows) for v in sorted(row) if u < v]:
        raise VerificationError("the pairs are not those of all adjacent vertices in ascending order")
    compare("score", result, np.array([coefficient(rows[u], rows[v]) for u, v in pairs], np.float64), _TOLERANCE)


def _rows(graph: Graph, weighted: bool) -> list[Row]:
    """Return the smallest weight of each vertex's edges to each of its neighbours."""
    rows: list[Row] = [{} for _ in range(graph.num_vertices)]
    for u, row in enumerate(rows):
        for e in range(int(graph.indptr[u]), int(graph.indptr[u + 1])):
            v = int(graph.indices[e])
            weight = float(graph.weights[e]) if weighted and graph.weights is not None else 1.0
            if v != u:
                row[v] = min(weight, row.get(v, weight))
    return rows


def _minima(one: Row, other: Row) -> float:
    return sum(min(weight, other[v]) for v, weight in one.items() if v in other)


def _larger(one: Row, other: Row) -> list[float]:
    return [max(one.get(v, 0.0), other.get(v, 0.0)) for v in one.keys() | other.keys()]


def _divided(row: Row) -> Row:
    """Return a row divided by its largest weight."""
    largest = max(row.values(), default=0.0) or 1.0
    return {v: weight / largest for v, weight in row.items()}


def _divide(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0

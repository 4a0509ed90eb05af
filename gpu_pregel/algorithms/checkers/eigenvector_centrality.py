"""Checker of eigenvector centrality: another iteration, in NumPy, hardly changes the scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.algorithms.checkers._iterations import check_change, check_scores, in_sums, rounding_of
from gpu_pregel.errors import VerificationError
from gpu_pregel.host.graphs.graph import Graph

Array = np.ndarray[Any, Any]
_LARGE = 1e-3
_TOLERANCE = 1e-9
_TINY = 1e-290
"""Smaller scores may have underflowed."""


def check_eigenvector_centrality(graph: Graph, result: Any) -> None:
    """Raise ``VerificationError`` unless ``result`` has eigenvector centralities of ``graph``.

    The squares of the scores must sum to 1, and another iteration must change the scores by no more than the last one
    did, ``result.error``, up to the factor sqrt(n) between the norms L1 and L2. In a directed graph, whose matrix is
    not symmetric, changes may grow from one iteration to the next, by twice the norm of the matrix at most. Where this
    allows for much, as after few iterations, all of them are repeated instead.

    Parameters
    ----------
    graph : Graph
    result : EigenvectorScores
    """
    scores = np.asarray(result)
    check_scores(graph, result, scores)
    if len(scores) == 0:
        return
    rounding = rounding_of(result)
    if not abs((scores * scores).sum() - 1) <= rounding:
        raise VerificationError(f"the squares of the scores sum to {(scores * scores).sum()}, not to 1")
    following = scores + in_sums(graph, scores, weighted=result.weighted)
    length = np.sqrt((following * following).sum())
    following /= length
    growth = max(1.0, 2 * _norm_bound(graph, result) / length) if graph.is_directed else 1.0
    allowed = result.error * growth * len(scores) ** 0.5
    check_change(following - scores, allowed + rounding, scores)
    if allowed > _LARGE:
        _check_iterations(graph, result, scores)


def _check_iterations(graph: Graph, result: Any, scores: Array) -> None:
    """Repeat all iterations. Sums of numbers of at least 0 keep the relative error of each score small."""
    expected = np.full(len(scores), 1 / len(scores)) if result.initial is None else result.initial
    for _ in range(result.iterations):
        expected = expected + in_sums(graph, expected, weighted=result.weighted)
        expected = expected / np.sqrt((expected * expected).sum())
    wrong = ~np.isclose(scores, expected, rtol=_TOLERANCE, atol=0.0) & (np.maximum(scores, expected) > _TINY)
    if wrong.any():
        v = int(wrong.argmax())
        raise VerificationError(
            f"vertex {v} has the score {scores[v]:.6g}, not {expected[v]:.6g}, after {result.iterations} iterations"
        )


def _norm_bound(graph: Graph, result: Any) -> float:
    """Return a number that is at least the spectral norm of the matrix of the iteration, 1 + A."""
    into = in_sums(graph, np.ones(graph.num_vertices), weighted=result.weighted)
    out = in_sums(graph.transpose(), np.ones(graph.num_vertices), weighted=result.weighted)
    return 1 + float(np.sqrt(into.max() * out.max()))

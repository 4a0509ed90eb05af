"""Checker of PageRank: another iteration, in NumPy, changes the scores by less than it must."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.algorithms.checkers._iterations import check_change, check_scores, in_sums, rounding_of
from gpu_pregel.errors import VerificationError
from gpu_pregel.host.graphs.graph import Graph

Array = np.ndarray[Any, Any]


def check_pagerank(graph: Graph, result: Any) -> None:
    """Raise ``VerificationError`` unless ``result`` has PageRanks of ``graph`` with the error that they report.

    The scores must be a distribution. Each iteration changes them by at most ``damping`` times the change of the one
    before, which ``result.error`` reports: another iteration must do so too. GAPBS's verifier compares the change with
    the tolerance instead.

    Parameters
    ----------
    graph : Graph
    result : PageRanks
    """
    scores = np.asarray(result, dtype=np.float64)
    check_scores(graph, result, scores)
    if len(scores) == 0:
        return
    rounding = rounding_of(result)
    if not abs(scores.sum() - 1) <= rounding:
        raise VerificationError(f"the scores sum to {scores.sum()}, not to 1")
    if not result.error <= 2 + rounding:
        raise VerificationError(f"the error {result.error} is no distance between two distributions")
    allowed = result.damping * result.error + rounding
    check_change(_iterate(graph, result, scores) - scores, allowed, scores)


def _iterate(graph: Graph, result: Any, scores: Array) -> Array:
    """Return the scores after another iteration."""
    n = graph.num_vertices
    sources = np.repeat(np.arange(n), np.diff(graph.indptr))
    weights = graph.weights if result.weighted and graph.weights is not None else None
    totals = np.bincount(sources, weights=weights, minlength=n)
    is_dangling = totals == 0
    shares = np.where(is_dangling, 0, scores) / np.where(is_dangling, 1, totals)
    teleport = np.full(n, 1 / n) if result.personalization is None else result.personalization
    jump = 1 - result.damping + result.damping * scores[is_dangling].sum()
    following: Array = result.damping * in_sums(graph, shares, weighted=result.weighted) + jump * teleport
    return following

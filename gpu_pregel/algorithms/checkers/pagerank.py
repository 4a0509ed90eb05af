"""Checker of PageRank: another iteration, in NumPy, changes the scores by less than it must."""

from __future__ import annotations

from typing import Any

import numpy as np

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
    n = graph.num_vertices
    if scores.shape != (n,):
        raise VerificationError(f"the scores have shape {scores.shape}, not ({n},)")
    if n == 0:
        return
    rounding = 8 * float(np.finfo(np.asarray(result).dtype).eps)
    if not (scores >= 0).all():
        v = int((~(scores >= 0)).argmax())
        raise VerificationError(f"vertex {v} has the score {scores[v]}, which is negative or no number")
    if not abs(scores.sum() - 1) <= rounding * (1 + result.iterations):
        raise VerificationError(f"the scores sum to {scores.sum()}, not to 1")
    if result.converged != (result.error < result.tolerance):
        raise VerificationError(f"converged is {result.converged}, but the error {result.error} and tolerance differ")
    if not 0 <= result.error <= 2 + rounding:
        raise VerificationError(f"the error {result.error} is no distance between two distributions")
    change = np.abs(_iterate(graph, result, scores) - scores)
    allowed = result.damping * result.error * (1 + rounding) + rounding
    if not change.sum() <= allowed:
        v = int(change.argmax())
        raise VerificationError(
            f"another iteration changes the scores by {change.sum():.3g} in total, more than {allowed:.3g}; the score "
            f"of vertex {v}, {scores[v]:.3g}, changes most, by {change[v]:.3g}"
        )


def _iterate(graph: Graph, result: Any, scores: Array) -> Array:
    """Return the scores after another iteration, which pushes along every edge."""
    n = graph.num_vertices
    sources = np.repeat(np.arange(n), np.diff(graph.indptr))
    weights = graph.weights if result.weighted and graph.weights is not None else np.ones(graph.num_edges)
    totals = np.bincount(sources, weights=weights, minlength=n)
    is_dangling = totals == 0
    shares = scores / np.where(is_dangling, 1, totals)
    sums = np.bincount(graph.indices, weights=np.where(is_dangling, 0, shares)[sources] * weights, minlength=n)
    teleport = np.full(n, 1 / n) if result.personalization is None else result.personalization
    jump = 1 - result.damping + result.damping * scores[is_dangling].sum()
    following: Array = result.damping * sums + jump * teleport
    return following

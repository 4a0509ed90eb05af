"""Checker of eigenvector centrality: another iteration, in NumPy, hardly changes the scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.algorithms.checkers._iterations import check_change, check_scores, in_sums, rounding_of
from gpu_pregel.errors import VerificationError
from gpu_pregel.host.graphs.graph import Graph


def check_eigenvector_centrality(graph: Graph, result: Any) -> None:
    """Raise ``VerificationError`` unless ``result`` has eigenvector centralities of ``graph``.

    The squares of the scores must sum to 1, and another iteration must change the scores by no more than the last one
    did, ``result.error``, up to the factor sqrt(n) between the norms L1 and L2. In a directed graph, whose matrix is
    not symmetric, changes may grow from one iteration to the next, by twice the norm of the matrix at most.

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
    check_change(following - scores, result.error * growth * len(scores) ** 0.5 + rounding, scores)


def _norm_bound(graph: Graph, result: Any) -> float:
    """Return a number that is at least the spectral norm of the matrix of the iteration, 1 + A."""
    into = in_sums(graph, np.ones(graph.num_vertices), weighted=result.weighted)
    out = in_sums(graph.transpose(), np.ones(graph.num_vertices), weighted=result.weighted)
    return 1 + float(np.sqrt(into.max() * out.max()))

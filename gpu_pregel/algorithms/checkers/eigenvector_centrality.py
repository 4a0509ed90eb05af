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
    did, ``result.error``, up to the factor sqrt(n) between the norms L1 and L2.

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
    following /= np.sqrt((following * following).sum())
    check_change(following - scores, result.error * len(scores) ** 0.5 + rounding, scores)

"""Checker of Katz centrality: the scores solve its linear equations, up to the reported error."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.algorithms.checkers._iterations import check_change, check_scores, in_sums, rounding_of
from gpu_pregel.errors import VerificationError
from gpu_pregel.host.graphs.graph import Graph


def check_katz_centrality(graph: Graph, result: Any) -> None:
    """Raise ``VerificationError`` unless ``result`` has Katz centralities of ``graph``.

    What the sums over in-edges leave of the scores must be ``beta``, times the factor by which they were normalised,
    except for the change of another iteration: it is at most ``alpha`` times the largest out-degree (or out-weight)
    times the change of the last one, ``result.error``.

    Parameters
    ----------
    graph : Graph
    result : KatzScores
    """
    scores, beta = np.asarray(result), result.beta
    check_scores(graph, result, scores)
    if len(scores) == 0 or not beta.any():
        if scores.any():
            raise VerificationError("beta is 0 everywhere, but not every score is")
        return
    rest = scores - result.alpha * in_sums(graph, scores, weighted=result.weighted)
    factor = float((rest * beta).sum() / (beta * beta).sum()) if result.normalized else 1.0
    length = float((scores * scores).sum())
    rounding = rounding_of(result)
    if result.normalized and not abs(length - 1) <= rounding:
        raise VerificationError(f"the squares of the scores sum to {length}, not to 1")
    sources = np.repeat(np.arange(len(scores)), np.diff(graph.indptr))
    out = np.bincount(sources, weights=graph.weights if result.weighted else None, minlength=len(scores))
    # The factor that is estimated from the scores has the relative error of the change itself.
    growth = result.alpha * float(out.max()) * (2 if result.normalized else 1)
    allowed = abs(factor) * result.error * growth * (len(scores) ** 0.5 if result.normalized else 1)
    check_change(factor * beta - rest, allowed + rounding * (1 + float(np.abs(scores).sum())), scores)

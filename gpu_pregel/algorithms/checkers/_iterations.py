"""What the checkers of iterated scores share: the sum over in-edges in NumPy, and checks of the common fields."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.errors import VerificationError
from gpu_pregel.host.graphs.graph import Graph

Array = np.ndarray[Any, Any]


def in_sums(graph: Graph, values: Array, *, weighted: bool) -> Array:
    """Return the sum of ``values`` over the in-neighbours of each vertex, float64[n]; it pushes along every edge."""
    sent = np.repeat(values, np.diff(graph.indptr))
    if weighted and graph.weights is not None:
        sent = sent * graph.weights
    sums: Array = np.bincount(graph.indices, weights=sent, minlength=graph.num_vertices)
    return sums


def rounding_of(result: Any) -> float:
    """Return the rounding that a vector of the result's dtype and norm 1 may have in total."""
    unit = float(np.finfo(np.asarray(result).dtype).eps)
    return 64 * unit * max(1.0, float(np.sqrt(result.graph.num_vertices)))


def check_scores(graph: Graph, result: Any, scores: Array) -> None:
    """Raise ``VerificationError`` unless scores are n numbers of at least 0 and ``converged`` fits ``error``."""
    n = graph.num_vertices
    if scores.shape != (n,):
        raise VerificationError(f"the scores have shape {scores.shape}, not ({n},)")
    if not (scores >= 0).all():
        v = int((~(scores >= 0)).argmax())
        raise VerificationError(f"vertex {v} has the score {scores[v]}, which is negative or no number")
    if n and (result.converged != (result.error < result.tolerance) or not result.error >= 0):
        raise VerificationError(
            f"converged is {result.converged}, but the error is {result.error} and the tolerance {result.tolerance}"
        )


def check_change(change: Array, allowed: float, scores: Array) -> None:
    """Raise ``VerificationError`` if another iteration changes the scores by more than ``allowed`` in total."""
    total = float(np.abs(change).sum())
    if not total <= allowed:
        v = int(np.abs(change).argmax())
        raise VerificationError(
            f"another iteration changes the scores by {total:.3g} in total, more than {allowed:.3g}; the score "
            f"of vertex {v}, {scores[v]:.3g}, changes most, by {change[v]:.3g}"
        )

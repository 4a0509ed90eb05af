"""Checker of HITS: hubs are sums of authorities, and another iteration, in NumPy, hardly changes the authorities."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.algorithms.checkers._iterations import check_change, check_scores, in_sums, rounding_of
from gpu_pregel.errors import VerificationError
from gpu_pregel.host.graphs.edge_arrays import to_host
from gpu_pregel.host.graphs.graph import Graph

Array = np.ndarray[Any, Any]
_SMALL, _LIFT = 1e-280, 2.0**1000


def check_hits(graph: Graph, result: Any) -> None:
    """Raise ``VerificationError`` unless ``result`` has hub and authority scores of ``graph``.

    Both must sum to 1. The hub scores must be the scaled sums of the authority scores, and another iteration must
    change the authority scores by no more than the last one did, ``result.error``, up to the factor sqrt(n) between the
    norms L1 and L2.

    Parameters
    ----------
    graph : Graph
    result : HitsScores
    """
    authorities, hubs = np.asarray(result), to_host(result.hubs)
    check_scores(graph, result, authorities)
    check_scores(graph, result, hubs)
    rounding = rounding_of(result)
    reached = _lifted_sums(graph.transpose(), authorities, result)
    if not reached.any():
        if authorities.any() or hubs.any():
            raise VerificationError("no edge joins vertices with scores, but not every score is 0")
        return
    for name, scores in (("authority", authorities), ("hub", hubs)):
        if not abs(scores.sum() - 1) <= rounding:
            raise VerificationError(f"the {name} scores sum to {scores.sum()}, not to 1")
    check_change(reached / reached.sum() - hubs, rounding, hubs)
    following = _lifted_sums(graph, hubs, result)
    change = following / following.sum() - authorities
    check_change(change, 2 * result.error * len(hubs) ** 0.5 + rounding, authorities)


def _lifted_sums(graph: Graph, scores: Array, result: Any) -> Array:
    """Return the sums over in-neighbours, times a power of two if they could underflow otherwise."""
    sums = in_sums(graph, scores, weighted=result.weighted)
    return sums if sums.sum() >= _SMALL else in_sums(graph, scores * _LIFT, weighted=result.weighted)

"""Checker of closeness and harmonic centrality, by breadth-first searches in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.algorithms.checkers._distances import checked_vertices, hops_from
from gpu_pregel.errors import VerificationError
from gpu_pregel.host.graphs.graph import Graph

Array = np.ndarray[Any, Any]

_TOLERANCE = 1e-9


def check_closeness_centrality(graph: Graph, result: Any) -> None:
    """Raise ``VerificationError`` unless the scores follow from the distances towards each vertex.

    Of a large graph, an even sample of the vertices is checked.

    Parameters
    ----------
    graph : Graph
    result : ClosenessScores

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> graph = gp.grid(3)
    >>> check_closeness_centrality(graph, gp.closeness_centrality(graph))
    """

    def score(hops: Array, scale: float) -> float:
        reached, total = (hops > 0).sum() * scale, hops[hops > 0].sum() * scale
        share = reached / (graph.num_vertices - 1) if result.improved and reached else 1.0
        return float(reached / total * share) if reached else 0.0

    _check(graph, result, score)


def check_harmonic_centrality(graph: Graph, result: Any) -> None:
    """Raise ``VerificationError`` unless the scores follow from the distances towards each vertex.

    Of a large graph, an even sample of the vertices is checked.

    Parameters
    ----------
    graph : Graph
    result : ClosenessScores

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> graph = gp.grid(3)
    >>> check_harmonic_centrality(graph, gp.harmonic_centrality(graph))
    """
    _check(graph, result, lambda hops, scale: float((1 / hops[hops > 0]).sum() * scale))


def _check(graph: Graph, result: Any, score: Any) -> None:
    n = graph.num_vertices
    scores = np.asarray(result)
    if scores.shape != (n,):
        raise VerificationError(f"scores have shape {scores.shape}, not ({n},)")
    wanted = np.ones(n, bool)
    if result.sources is not None:
        wanted[:] = False
        wanted[result.sources] = True
    if np.isnan(scores[wanted]).any() or not np.isnan(scores[~wanted]).all():
        raise VerificationError("scores are not known for exactly the vertices that they were asked for")
    estimated = result.samples is not None and len(result.samples) < n
    if estimated:
        from_samples = np.array([hops_from(graph, np.array([s])) for s in result.samples])
    for v in checked_vertices(graph):
        if wanted[v]:
            towards = from_samples[:, v] if estimated else hops_from(graph, np.array([v]), transpose=True)
            others = int((result.samples != v).sum()) if estimated else n - 1
            expected = score(towards, (n - 1) / others if others else 0.0)
            if abs(scores[v] - expected) > _TOLERANCE * max(1.0, expected):
                raise VerificationError(f"vertex {v} has the score {scores[v]}, not {expected}")

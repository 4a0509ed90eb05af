"""Checker of communities: their numbers, their levels and their modularity."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.errors import VerificationError
from gpu_pregel.host.graphs.edge_arrays import to_host
from gpu_pregel.host.graphs.graph import Graph

Array = np.ndarray[Any, Any]

_TOLERANCE = 1e-9


def check_louvain(graph: Graph, result: Any) -> None:
    """Raise ``VerificationError`` unless ``result`` is a division of the vertices that pays.

    Communities are numbered by their smallest vertex, those of each level contain whole ones of the level before, and
    their modularity is as stated and not below that of single vertices.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> graph = gp.grid(4)
    >>> check_louvain(graph, gp.louvain(graph))
    """
    check_numbers(graph, result)
    for finer, coarser in zip(result.levels, result.levels[1:], strict=False):
        pairs = np.unique(np.stack([to_host(finer), to_host(coarser)]), axis=1)
        if len(pairs[0]) != len(np.unique(pairs[0])):
            raise VerificationError("a level divides a community of the level before")


def check_numbers(graph: Graph, result: Any) -> None:
    """Raise ``VerificationError`` unless the labels are numbers of communities with the modularity of ``result``."""
    n = graph.num_vertices
    labels = np.asarray(result).astype(np.int64)
    if labels.shape != (n,):
        raise VerificationError(f"labels have shape {labels.shape}, not ({n},)")
    first = np.unique(labels, return_index=True)
    if not np.array_equal(first[0], np.arange(len(first[0]))) or (np.diff(first[1]) < 0).any():
        raise VerificationError("communities are not numbered from 0 in the order of their smallest vertex")
    if not np.array_equal(labels, to_host(result.levels[-1])):
        v = int((labels != to_host(result.levels[-1])).argmax())
        raise VerificationError(f"vertex {v} has label {labels[v]}, but another one in the last level")
    expected, single = (_modularity(graph, numbers, result.resolution) for numbers in (labels, np.arange(n)))
    if abs(result.modularity - expected) > _TOLERANCE * (1 + result.resolution):
        raise VerificationError(f"the modularity is {expected}, not {result.modularity}")
    if expected < single - _TOLERANCE * (1 + result.resolution):
        raise VerificationError(f"the modularity {expected} is below that of single vertices, {single}")


def _modularity(graph: Graph, labels: Array, resolution: float) -> float:
    """Return the modularity from its definition, over edges and communities."""
    n = graph.num_vertices
    src = np.repeat(np.arange(n), np.diff(graph.indptr))
    dst = graph.indices.astype(np.int64)
    weights = np.ones(len(src)) if graph.weights is None else graph.weights.astype(np.float64)
    weights = np.where(src == dst, 2 * weights, weights)
    total = weights.sum()
    if total == 0:
        return 0.0
    degrees = np.bincount(src, weights, n)
    sums = np.bincount(labels, degrees)
    inner = weights[labels[src] == labels[dst]].sum()
    return float(inner / total - resolution * ((sums / total) ** 2).sum())

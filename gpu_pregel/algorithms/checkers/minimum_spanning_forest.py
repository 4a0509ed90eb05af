"""Checker of spanning forests: a serial Kruskal on the sorted edges finds the same edges and components."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.errors import VerificationError
from gpu_pregel.host.graphs.graph import Graph

Array = np.ndarray[Any, Any]


def check_minimum_spanning_forest(graph: Graph, result: Any) -> None:
    """Raise ``VerificationError`` unless the result is the spanning forest of ``graph``.

    Parameters
    ----------
    graph : Graph
    result : SpanningForest
        With ``edges``, ``weights``, ``labels`` and ``maximum``.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> graph = gp.Graph.from_edgelist([0, 1, 2], [1, 2, 0], [1, 2, 3])
    >>> check_minimum_spanning_forest(graph, gp.minimum_spanning_forest(graph))
    """
    n = graph.num_vertices
    u, v, weights = _sorted_edges(graph, result.maximum)
    parents = list(range(n))

    def root(w: int) -> int:
        while parents[w] != w:
            parents[w] = parents[parents[w]]
            w = parents[w]
        return w

    taken = []
    for i, (a, b) in enumerate(zip(u.tolist(), v.tolist(), strict=True)):
        p, q = root(a), root(b)
        if p != q:
            parents[max(p, q)] = min(p, q)
            taken.append(i)
    taken.sort(key=lambda i: (u[i], v[i]))
    expected = np.stack([u[taken], v[taken]], axis=1) if taken else np.empty((0, 2), u.dtype)
    edges = np.asarray(result)
    if edges.shape != expected.shape:
        raise VerificationError(f"the edges have shape {edges.shape}, not {expected.shape}")
    differ = (edges != expected).any(axis=1)
    if differ.any():
        k = int(differ.argmax())
        raise VerificationError(f"edge {k} of the forest is {edges[k].tolist()}, not {expected[k].tolist()}")
    if graph.weights is not None and not np.array_equal(result.weights, weights[taken]):
        raise VerificationError("a weight is not that of the edge in the graph")
    labels = np.array([root(w) for w in range(n)], np.int64)
    if not np.array_equal(result.labels, labels):
        raise VerificationError("a label is not the smallest vertex of the component")


def _sorted_edges(graph: Graph, maximum: bool) -> tuple[Array, Array, Array]:
    """Return the ends and weights of the edges, each once, by weight, smaller end and larger end."""
    sources = np.repeat(np.arange(graph.num_vertices, dtype=np.int64), np.diff(graph.indptr))
    once = sources < graph.indices
    u, v = sources[once], graph.indices[once].astype(np.int64)
    weights = np.zeros(len(u), np.int32) if graph.weights is None else graph.weights[once]
    ranks = np.unique(weights, return_inverse=True)[1]
    order = np.lexsort((v, u, -ranks if maximum else ranks))
    return u[order], v[order], weights[order]

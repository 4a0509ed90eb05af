"""Checker of label propagation: repeats it by sorting the pairs of vertices and labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.errors import VerificationError
from gpu_pregel.host.graphs.graph import Graph

Array = np.ndarray[Any, Any]


def check_cdlp(graph: Graph, result: Any) -> None:
    """Raise ``VerificationError`` unless the labels are those after the iterations of ``result``.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> graph = gp.grid(4)
    >>> check_cdlp(graph, gp.cdlp(graph, iterations=3))
    """
    n = graph.num_vertices
    labels = np.asarray(result)
    if labels.shape != (n,):
        raise VerificationError(f"labels have shape {labels.shape}, not ({n},)")
    ids = np.arange(n) if graph.ids is None or graph.ids.dtype.kind not in "iu" else graph.ids
    order = np.argsort(ids, kind="stable")
    ranks = np.empty(n, np.int64)
    ranks[order] = np.arange(n)
    src = np.repeat(np.arange(n, dtype=np.int64), np.diff(graph.indptr))
    dst = graph.indices.astype(np.int64)
    if graph.is_directed:
        src, dst = np.concatenate([src, dst]), np.concatenate([dst, src])
    expected = ranks
    for _ in range(result.iterations):
        expected = _propagate(src, expected[dst], expected)
    expected = order[expected]
    if not np.array_equal(expected, labels):
        v = int((expected != labels).argmax())
        raise VerificationError(f"vertex {v} has label {labels[v]} instead of {expected[v]}")


def _propagate(src: Array, seen: Array, labels: Array) -> Array:
    """Return the most frequent label that each source has ``seen``, the smallest of several; others keep theirs."""
    pairs, counts = np.unique(np.stack([src, seen]), axis=1, return_counts=True)
    sources, values = pairs
    # Of each source's pairs the first has the largest count and, of those, the smallest label.
    order = np.lexsort((values, -counts, sources))
    vertices, first = np.unique(sources[order], return_index=True)
    found = labels.copy()
    found[vertices] = values[order][first]
    return found

"""Checker of topological orders: each level is one above the highest level of the predecessors."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.errors import VerificationError
from gpu_pregel.host.graphs.graph import Graph


def check_topological_order(graph: Graph, result: Any) -> None:
    """Raise ``VerificationError`` unless the levels are right, and the order is by level, then number.

    Parameters
    ----------
    graph : Graph
    result : TopologicalOrder

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> graph = gp.Graph.from_edgelist([0, 1], [1, 2], directed=True)
    >>> check_topological_order(graph, gp.topological_order(graph))
    """
    n = graph.num_vertices
    levels = np.asarray(result)
    if levels.shape != (n,):
        raise VerificationError(f"levels have shape {levels.shape}, not ({n},)")
    expected = np.zeros(n, np.int64)
    np.maximum.at(expected, graph.indices, levels[np.repeat(np.arange(n), np.diff(graph.indptr))] + 1)
    if (wrong := levels != expected).any():
        v = int(wrong.argmax())
        raise VerificationError(f"vertex {v} is on level {levels[v]}, and its predecessors make it {expected[v]}")
    if not np.array_equal(result.order, np.lexsort((np.arange(n), levels))):
        raise VerificationError("the order is not by level, then number")

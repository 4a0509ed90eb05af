"""Checker of core numbers: removes a vertex of smallest degree at a time (Matula and Beck, Journal of the ACM 1983)."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

from gpu_pregel.algorithms.checkers.triangle_count import compare
from gpu_pregel.host.graphs.graph import Graph


def check_core_number(graph: Graph, result: Any) -> None:
    """Raise ``VerificationError`` unless ``result`` has the core number of each vertex of ``graph``.

    Parameters
    ----------
    graph : Graph
    result : CoreNumbers or integer [n]

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> check_core_number(gp.Graph.from_edgelist([0, 0, 1, 2], [1, 2, 2, 3]), [2, 2, 2, 1])
    """
    n = graph.num_vertices
    rows = [set(graph.indices[graph.indptr[v] : graph.indptr[v + 1]].tolist()) - {v} for v in range(n)]
    cores = np.full(n, -1, np.int64)
    waiting = [(len(row), v) for v, row in enumerate(rows)]
    heapq.heapify(waiting)
    level = 0
    while waiting:
        degree, v = heapq.heappop(waiting)
        if cores[v] < 0 and degree == len(rows[v]):
            level = max(level, degree)
            cores[v] = level
            for u in rows[v]:
                rows[u].remove(v)
                heapq.heappush(waiting, (len(rows[u]), u))
            rows[v] = set()
    compare("core number", result, cores)

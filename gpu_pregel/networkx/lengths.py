"""The rows of a graph by the length of edges, for kernels that search shortest paths."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.algorithms._triangles import without_repetitions
from gpu_pregel.networkx.graph import BackendGraph

Array = np.ndarray[Any, Any]
Rows = tuple[Array, Array, Array]
"""``indptr``, ``indices`` and ``weights``: int64[n + 1], uint32[m], float64[m], empty if all lengths are 1."""


def rows_by_length(graph: BackendGraph, weight: Any, *, positive: bool = False) -> tuple[Rows, Rows]:
    """Return the out-edges and the in-edges, sorted, without self-loops, and the shortest of parallel edges.

    Raises
    ------
    NotImplementedError
        A length is negative or infinite, or ``positive`` and so small that adding it does not change that of a path.
    """
    lengths = graph.edge_values(weight, mixed=True)
    if lengths is not None and len(lengths):
        longest_path = float(lengths.max()) * len(graph)
        if lengths.min() < 0 or (positive and longest_path + lengths.min() == longest_path):
            raise NotImplementedError(f"the edges' {weight!r} are not all positive, or some are too small")
        if np.isinf(lengths.max()):
            raise NotImplementedError(f"an edge's {weight!r} is infinite")
    simple = without_repetitions(graph.engine(weight))
    out, back = (
        (rows.indptr, rows.indices, np.empty(0) if rows.weights is None else np.asarray(rows.weights, np.float64))
        for rows in (simple.to_csr(), simple.csc)
    )
    return out, back

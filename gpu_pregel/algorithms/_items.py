"""Calls of a body for the numbers 0 to k - 1 instead of the vertices of a graph."""

from __future__ import annotations

import numpy as np

from gpu_pregel.host.graphs.csr import CSR
from gpu_pregel.host.graphs.graph import Graph


def items(count: int) -> Graph:
    """Return a graph of ``count`` isolated vertices, for ``process_vertices`` over walks or samples."""
    return Graph(CSR(np.zeros(count + 1, np.int64), np.zeros(0, np.uint32), None), directed=False)

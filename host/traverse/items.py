"""Calls of a body for the numbers 0 to k - 1 instead of the vertices of a graph."""

from __future__ import annotations

import numpy as np

from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.graphs.csr import CSR
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.traverse.frontier import Frontier


def items(count: int, target: Device, *, progress: bool = False) -> Frontier:
    """Return a frontier of ``count`` isolated vertices, for ``process_vertices`` over walks or samples."""
    isolated = Graph(CSR(np.zeros(count + 1, np.int64), np.zeros(0, np.uint32), None), directed=False)
    return Frontier(isolated, device=target.name, threads=target.threads, progress=progress)

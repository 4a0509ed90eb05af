"""Calls of a body for the numbers 0 to k - 1 instead of the vertices of a graph."""

from __future__ import annotations

import numpy as np

from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.graphs.csr import CSR
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.traverse.frontier import Frontier


def isolated(count: int) -> Graph:
    """Return a graph of ``count`` vertices without edges, for ``process_vertices`` over walks or samples."""
    return Graph(CSR(np.zeros(count + 1, np.int64), np.zeros(0, np.uint32), None), directed=False)


def items(count: int, device: Device) -> Frontier:
    """Return a frontier of all of them on a device."""
    return Frontier(isolated(count), device=device.name, threads=device.threads)

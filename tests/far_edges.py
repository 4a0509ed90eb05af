"""Graphs whose edges have positions beyond 31 or 32 bits, on the emulated device."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpu_pregel.host.emulator.machine.arrays import DeviceArray
from gpu_pregel.host.graphs import device_graph
from gpu_pregel.host.graphs.device_graph import DeviceEdges, DeviceGraph

FAR = {"31 bits": (1 << 31) - 37, "32 bits": (1 << 32) - 37}
"""Number of edges before the first one; positions below 2^32 have 32 bits and others 64. Some rows cross the limit."""


class _FarArray(DeviceArray):
    """The elements from ``first`` on of a longer array, of which those below are not in memory."""

    first = 0

    @property
    def address(self) -> int:
        return super().address - self.first * self.itemsize


def far(array: Any, first: int) -> Any:
    """Return an array as the elements from ``first`` on of a longer one."""
    found = _FarArray(array.memory, array.allocation, array.offset, array.shape, array.dtype)
    found.first = first
    return found


def move_edges(monkeypatch: pytest.MonkeyPatch, first: int) -> None:
    """Move the edges of all graphs that are copied from now on to the positions from ``first`` on."""
    edges_of, csr_of = DeviceGraph.edges, DeviceGraph.csr
    if first + (1 << 20) >= 1 << 32:
        monkeypatch.setattr(device_graph, "_SMALL_OFFSETS", 0)

    def moved(self: DeviceGraph, positions: Any) -> Any:
        return self.device.upload((positions.get().astype(np.int64) + first).astype(self.offset))

    def edges(self: DeviceGraph, *arguments: Any, **options: Any) -> DeviceEdges:
        made = edges_of(self, *arguments, **options)
        names = ("begins", "ends", "piece_begins", "piece_ends")
        weights = None if made.weights is None else far(made.weights, first)
        bounds = {name: moved(self, getattr(made, name)) for name in names}
        return replace(made, **bounds, indices=far(made.indices, first), weights=weights)

    def csr(self: DeviceGraph, *arguments: Any, **options: Any) -> tuple[Any, Any]:
        indptr, indices = csr_of(self, *arguments, **options)
        return moved(self, indptr), far(indices, first)

    monkeypatch.setattr(DeviceGraph, "edges", edges)
    monkeypatch.setattr(DeviceGraph, "csr", csr)

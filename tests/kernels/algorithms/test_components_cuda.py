"""Tests of the work that the CUDA kernels of connected components do."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest

from gpu_pregel.host.devices.emulated import EmulatedDevice
from gpu_pregel.kernels.algorithms import components_cuda as kernels
from tests.devices import EMULATED


@EMULATED
@pytest.mark.parametrize("lane", [0, 30, 31])
def test_a_warp_links_a_medium_row_once(lane: int) -> None:
    """Whichever lane has it: a ballot of lane 31 is not a negative number."""
    device: Any = EmulatedDevice()
    device.counts = {}
    length = kernels.WARP_EDGES
    n = 64 + length
    indptr = np.zeros(n + 1, np.int64)
    indptr[lane + 1 :] = length
    indices = device.upload(np.arange(64, n, dtype=np.uint32))
    labels = device.upload(np.arange(n, dtype=np.uint32))
    device.launch(kernels.link_rest, n, device.upload(indptr), indices, False, device.full(1, n, np.uint32), labels)
    ((compiled, counts),) = device.counts.values()
    neighbours = [
        loads
        for site, loads in zip(compiled.sites, counts.executions.tolist(), strict=True)
        if site.kind == "load" and "indices[first + k]" in linecache.getline(site.file, site.line)
    ]
    # The first neighbour was linked before.
    assert neighbours == [length - 1]

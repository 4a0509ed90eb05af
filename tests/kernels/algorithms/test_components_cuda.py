"""Tests of the work that the CUDA kernels of connected components do."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.host.devices import get_device
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
    device.launch(kernels.link, n, device.upload(indptr), indices, False, device.empty(1, np.uint32), labels)
    ((compiled, counts),) = device.counts.values()
    neighbours = [
        loads
        for site, loads in zip(compiled.sites, counts.executions.tolist(), strict=True)
        if site.kind == "load" and "indices[first + k]" in linecache.getline(site.file, site.line)
    ]
    assert neighbours == [length]


@EMULATED
@pytest.mark.parametrize(("graph", "limit"), [("kronecker", 125), ("uniform", 150), ("grid", 290)])
def test_bytes_per_vertex(graph: str, limit: int) -> None:
    """Of 2^14 vertices, in three launches and without a readback."""
    built = gp.grid(128) if graph == "grid" else getattr(gp, graph)(14)
    device: Any = get_device("emulated")
    before = (device.launches, device.memory.readbacks)
    device.counts = {}
    try:
        components = gp.connected_components(built, device="emulated")
        found = device.counts
    finally:
        device.counts = None
    assert (device.launches, device.memory.readbacks) == (before[0] + 3, before[1])
    sectors = sum(int(counts.sectors.sum()) for _, counts in found.values())
    assert 32 * sectors < limit * built.num_vertices
    assert (components.to_numpy() == gp.connected_components(built, device="cpu").labels).all()


@EMULATED
def test_the_sampled_vertex_is_in_the_component_with_the_most_edges() -> None:
    """Of a clique of 30 vertices beside 200 pairs."""
    clique = [(u, v) for u in range(400, 430) for v in range(400, u)]
    src, dst = np.array([*((2 * k, 2 * k + 1) for k in range(200)), *clique]).T
    graph = gp.Graph.from_edgelist(src, dst)
    device: Any = EmulatedDevice()
    edges = graph._csr_on(device, 0)
    labels, largest = (device.empty(size, np.uint32) for size in (430, 1))
    device.launch(kernels.initialise, 430, *edges, labels, largest)
    assert largest.get().tolist() == [400]


@EMULATED
def test_rows_of_the_chosen_component_are_not_read_to_their_end() -> None:
    """Two hubs with the same leaves, all of which have vertex 0 as their parent when linking begins."""
    leaves = np.arange(2, 1002)
    graph = gp.Graph.from_edgelist(np.repeat([0, 1], 1000), np.tile(leaves, 2))
    device: Any = EmulatedDevice()
    edges = graph._csr_on(device, 0)
    labels = device.empty(1002, np.uint32)
    device.counts = {}
    for _, kernel, size, *arguments in kernels.phases(1002, *edges, True, labels, device.empty):
        device.launch(kernel, size, *arguments)
    compiled, counts = device.counts["link"]
    reads = sum(
        loads
        for site, loads in zip(compiled.sites, counts.executions.tolist(), strict=True)
        if site.kind == "load" and "indices[" in linecache.getline(site.file, site.line)
    )
    # Hub 1 compares itself with its first neighbour, and links that one.
    assert reads == 2

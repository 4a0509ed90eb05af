"""Tests of the work that the CUDA kernels of connected components do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.host.devices import get_device
from gpu_pregel.host.devices.emulated import EmulatedDevice
from gpu_pregel.kernels.algorithms import components_cuda as kernels
from tests.counts import count_lines, counted
from tests.devices import EMULATED


@EMULATED
@pytest.mark.parametrize("length", [1, kernels.THREAD_EDGES, kernels.THREAD_EDGES + 1, kernels.WARP_EDGES, 600, 1300])
@pytest.mark.parametrize("both_ways", [False, True])
@pytest.mark.parametrize("row", [0, 31, 255, 2559])
def test_each_edge_is_linked_once(row: int, both_ways: bool, length: int) -> None:
    """By a thread, a warp or the block, whichever lane has the row: a ballot of lane 31 is not a negative number."""
    device, n = EmulatedDevice(), 2560
    indptr = np.zeros(n + 1, np.int64)
    indptr[row + 1 :] = length
    indices = device.upload((np.arange(length) + (row < 1000) * 1000).astype(np.uint32))
    labels, largest = device.upload(np.arange(n, dtype=np.uint32)), device.full(1, 2500, np.uint32)
    given = (device.upload(indptr), indices, both_ways, largest, labels)

    def link() -> None:
        device.launch(kernels.link, n, *given)

    # The first neighbour is read once more, unless it is smaller: then it is the parent already. A block begins at the
    # first edge, or at the fifth.
    is_linked = row == 2559 and length <= kernels.WARP_EDGES
    assert count_lines(device, link, "link", "indices") == length + 1 - is_linked


@EMULATED
@pytest.mark.parametrize(("graph", "limit"), [("kronecker", 130), ("uniform", 175), ("grid", 280)])
def test_bytes_per_vertex(graph: str, limit: int) -> None:
    """Of 2^14 vertices, in three launches and without a readback."""
    built = gp.grid(128) if graph == "grid" else getattr(gp, graph)(14)
    device: Any = get_device("emulated")
    before = (device.launches, device.memory.readbacks)
    results: list[Any] = []
    found = counted(device, lambda: results.append(gp.connected_components(built, device="emulated")))
    assert (device.launches, device.memory.readbacks) == (before[0] + 3, before[1])
    sectors = sum(int(counts.sectors.sum()) for counts in found.values())
    assert 32 * sectors < limit * built.num_vertices
    assert (results[0].to_numpy() == gp.connected_components(built, device="cpu").labels).all()


@EMULATED
@pytest.mark.parametrize("size", [25, 35])
def test_the_sampled_vertex_is_in_the_component_with_the_most_edges(size: int) -> None:
    """Of a clique beside 200 pairs, it is the smallest vertex, at which all walks in the clique end."""
    clique = [(u, v) for u in range(400, 400 + size) for v in range(400, u)]
    src, dst = np.array([*((2 * k, 2 * k + 1) for k in range(200)), *clique]).T
    graph = gp.Graph.from_edgelist(src, dst)
    device: Any = EmulatedDevice()
    edges = graph._csr_on(device, 0)
    labels, largest = (device.empty(length, np.uint32) for length in (400 + size, 1))
    device.launch(kernels.initialise, 400 + size, *edges, labels, largest)
    assert largest.get().tolist() == [400]


@EMULATED
@pytest.mark.parametrize("depth", [1, 40])
def test_rows_of_the_chosen_component_are_left_however_far_its_root(depth: int) -> None:
    """One vertex has edges; it finds vertex 0 after as many steps as its tree has levels."""
    device, n = EmulatedDevice(), 256
    parents = np.maximum(np.arange(n, dtype=np.uint32), 1) - 1
    parents[-1] = depth - 1
    indptr = np.where(np.arange(n + 1) == n, 20, 0)
    labels, given = device.upload(parents), (device.upload(indptr), device.full(20, 1, np.uint32), True)

    def link() -> None:
        device.launch(kernels.link, n, *given, device.zeros(1, np.uint32), labels)

    assert count_lines(device, link, "link", "indices") == 0
    labels.set(parents)
    # A label for each level, that of the root itself, and twice that of vertex 0.
    assert count_lines(device, link, "link", "labels[") == depth + 3


@EMULATED
def test_rows_of_the_chosen_component_are_not_read_to_their_end() -> None:
    """Two hubs with the same leaves, all of which have vertex 0 as their parent when linking begins."""
    leaves = np.arange(2, 1002)
    graph = gp.Graph.from_edgelist(np.repeat([0, 1], 1000), np.tile(leaves, 2))
    device: Any = EmulatedDevice()
    edges = graph._csr_on(device, 0)
    labels = device.empty(1002, np.uint32)

    def link_all() -> None:
        for _, kernel, size, *arguments in kernels.phases(1002, *edges, True, labels, device.empty):
            device.launch(kernel, size, *arguments)

    # Hub 1 compares itself with its first neighbour, and links that one.
    assert count_lines(device, link_all, "link", "indices") == 2

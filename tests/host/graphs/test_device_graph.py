"""Copies of a graph on a device: one of each array, in the dtypes of the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import GraphError
from gpu_pregel.host.devices.emulated import EmulatedDevice
from gpu_pregel.host.emulator.machine.arrays import DeviceArray, EmulatedMemory
from gpu_pregel.host.graphs import device_graph
from gpu_pregel.host.graphs.device_graph import DeviceGraph
from tests.devices import CUDA_DEVICES, EMULATED
from tests.programs import DISTANCES, LABELS

HUB = 4


@pytest.fixture
def device() -> EmulatedDevice:
    return EmulatedDevice(0, EmulatedMemory())


@pytest.fixture
def graph() -> gp.Graph:
    """A graph with weights and rows of 5, 2, 0 and 1 out-edges."""
    src, dst = [0, 0, 0, 0, 0, 1, 1, 3], [1, 2, 2, 3, 3, 0, 3, 3]
    return gp.Graph.from_edgelist(src, dst, np.arange(8) / 2, num_vertices=4, directed=True)


def host(array: Any) -> list[Any]:
    return array.get().tolist()  # type: ignore[no-any-return]


@EMULATED
def test_edges_are_rows_and_the_pieces_of_long_rows(device: EmulatedDevice, graph: gp.Graph) -> None:
    (whole,) = graph._partitions(1, threads=1)
    out = DeviceGraph(device, graph.num_stored_edges).edges(whole.out_edges, HUB, sparse=True)
    assert (host(out.begins), host(out.ends)) == ([0, 5, 7, 7], [5, 7, 7, 8])
    assert (out.begins.dtype, out.indices.dtype, out.weights.dtype) == (np.uint32, np.uint32, np.float64)
    assert host(out.indices) == [1, 2, 2, 3, 3, 0, 3, 3]
    assert host(out.weights) == graph.weights.tolist()  # type: ignore[union-attr]
    assert [host(array) for array in (out.rows, out.source_words, out.source_bits, out.source_firsts)] == [[]] * 4
    assert (host(out.piece_vertices), host(out.piece_begins), host(out.piece_ends)) == ([0, 0], [0, 4], [4, 5])
    assert (host(out.hubs), host(out.hub_rows), host(out.hub_firsts)) == ([0], [0], [0, 2])
    # The bounds of a whole graph are views of one array.
    assert out.begins.allocation is out.ends.allocation


@EMULATED
def test_a_partition_lists_the_rows_that_have_edges() -> None:
    device, graph = EmulatedDevice(0, EmulatedMemory()), gp.Graph.from_edgelist([0, 70], [1, 130], num_vertices=140)
    there = DeviceGraph(device, graph.num_stored_edges)
    parts = graph._partitions(3, threads=1)
    pulled = [there.edges(part.in_edges, HUB, sparse=False) for part in parts]
    assert [host(edges.rows) for edges in pulled] == [[0, 1], [130], [70]]
    assert [len(edges.begins) for edges in pulled] == [2, 1, 1]
    pushed = [there.edges(part.out_edges, HUB, sparse=True) for part in parts]
    assert [host(edges.source_words) for edges in pushed] == [[0], [4], [2]]
    assert [host(edges.source_bits) for edges in pushed] == [[0b11], [1 << 2], [1 << 6]]
    assert [host(edges.source_firsts) for edges in pushed] == [[0], [0], [0]]
    assert len({id(edges.indices) for edges in pulled + pushed}) == 1


@EMULATED
def test_memory_grows_with_the_partition_and_not_with_the_graph(device: EmulatedDevice) -> None:
    graph = gp.grid(1, 1 << 14, holes=0)
    totals = {}
    for partitions in (1, 4, 16, 64):
        there = DeviceGraph(device, graph.num_stored_edges)
        there.copy(graph.indices)
        parts = graph._partitions(partitions, threads=1)
        totals[partitions] = there.missing_bytes(parts, [], HUB)
        rows = sum(len(part.out_edges.begins) + len(part.in_edges.begins) for part in parts)
        # A row has two bounds; a partition lists its vertices, or at most one word of three numbers for each.
        assert totals[partitions] <= 20 * rows + 8 * partitions
    # Two vertices at each cut have rows in both partitions.
    assert totals[64] - totals[4] <= 60 * 2 * 2 * 20 + 8 * 60


@EMULATED
def test_no_array_is_copied_twice(device: EmulatedDevice) -> None:
    graph = gp.kronecker(6, 4)
    there = DeviceGraph(device, graph.num_stored_edges)
    (whole,) = graph._partitions(1, threads=1)
    indptr, indices = there.csr(graph.to_csr(), 0)
    needed = there.missing_bytes([whole], [graph.out_degrees], HUB)
    before = device.memory.live_bytes
    sides = [
        there.edges(edges, HUB, sparse=sparse) for edges, sparse in ((whole.out_edges, True), (whole.in_edges, False))
    ]
    degrees = there.offsets(graph.out_degrees)
    # The graph is undirected: in-edges are out-edges.
    assert sides[0].indices is sides[1].indices is indices
    assert sides[0].begins.allocation is indptr.allocation
    assert device.memory.live_bytes - before == needed
    assert there.missing_bytes([whole], [graph.out_degrees], HUB) == 0
    uploads = device.memory.uploads
    assert there.edges(whole.out_edges, HUB, sparse=True).indices is indices
    assert there.offsets(graph.out_degrees) is degrees
    assert device.memory.uploads == uploads


@EMULATED
def test_copies_have_the_given_dtype(device: EmulatedDevice) -> None:
    there, numbers = DeviceGraph(device, 5), np.array([1, 2, 3], np.int64)
    small, same = there.copy(numbers, np.uint32), there.copy(numbers)
    assert (host(small), small.dtype, same.dtype) == ([1, 2, 3], np.uint32, np.int64)
    assert isinstance(same, DeviceArray)
    numbers[0] = 9
    assert host(same) == [1, 2, 3]


@CUDA_DEVICES
def test_edge_positions_of_eight_bytes(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs with 2^32 or more edges need them."""
    monkeypatch.setattr(device_graph, "_SMALL_OFFSETS", 0)
    src, dst, _ = gp.kronecker(8, 8).to_edgelist()
    hub = np.arange(1, 1_200)
    src, dst = np.append(src, 0 * hub), np.append(dst, hub)
    graph = gp.Graph.from_edgelist(src, dst, np.arange(len(src)) % 5 + 0.5, num_vertices=1_200)
    for mode in ("push", "pull"):
        found = gp.run(graph, DISTANCES, device=device, mode=mode).to_numpy()
        assert found.tobytes() == gp.run(graph, DISTANCES, device="cpu").to_numpy().tobytes()
    labels = gp.connected_components(graph, device=device).to_numpy()
    assert np.array_equal(labels, gp.connected_components(graph, device="cpu").to_numpy())
    assert {copy.dtype for copy in _copies(graph)} == {np.dtype(kind) for kind in ("i8", "u4", "f8")}


def _copies(graph: gp.Graph) -> list[Any]:
    (there,) = (fact for name, fact in graph._facts.items() if name.startswith("copies on"))
    return [copy for _, copy in there._copies.values()]


@CUDA_DEVICES
def test_graphs_with_too_many_vertices_are_rejected(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, large = gp.grid(10), gp.Graph.from_edgelist([], [], num_vertices=101)
    monkeypatch.setattr(device_graph, "_MOST_VERTICES", 100)
    assert gp.run(graph, LABELS, device=device).supersteps > 1
    problem = "a graph of 101 vertices is beyond the 100 of a CUDA device"
    with pytest.raises(GraphError, match=problem):
        gp.run(large, LABELS, device=device)
    with pytest.raises(GraphError, match=problem):
        gp.connected_components(large, device=device)

"""Tests of the CUDA kernels of triangles on rows of the lengths at which they change their ways."""

from __future__ import annotations

from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.algorithms import _triangles
from gpu_pregel.algorithms._driver import AlgorithmRun
from gpu_pregel.errors import NotEnoughMemoryError
from gpu_pregel.host.devices.emulated import EmulatedDevice
from gpu_pregel.host.emulator.machine.arrays import EmulatedMemory
from gpu_pregel.host.graphs import device_graph
from gpu_pregel.host.graphs.device_sort import scan
from gpu_pregel.kernels.algorithms import forward_rows_cuda
from gpu_pregel.kernels.algorithms import triangles_cuda as kernels
from gpu_pregel.kernels.traverse.rows_cuda import TILE
from tests.counts import count as count_accesses
from tests.counts import count_launches, count_lines
from tests.devices import EMULATED, SEEDS
from tests.far_edges import FAR, far

pytestmark = EMULATED
Array = np.ndarray[Any, Any]


def clique(size: int) -> Array:
    return np.array(list(combinations(range(size), 2))).reshape(-1, 2)


def built(edges: Any, n: int) -> gp.Graph:
    return gp.Graph.from_edgelist(*np.reshape(edges, (-1, 2)).T, num_vertices=n)


def expected_counts(graph: gp.Graph) -> Array:
    return gp.triangle_count(graph, device="cpu").to_numpy()


def wheel(rim: int) -> gp.Graph:
    """Return vertex 0 joined with a cycle, which gives each neighbour two triangles."""
    around = np.arange(1, rim + 1)
    return built(np.stack([np.r_[0 * around, around], np.r_[around, np.roll(around, 1)]], axis=1), rim + 1)


def first_edges(kind: str, edges: int) -> tuple[Array, Array]:
    """Return the first so many stored edges of a graph as ``indptr`` and ``indices``; other rows are empty.

    It has self-loops, repeated edges and isolated vertices, or is a star whose leaves have a neighbour each.
    """
    if kind == "star":
        graph = gp.Graph.from_edgelist(np.arange(edges), np.full(edges, edges))
    else:
        pairs = np.random.default_rng(edges).integers(0, 40, (edges, 2))
        graph = gp.Graph.from_edgelist(*np.r_[pairs, pairs[: len(pairs) // 3]].T, num_vertices=45)
    return np.minimum(graph.indptr, edges), graph.indices[:edges]


def forward_by(rank: Array, graph: gp.Graph) -> tuple[Array, Array]:
    """Return ``begins`` and ``heads`` of the edges to higher ranks in a graph without repetitions."""
    sources = np.repeat(np.arange(graph.num_vertices), np.diff(graph.indptr))
    is_forward = rank[sources] < rank[graph.indices]
    lengths = np.bincount(sources[is_forward], minlength=graph.num_vertices)
    return np.concatenate([[0], np.cumsum(lengths)]), graph.indices[is_forward]


def count(device: Any, graph: gp.Graph, rank: Array, first: int = 0) -> tuple[Array, int]:
    """Return the counts, and the number of pieces, if edges lead to higher ranks and positions begin at ``first``."""
    offset = np.uint32 if first + (1 << 20) < 1 << 32 else np.int64
    begins, heads = forward_by(rank, graph)
    indptr, begins = (device.upload((array + first).astype(offset)) for array in (graph.indptr, begins))
    indices, heads = (far(device.upload(array), first) for array in (graph.indices, heads))
    room = _triangles._most_pieces(graph.num_stored_edges, kernels) + graph.num_vertices
    pieces, numbers, control = (device.zeros(size, kind) for size, kind in ((room, np.uint32),) * 2 + ((1, np.uint64),))
    n, counts = graph.num_vertices, device.zeros(graph.num_vertices, np.int64)
    device.launch(kernels.list_pieces, n, indptr, begins, pieces, numbers, control)
    found = int(control.get()[kernels.PIECES])
    device.launch(kernels.count_long, found, indptr, indices, begins, heads, pieces, numbers, counts)
    device.launch(kernels.count_short, n, indptr, indices, begins, heads, counts)
    return counts.get(), found


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("size", [2, 3, 33, kernels.WARP_ENTRIES, kernels.WARP_ENTRIES + 1, kernels.WARP_ENTRIES + 3])
def test_cliques(size: int, seed: int) -> None:
    """The longest forward row has one vertex less than the clique, and the table is as full as any."""
    graph = built(clique(size), size)
    found, pieces = count(EmulatedDevice(seed), graph, np.random.default_rng(size).permutation(size))
    assert found.tolist() == [(size - 1) * (size - 2) // 2] * size
    assert pieces == max(0, size - 1 - kernels.WARP_ENTRIES)


@pytest.mark.parametrize("degree", [kernels.PIECE - 1, kernels.PIECE, kernels.PIECE + 1, 2 * kernels.PIECE + 5])
@pytest.mark.parametrize("is_first", [False, True])
def test_hubs(is_first: bool, degree: int) -> None:
    """A hub with all neighbours in its forward row, which has several parts, and one with few of them."""
    graph = wheel(degree)
    rank = np.arange(degree + 1.0)
    rank[0] = 0 if is_first else degree - 69.5
    found, pieces = count(EmulatedDevice(), graph, rank)
    np.testing.assert_array_equal(found, expected_counts(graph))
    assert pieces == -(-degree // kernels.PIECE)


def test_pieces_of_a_hub_with_a_short_forward_row() -> None:
    """It is the end of many edges whose other end has a forward row that is shorter still."""
    graph = wheel(kernels.PIECE + 10)
    rank = np.arange(kernels.PIECE + 11.0)
    rank[0] = kernels.PIECE + 3.5
    found, pieces = count(EmulatedDevice(), graph, rank)
    np.testing.assert_array_equal(found, expected_counts(graph))
    assert pieces == 2


@pytest.mark.parametrize("seed", SEEDS)
def test_any_order_of_the_vertices_gives_the_same_counts(seed: int) -> None:
    graph = gp.kronecker(8, 24)
    expected = expected_counts(graph)
    n = graph.num_vertices
    for rank in (np.arange(n), n - np.arange(n), np.random.default_rng(seed).permutation(n)):
        found, pieces = count(EmulatedDevice(seed), graph, rank)
        np.testing.assert_array_equal(found, expected)
        assert pieces > 0


@pytest.mark.parametrize("first", FAR.values(), ids=FAR)
def test_far_edges(first: int) -> None:
    """Rows, long and short ones, whose positions are beyond 31 and 32 bits."""
    graph = gp.kronecker(8, 24)
    found, pieces = count(EmulatedDevice(), graph, np.arange(graph.num_vertices), first)
    np.testing.assert_array_equal(found, expected_counts(graph))
    assert pieces > 0


_EDGES = [
    1,
    31,
    32,
    33,
    TILE - 1,
    TILE,
    TILE + 1,
    3 * TILE,
]


@pytest.mark.parametrize("offset", [np.uint32, np.int64])
@pytest.mark.parametrize("edges", _EDGES)
@pytest.mark.parametrize("kind", ["random", "star"])
def test_forward_rows(kind: str, edges: int, offset: Any) -> None:
    indptr, indices = first_edges(kind, edges)
    device: Any = EmulatedDevice()
    n, there = len(indptr) - 1, (device.upload(indptr.astype(offset)), device.upload(indices))
    bits, sizes = (device.empty(edges // 32 + 1, np.uint32) for _ in range(2))
    device.launch(forward_rows_cuda.mark_forward, edges + 1, *there, bits, sizes)
    positions = scan(device, sizes)
    begins, heads = device.empty(n + 1, offset), device.empty(edges, np.uint32)
    device.launch(forward_rows_cuda.keep_forward, edges, there[1], bits, positions, heads)
    device.launch(forward_rows_cuda.write_begins, n + 1, there[0], bits, positions, begins)
    degrees = np.diff(indptr)
    rows = [sorted(set(indices[indptr[u] : indptr[u + 1]].tolist()) - {u}) for u in range(n)]
    kept = [[v for v in row if (degrees[u], u) < (degrees[v], v)] for u, row in enumerate(rows)]
    assert np.diff(begins.get()).tolist() == [len(row) for row in kept]
    assert heads.get()[: begins.get()[-1]].tolist() == [v for row in kept for v in row]
    neighbors = device.zeros(n, np.uint32)
    device.launch(kernels.count_neighbors, edges, *there, neighbors)
    assert neighbors.get().tolist() == [len(row) for row in rows]


@pytest.mark.parametrize("offsets", [32, 64])
def test_both_sizes_of_offsets(offsets: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if offsets == 64:
        monkeypatch.setattr(device_graph, "_SMALL_OFFSETS", 0)
    graph = gp.kronecker(9)
    np.testing.assert_array_equal(gp.triangle_count(graph, device="emulated").to_numpy(), expected_counts(graph))
    found = gp.local_clustering(graph, device="emulated")
    np.testing.assert_array_equal(found.to_numpy(), gp.local_clustering(graph, device="cpu").to_numpy())
    np.testing.assert_array_equal(found.neighbors.get(), graph.out_degrees)


def run_on(device: Any, graph: gp.Graph) -> AlgorithmRun:
    """Return a run on a device of a test."""
    run = AlgorithmRun("triangle_count", graph, "emulated")
    run.device = device
    return run


@pytest.mark.parametrize("kind", ["kronecker", "wheel", "grid", "clique"])
def test_the_memory_is_reserved(kind: str) -> None:
    """As much as is used, and hardly more."""
    makers = {"kronecker": lambda: gp.kronecker(11), "wheel": lambda: wheel(5000), "grid": lambda: gp.grid(40)}
    graph = makers.get(kind, lambda: built(clique(90), 90))()
    memory = EmulatedMemory()
    device: Any = EmulatedDevice(memory=memory)
    _triangles.count_forward(run_on(device, graph))
    rows = 4 * (graph.num_vertices + 1 + graph.num_stored_edges)
    needed = _triangles._forward_bytes(graph)
    assert needed * 0.7 - 4096 < memory.peak_bytes - rows <= needed
    memory.capacity = memory.live_bytes + needed - 1
    with pytest.raises(NotEnoughMemoryError):
        _triangles.count_forward(run_on(device, graph))


def test_bytes_per_edge() -> None:
    """In as many launches as there are kernels, and with one readback."""
    graph = gp.kronecker(12)
    device: Any = EmulatedDevice()
    work = partial(_triangles.count_forward, run_on(device, graph))
    assert count_launches(device, work)[1] == 1
    found = count_accesses(device, work)
    assert 32 * sum(accesses.sectors for accesses in found.values()) < 340 * graph.num_stored_edges
    assert len(found) == 9


def test_rows_are_looked_up_in_longer_ones() -> None:
    """Of all pairs of neighbours, the shorter forward row is read, once for each part of the longer one."""
    graph = gp.kronecker(9)
    device: Any = EmulatedDevice()
    begins, heads = forward_by(graph.out_degrees * graph.num_vertices + np.arange(graph.num_vertices), graph)
    lengths = np.diff(begins)
    sources = np.repeat(np.arange(graph.num_vertices), lengths)
    run = run_on(device, graph)
    read = count_lines(device, lambda: _triangles.count_forward(run), "count_short", "heads[first")
    assert lengths.max() <= kernels.WARP_ENTRIES
    assert read == np.minimum(lengths[sources], lengths[heads]).sum()


def test_stored_edges_that_fill_their_tiles() -> None:
    """Then the mark after the last edge is in a tile of its own."""
    n = TILE // 2
    graph = built(np.stack([np.arange(n), np.roll(np.arange(n), 1)], axis=1), n)
    assert graph.num_stored_edges == TILE
    assert gp.triangle_count(graph, device="emulated").total == 0


def test_a_hub_without_forward_edges_has_no_pieces() -> None:
    """The leaves of a star have the lower degree, so that all edges lead to the hub."""
    leaves = 3 * kernels.PIECE
    graph = built(np.stack([np.zeros(leaves, int), np.arange(1, leaves + 1)], axis=1), leaves + 1)
    counts, pieces = count(EmulatedDevice(0), graph, np.r_[leaves + 1, np.arange(leaves)])
    assert (counts.sum(), pieces) == (0, 0)

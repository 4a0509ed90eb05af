"""Operators on CUDA: rows of hubs, forms of frontiers, races, launches and memory."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csgraph

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentTypeError, EmulationError, NotEnoughMemoryError, ProgramError
from gpu_pregel.host.devices import get_device
from gpu_pregel.host.graphs import device_graph
from gpu_pregel.host.traverse import operators_cuda
from gpu_pregel.kernels.library import atomics
from gpu_pregel.kernels.library.jit_cuda import BLOCK, WARPS
from gpu_pregel.kernels.traverse.edges_cuda import position_type
from gpu_pregel.kernels.traverse.rows_cuda import HUB_EDGES
from tests.devices import CUDA_DEVICES, EMULATED
from tests.graphs import arrays, edge_lists

pytestmark = EMULATED
HUB = 1_100
"""More neighbours than the edges that a warp reads at a time."""


def with_hubs(*, directed: bool, weight: Any = None, **options: Any) -> gp.Graph:
    """Return a graph in which vertices 0 and 7 have so many neighbours that their rows are cut into pieces."""
    n = 2 * HUB + 17
    src = np.concatenate([np.zeros(2 * HUB, int), np.full(HUB, 7), np.arange(n - 1), np.arange(0, n, 3)])
    dst = np.concatenate([np.arange(1, 2 * HUB + 1), np.arange(9, HUB + 9), np.arange(1, n), np.arange(0, n, 3)[::-1]])
    weights = None if weight is None else (np.arange(len(src)) % 13 + 1).astype(weight)
    return gp.Graph.from_edgelist(src, dst, weights, num_vertices=n, directed=directed, **options)


def take(u: Any, v: Any, weight: Any, calls: Any, sums: Any) -> Any:
    atomics.add(calls, v, 1)
    atomics.add(sums, v, np.int64(weight) + u)
    return v % 3 != 0


def count_by_hand(graph: gp.Graph, flags: Any, *, transpose: bool) -> tuple[Any, Any]:
    """Return how often ``take`` is called for each vertex, and the sums."""
    indptr, indices, weights = graph.to_csr()
    src, dst = np.repeat(np.arange(graph.num_vertices), np.diff(indptr)), indices.astype(np.int64)
    weights = np.ones(len(src)) if weights is None else weights
    if transpose:
        src, dst = dst, src
    sent = flags[src]
    calls = np.bincount(dst[sent], minlength=graph.num_vertices)
    sums = np.bincount(dst[sent], (weights + src)[sent], minlength=graph.num_vertices)
    return calls, sums.astype(np.int64)


def frontiers(graph: gp.Graph, device: str) -> dict[str, gp.Frontier]:
    """Return frontiers of the same and of other vertices in every form."""
    n = graph.num_vertices
    every = gp.Frontier(graph, device=device)
    queue = gp.process_vertices(lambda v: v % 5 < 2, every.chosen(np.arange(n)), returns="frontier")
    words = gp.process_vertices(lambda v: v % 5 < 2, every, returns="frontier")
    return {"all": every, "queue": queue, "words": words, "hubs": every.chosen([0, 7]), "none": every.chosen([])}


@pytest.mark.parametrize(("directed", "weight"), [(True, np.int64), (False, None)], ids=["directed", "undirected"])
@CUDA_DEVICES
def test_each_edge_of_the_frontier_is_processed_once(device: str, directed: bool, weight: Any) -> None:
    check_each_edge(with_hubs(directed=directed, weight=weight), device)


def test_edge_positions_of_64_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    for offset, position in ((np.int64, "uint64"), (np.uint32, "uint32")):
        assert str(position_type(np.dtype(offset))) == position
    monkeypatch.setattr(device_graph, "_SMALL_OFFSETS", 0)
    check_each_edge(with_hubs(directed=False), "emulated:3")


def check_each_edge(graph: gp.Graph, device: str) -> None:
    """Check the calls of ``take``, and the next frontiers, of every form of frontier in both directions."""
    for name, frontier in frontiers(graph, device).items():
        flags = frontier.flags()
        assert frontier._active.edges == graph.out_degrees[flags].sum()
        for transpose in (False, True) if graph.is_directed else (False,):
            expected = count_by_hand(graph, flags, transpose=transpose)
            reached = np.flatnonzero((expected[0] > 0) & (np.arange(graph.num_vertices) % 3 != 0))
            for mode in ("push", "pull"):
                found = [frontier.full(0, np.int32), frontier.full(0, np.int64)]
                following = gp.process_edges(take, frontier, found, mode=mode, transpose=transpose)
                for got, right in zip(found, expected, strict=True):
                    np.testing.assert_array_equal(frontier.download(got), right, err_msg=f"{name} {mode} {transpose}")
                assert following.vertices().tolist() == reached.tolist()
                assert len(following) == len(reached)
                assert following._active.edges == (graph.in_degrees if transpose else graph.out_degrees)[reached].sum()


@pytest.mark.parametrize("transpose", [False, True], ids=["out", "in"])
def test_rows_of_as_many_edges_as_a_piece(transpose: bool) -> None:
    degrees = [HUB_EDGES, HUB_EDGES + 1, HUB_EDGES - 1, 2 * HUB_EDGES, 2 * HUB_EDGES + 1]
    ends = [np.repeat(np.arange(len(degrees)), degrees), np.concatenate([np.arange(k) + 5 for k in degrees])]
    graph = gp.Graph.from_edgelist(*ends[:: -1 if transpose else 1], num_vertices=2 * HUB_EDGES + 6, directed=True)
    check_each_edge(graph, "emulated")
    # There is no room for a hub if no row can be one.
    check_each_edge(gp.Graph.from_edgelist(*(end[:HUB_EDGES] for end in ends), directed=True), "emulated")
    frontier = gp.Frontier(graph, np.arange(graph.num_vertices), device="emulated")
    counts = [frontier.full(0, np.int32), frontier.full(0, np.int64)]
    gp.process_edges(take, frontier, counts, mode="push", transpose=transpose)
    # Three hubs, cut into 2, 2 and 3 pieces.
    active: Any = frontier._active
    assert active.hubs == 3 * 2**32 + 7
    for csr, counted in ((graph._csr, graph.out_degrees), (graph.csc, graph.in_degrees)):
        few = frontier.chosen([1, 3, 2000])
        assert few._run.operators.degree_sum(few._active, csr) == counted[few.flags()].sum()


def test_vertices_of_many_words_are_listed_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each warp lists several groups of words, and sums the figures of more than 32 warps before it."""
    monkeypatch.setattr(operators_cuda, "LIST_WARPS", 40)
    n = 100_000
    hubs = np.array([5, 31_000, 31_040, 64_000, n - 1])
    graph = gp.Graph.from_edgelist(np.repeat(hubs, HUB), np.tile(np.arange(HUB), 5), num_vertices=n, directed=True)
    chosen = np.union1d(np.arange(0, n, 17), hubs)
    frontier = gp.Frontier(graph, chosen, device="emulated")
    active: Any = frontier._active
    assert (active.count, active.edges, active.hubs) == (len(chosen), 5 * HUB, 5 * 2**32 + 10)
    assert active.storage.queue.get()[: active.count].tolist() == chosen.tolist()
    assert active.storage.hubs.get()[:5].tolist() == hubs.tolist()
    assert active.storage.firsts.get()[:5].tolist() == [0, 2, 4, 6, 8]
    assert (frontier.chosen([1]) | frontier).vertices().tolist() == [0, 1, *chosen[1:]]


def test_a_thread_sums_over_several_vertices(monkeypatch: pytest.MonkeyPatch) -> None:
    # The number of a vertex, and of the one after a step of all threads, has 32 bits.
    assert device_graph._MOST_VERTICES + operators_cuda.MAX_BLOCKS * BLOCK <= 1 << 32
    monkeypatch.setattr(operators_cuda, "MAX_BLOCKS", 2)
    frontier = gp.Frontier(gp.Graph.from_edgelist([], [], num_vertices=3000), device="emulated")
    for few, most in ((frontier.chosen([5, 7]), 1), (frontier, 2)):
        assert gp.process_vertices(lambda v: v, few) == few.vertices().sum()
        operators: Any = frontier._run.operators
        assert [len(kept.partials) for kept in operators._sums.values()] == [most * WARPS]


@pytest.mark.parametrize("dtype", [np.float64, np.int32])
def test_weights_of_each_type_arrive_as_they_are(dtype: Any) -> None:
    weight = np.array([0.1, 2.5, 7, 1 << 20]).astype(dtype)
    graph = gp.Graph.from_edgelist([0, 0, 1, 3], [1, 2, 2, 0], weight, directed=True)
    frontier = gp.Frontier(graph, device="emulated")
    total = gp.process_edges(lambda u, v, w: w, frontier, returns="sum", mode="pull")
    assert total == weight.astype(np.float64).sum()
    assert isinstance(total, int if dtype == np.int32 else float)


def limited(u: Any, v: Any, weight: Any, taken: Any, limit: Any) -> Any:
    atomics.add(taken, v, 1)
    return True


def below_limit(v: Any, taken: Any, limit: Any) -> Any:
    return taken[v] < limit and v != 5


@CUDA_DEVICES
def test_rows_end_where_their_vertex_stops_receiving(device: str) -> None:
    graph = with_hubs(directed=False)
    degrees = graph.out_degrees
    for mode in ("push", "pull"):
        for limit in (2, 40, 600):
            frontier = gp.Frontier(graph, device=device)
            taken = frontier.full(0, np.int32)
            found = gp.process_edges(limited, frontier, [taken, limit], receives=below_limit, mode=mode)
            got = frontier.download(taken)
            assert got[5] == 0
            others = np.arange(graph.num_vertices) != 5
            assert (got >= np.minimum(degrees, limit))[others].all()
            if mode == "pull":
                # Each piece of a row stops on its own, after at most one more step of a warp. The warps of a GPU that
                # push at the same time all see the vertex as it was.
                assert (got <= np.minimum(degrees, limit + 64 * (1 + degrees // 1024)))[others].all()
            assert found.flags().tolist() == (got > 0).tolist()
            gp.process_edges(limited, frontier, [taken, limit], receives=below_limit, mode=mode)
            assert (frontier.download(taken) == got)[got >= limit].all()


def nearer(u: Any, v: Any, weight: Any, distances: Any) -> Any:
    distance = atomics.load(distances, u) + weight
    return atomics.min(distances, v, distance) > distance


def adopt(u: Any, v: Any, weight: Any, parents: Any) -> Any:
    return atomics.compare_and_swap(parents, v, -1, u)


def lower(u: Any, v: Any, weight: Any, labels: Any) -> Any:
    label = atomics.load(labels, u)
    return atomics.min(labels, v, label) > label


@CUDA_DEVICES
def test_ligras_programs(device: str) -> None:
    """Breadth-first search, components and Bellman-Ford, as in Ligra."""
    graph = with_hubs(directed=False, weight=np.float32, combine="min")
    n = graph.num_vertices
    frontier = gp.Frontier(graph, [3], device=device)
    parents = frontier.upload(np.where(np.arange(n) == 3, 3, -1).astype(np.int32))
    levels = 0
    while frontier := gp.process_edges(adopt, frontier, [parents], receives=lambda v, parents: parents[v] < 0):
        levels += 1
    hops = csgraph.shortest_path(graph.to_scipy(), indices=3, unweighted=True, method="D")
    found = frontier.download(parents)
    assert levels == hops[np.isfinite(hops)].max()
    reached = np.flatnonzero(found >= 0)
    assert reached.tolist() == np.flatnonzero(np.isfinite(hops)).tolist()
    assert all(hops[found[v]] == hops[v] - 1 for v in reached if v != 3)

    frontier = gp.Frontier(graph, device=device)
    labels = frontier.upload(np.arange(n, dtype=np.uint32))
    while frontier := gp.process_edges(lower, frontier, [labels]):
        pass
    assert frontier.download(labels).tolist() == gp.connected_components(graph, device="cpu").labels.tolist()

    frontier = gp.Frontier(graph, [3], device=device)
    distances = frontier.upload(np.where(np.arange(n) == 3, 0, np.inf).astype(np.float32))
    while frontier := gp.process_edges(nearer, frontier, [distances]):
        pass
    expected = csgraph.dijkstra(graph.to_scipy(), indices=3)
    np.testing.assert_array_equal(frontier.download(distances), expected)


@settings(max_examples=25)
@given(edge_lists(), st.integers(0, 4), st.integers(0, 2))
def test_modes_agree_on_random_graphs(graph: Any, share: int, seed: int) -> None:
    n, edges = graph
    made = gp.Graph.from_edgelist(*arrays(edges), num_vertices=n, directed=True)
    flags = np.arange(n) % 5 <= share
    expected = count_by_hand(made, flags, transpose=False)
    for mode in ("push", "pull"):
        frontier = gp.Frontier(made, flags, device="emulated" if seed == 0 else f"emulated:{seed}")
        found = [frontier.full(0, np.int32), frontier.full(0, np.int64)]
        following = gp.process_edges(take, frontier, found, mode=mode)
        assert [frontier.download(one).tolist() for one in found] == [one.tolist() for one in expected]
        assert following.flags().tolist() == ((expected[0] > 0) & (np.arange(n) % 3 != 0)).tolist()


def test_sums_of_floats_are_the_same_to_the_bit_whatever_the_order_of_a_queue() -> None:
    graph = with_hubs(directed=True)
    totals = set()
    for seed in range(4):
        frontier = gp.Frontier(graph, np.arange(0, 200, 3), device=f"emulated:{seed}")
        pushed = gp.process_edges(take, frontier, [frontier.full(0, np.int32), frontier.full(0, np.int64)], mode="push")
        vertices = gp.process_vertices(lambda v: 1 / (v + 1), pushed)
        edges = [gp.process_edges(lambda u, v, w: 1 / (u + v + 1), pushed, returns="sum", mode=m) for m in MODES]
        totals.add((vertices, *edges))
        src, dst, _ = graph.to_edgelist()
        assert vertices == pytest.approx((1 / (pushed.vertices() + 1)).sum())
        assert edges == pytest.approx([(1 / (src + dst + 1))[pushed.flags()[src]].sum()] * 2)
    assert len(totals) == 1


MODES: tuple[Any, ...] = ("push", "pull")


def overwrite(u: Any, v: Any, weight: Any, parents: Any) -> Any:
    if parents[v] < 0:
        parents[v] = u
        return True
    return False


@pytest.mark.parametrize("mode", MODES)
def test_plain_writes_that_race_are_reported(mode: Any) -> None:
    graph = gp.Graph.from_edgelist([0, 1, 2, 3], [9, 9, 9, 9], num_vertices=10, directed=True)
    frontier = gp.Frontier(graph, device="emulated")
    with pytest.raises(EmulationError, match=r"data race: (reads|writes) arrays\[0\]\[9\]"):
        gp.process_edges(overwrite, frontier, [frontier.full(-1, np.int64)], mode=mode)


@pytest.mark.usefixtures("young_heap")
def test_a_superstep_is_a_few_launches_and_one_readback() -> None:
    device: Any = get_device("emulated")
    n = 1000
    graph = gp.Graph.from_edgelist(np.arange(n - 1), np.arange(1, n))
    frontier = gp.Frontier(graph, [0], device="emulated")
    hops = frontier.upload(np.where(np.arange(n) == 0, 0, -1))
    for superstep in range(1, 9):
        before = used(device)
        frontier = gp.process_edges(walk, frontier, [hops, superstep])
        after = used(device)
        assert len(frontier) == 1
        assert superstep <= 2 or (after - before).tolist() == [2, 1, 0]
        assert gp.process_vertices(lambda v: v, frontier) == superstep
        assert superstep == 1 or (used(device) - after).tolist() == [2, 1, 0]
        assert frontier.vertices().tolist() == [superstep]
        gc.collect()  # frames of the first superstep's compilation, in cycles of Numba's exceptions, keep storage
    # A pull fills no queue by which its result could be cleared.
    frontier, hops = frontier.chosen([500]), frontier.upload(np.where(np.arange(n) == 500, 0, -1))
    for superstep in range(1, 7):
        frontier = gp.process_edges(walk, frontier, [hops, superstep], mode="pull")
        assert frontier.vertices().tolist() == [500 - superstep, 500 + superstep]


def test_frontiers_that_are_kept_need_memory_for_their_vertices_only() -> None:
    n = 30_000
    device: Any = get_device("emulated")
    frontier = gp.Frontier(gp.Graph.from_edgelist(np.arange(n - 1), np.arange(1, n)), [0], device="emulated")
    hops = frontier.upload(np.where(np.arange(n) == 0, 0, -1))
    kept = []
    for superstep in range(1, 31):
        frontier = gp.process_edges(walk, frontier, [hops, superstep], mode=MODES[superstep % 3 == 0])
        kept.append(frontier)
        if superstep == 10:
            before = device.memory.live_bytes
    # A bitmap, and a queue of the least capacity.
    assert device.memory.live_bytes - before <= 20 * (n // 8 + 4 * 1_024 + 1_000)
    assert [one.vertices().tolist() for one in kept] == [[superstep] for superstep in range(1, 31)]


def used(device: Any) -> Any:
    """Return the launches, readbacks and bytes allocated so far."""
    return np.array([device.launches, device.memory.readbacks, device.memory.live_bytes])


def walk(u: Any, v: Any, weight: Any, hops: Any, superstep: Any) -> Any:
    return atomics.compare_and_swap(hops, v, -1, superstep)


def test_frontiers_do_not_change_when_their_storage_is_used_again() -> None:
    graph = with_hubs(directed=False)
    frontier = gp.Frontier(graph, [0], device="emulated")
    kept = []
    for k in range(6):
        counts = [frontier.full(0, np.int32), frontier.full(0, np.int64)]
        frontier = gp.process_edges(take, frontier, counts, mode=MODES[k % 2])
        kept.append((frontier, frontier.vertices().tolist()))
        if k == 3:
            del kept[1]
    assert all(one.vertices().tolist() == vertices for one, vertices in kept)


@pytest.mark.parametrize("mode", MODES)
def test_an_interrupted_superstep_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch, mode: Any) -> None:
    graph = with_hubs(directed=True)
    n = graph.num_vertices
    hubs = gp.Frontier(graph, [0, 7], device="emulated")

    def following(*, transpose: bool) -> Any:
        hops = hubs.upload(np.full(n, -1))
        return gp.process_edges(walk, hubs, [hops, 1], mode=mode, transpose=transpose).vertices().tolist()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    for transpose in (False, True):
        with monkeypatch.context() as patch:
            patch.setattr(type(hubs.device), "download", interrupt)
            with pytest.raises(KeyboardInterrupt):
                following(transpose=transpose)
        calls, _ = count_by_hand(graph, hubs.flags(), transpose=transpose)
        assert following(transpose=transpose) == np.flatnonzero(calls).tolist()


def test_too_little_memory_is_an_error_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, device = with_hubs(directed=True), get_device("emulated")
    memory = device.memory  # type: ignore[attr-defined]
    frontier = gp.Frontier(graph, device="emulated")
    monkeypatch.setattr(memory, "capacity", memory.live_bytes + 4 * graph.num_stored_edges)
    with pytest.raises(NotEnoughMemoryError, match=r"a graph of 2,217 vertices and .* edges needs .* of memory"):
        gp.process_edges(take, frontier, [1, 2], mode="push")


def test_arrays_elsewhere_and_bodies_that_only_the_cpu_compiles_are_rejected() -> None:
    frontier = gp.Frontier(gp.grid(3), device="emulated")
    with pytest.raises(ArgumentTypeError, match=r"arrays\[0\] is in host memory, but the frontier is on .*upload"):
        gp.process_vertices(lambda v, a: a[v], frontier, [np.zeros(9)])
    with pytest.raises(ProgramError, match="cannot be compiled for device 'emulated'"):
        gp.process_vertices(lambda v: len([v, v]), frontier)

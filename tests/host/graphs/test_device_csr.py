"""Tests of building a CSR in device memory: it equals the CSR that the host builds, to the bit."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import GraphError
from gpu_pregel.host.devices import get_device
from gpu_pregel.host.devices.emulated import EmulatedDevice
from gpu_pregel.host.graphs import device_csr
from gpu_pregel.host.graphs.device_csr import DeviceBuilder, find_edge_list
from gpu_pregel.kernels.graphs import csr_cuda
from tests.devices import EMULATED, on

Array = np.ndarray[Any, Any]


@pytest.fixture
def emulated() -> EmulatedDevice:
    found = get_device("emulated")
    assert isinstance(found, EmulatedDevice)
    return found


def build(device: Any, src: Any, dst: Any, weight: Any = None, **options: Any) -> gp.Graph:
    """Build a graph from arrays that are uploaded first."""
    given = [None if one is None else device.upload(np.asarray(one)) for one in (src, dst, weight)]
    return gp.Graph.from_edgelist(*given, **options)


def assert_equal(one: gp.Graph, other: gp.Graph) -> None:
    for name in ("indptr", "indices", "weights", "ids"):
        found, expected = getattr(one, name), getattr(other, name)
        assert (found is None) == (expected is None), name
        if expected is not None:
            assert found.dtype == expected.dtype, name
            assert found.tolist() == expected.tolist(), name


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Record whether each graph is built on the device."""
    found: list[bool] = []
    real = device_csr.build_on_device

    def record(*arguments: Any, **options: Any) -> Any:
        result = real(*arguments, **options)
        found.append(result is not None)
        return result

    monkeypatch.setattr("gpu_pregel.host.graphs.graph.build_on_device", record)
    return found


@EMULATED
def test_a_known_answer(emulated: EmulatedDevice, built: list[bool]) -> None:
    src, dst, weight = [2, 0, 2, 2, 1, 0], [0, 1, 0, 2, 2, 1], [5, 7, -3, 1, 2, 6]
    graph = build(emulated, src, dst, np.array(weight, np.int32), directed=True, num_vertices=4)
    assert graph.indptr.tolist() == [0, 2, 3, 6, 6]
    assert graph.indices.tolist() == [1, 1, 2, 0, 0, 2]
    assert graph.weights is not None
    assert graph.weights.tolist() == [6, 7, 2, -3, 5, 1]
    graph = build(emulated, src, dst, combine="min", self_loops="drop")
    assert (graph.indptr.tolist(), graph.indices.tolist()) == ([0, 2, 4, 6], [1, 2, 0, 2, 0, 1])
    # The other direction of a self-loop is not stored; its key is beyond that of the last vertex.
    graph = build(emulated, [3, 3, 0], [3, 3, 1], np.array([2, 1, 5], np.int32), num_vertices=4)
    assert (graph.indptr.tolist(), graph.indices.tolist()) == ([0, 1, 2, 2, 4], [1, 0, 3, 3])
    assert graph.weights is not None
    assert graph.weights.tolist() == [5, 5, 1, 2]
    assert built == [True, True, True]


CASES: list[tuple[str, Any, dict[str, Any]]] = [
    ("i8", None, {}),
    ("i4", None, {"combine": "min"}),
    ("u4", "f4", {"directed": True}),
    ("i8", "i4", {"combine": "min", "self_loops": "drop"}),
    ("u8", "f8", {"combine": "min"}),
    ("i8", "u8", {"self_loops": "drop", "directed": True}),
]


@pytest.mark.parametrize(
    ("device", "ids", "weights", "options"),
    [*(on("emulated", *case) for case in CASES), *(on("cuda", *CASES[k]) for k in (0, 3))],
)
def test_it_equals_that_of_the_host(device: str, ids: str, weights: Any, options: Any, built: list[bool]) -> None:
    random = np.random.default_rng(7)
    # One vertex; a power of two, in several tiles; ids of several digits.
    for n, edges in ((1, 3), (256, 3000), (70_000, 2100)):
        src, dst = random.integers(0, n, (2, edges)).astype(ids)
        # The largest key is that of a stored edge, and there are parallel edges and self-loops.
        src[:2] = dst[:2] = n - 1
        dst[2:40] = dst[2]
        src[2:20] = dst[20:30] = src[2]
        given = None if weights is None else random.integers(-4 if weights[0] != "u" else 0, 5, edges).astype(weights)
        if given is not None and given.dtype.kind == "f":
            given[given == 0] = np.inf
        if given is not None:
            given[:2] = given.max()
        graph = build(get_device(device), src, dst, given, num_vertices=n, **options)
        assert_equal(graph, gp.Graph.from_edgelist(src, dst, given, num_vertices=n, **options))
    assert built == [True, False] * 3


@EMULATED
@pytest.mark.parametrize(
    ("src", "dst", "options", "there"),
    [
        ([0, 1, 2], [1, 2, 3], {}, True),
        ([0, 5, 2], [1, 2, 3], {}, True),
        ([0, 5, 2], [1, 2, 3], {"directed": True}, True),
        ([0, 5, 2], [1, 2, 5], {"self_loops": "drop"}, False),
        ([0, 1, 5], [1, 0, 5], {"self_loops": "drop"}, False),
        ([0, 5, 2], [1, 2, 3], {"renumber": False}, True),
        ([0, 1, 2], [1, 2, 10**9], {}, False),
        ([0, 1, 2], [1, 2, -3], {}, False),
        (np.array([0, 1], np.int32), np.array([1, 2], np.int64), {}, False),
        (np.array([0, 1], np.float32), np.array([1, 2], np.float32), {}, False),
        ([], [], {}, False),
    ],
)
def test_ids(emulated: EmulatedDevice, src: Any, dst: Any, options: Any, there: bool, built: list[bool]) -> None:
    graph = build(emulated, src, dst, **options)
    assert_equal(graph, gp.Graph.from_edgelist(np.asarray(src), np.asarray(dst), **options))
    assert built == [there, False]


@EMULATED
def test_invalid_edges_are_reported_as_those_of_the_host(emulated: EmulatedDevice) -> None:
    with pytest.raises(GraphError, match=r"dst\[1\] is 3, but num_vertices is 3"):
        build(emulated, [0, 1], [1, 3], num_vertices=3)
    with pytest.raises(GraphError, match=r"src\[1\] is -1, but num_vertices is 3"):
        build(emulated, [0, -1], [1, 2], num_vertices=3)
    for dtype in (np.float32, np.float64):
        with pytest.raises(GraphError, match="the weight of edge 1 is NaN"):
            build(emulated, [0, 1], [1, 2], np.array([1, np.nan], dtype))
    with pytest.raises(GraphError, match="weight has 1 entries, but there are 2 edges"):
        build(emulated, [0, 1], [1, 2], np.ones(1, np.float32))
    with pytest.raises(GraphError, match="src has 2 entries and dst 3"):
        build(emulated, [0, 1], [1, 2, 0])


@EMULATED
def test_only_the_finished_csr_crosses_the_bus(emulated: EmulatedDevice) -> None:
    src, dst = np.random.default_rng(1).integers(0, 500, (2, 4000))
    weight = np.arange(4000, dtype=np.float32)
    given = [emulated.upload(array) for array in (src, dst, weight)]
    memory = emulated.memory
    uploads, readback = memory.upload_bytes, memory.readback_bytes
    graph = gp.Graph.from_edgelist(*given)
    assert memory.upload_bytes == uploads
    facts = 4 * 8
    # The largest id; how many edges are dropped; whether weights are no numbers or unsorted.
    assert memory.readback_bytes - readback == graph.nbytes + 3 * facts
    assert gp.connected_components(graph, device="emulated").count == 1
    assert memory.upload_bytes - uploads == 4 * len(graph.indptr)
    there = graph._on(emulated)
    assert there.copy(graph.weights).get().tobytes() == graph.weights.tobytes()  # type: ignore[arg-type,union-attr]
    assert memory.upload_bytes - uploads == 4 * len(graph.indptr)


@EMULATED
def test_sums_of_many_tiles(emulated: EmulatedDevice) -> None:
    sums = np.random.default_rng(4).integers(0, 1 << 40, 600).astype(np.uint64)
    found = emulated.upload(sums)
    emulated.launch(csr_cuda.scan_sums, 1, found)
    assert found.get().tolist() == (np.cumsum(sums) - sums).tolist()


@EMULATED
def test_bytes_moved_per_key(emulated: EmulatedDevice) -> None:
    """A pass reads each key twice and writes it once; its parts that are not read by 32 bytes cost little."""
    device: Any = EmulatedDevice(memory=emulated.memory)
    keys = device.upload(np.random.default_rng(2).integers(0, 1 << 32, 4 * csr_cuda.TILE).astype(np.uint64))
    size, none = keys.size, device.empty(0, np.uint32)
    counts, moved = device.empty(size // 8, np.uint32), device.empty(size, np.uint64)
    device.counts = {}
    device.launch(csr_cuda.count_digits, size, keys, 8, counts)
    counted = device.download(counts).astype(np.uint64)
    positions = device.upload(np.cumsum(counted) - counted)
    device.launch(csr_cuda.move_keys, size, keys, none, 8, positions, True, moved, none)
    given = device.download(keys)
    assert device.download(moved).tolist() == given[np.argsort(given >> 8 & 255, kind="stable")].tolist()
    read, write = (
        {compiled.name: one.of_kind(kind, compiled.sites) for compiled, one in device.counts.items()}
        for kind in ("load", "store")
    )
    assert read["count_digits"][0] == size
    assert read["count_digits"][2] * 32 == 8 * size
    # The second read of a tile is served by the first-level cache.
    assert read["move_keys"][0] == 2 * size + 4 * csr_cuda.DIGITS
    assert write["move_keys"][0] == size
    assert write["move_keys"][2] * 32 <= 2.2 * 8 * size


@EMULATED
@pytest.mark.parametrize("weights", [None, "f4"])
@pytest.mark.parametrize("combine", [None, "min"])
def test_memory(emulated: EmulatedDevice, weights: Any, combine: Any, built: list[bool], young_heap: None) -> None:
    gc.collect()  # so that no arrays of other tests are freed meanwhile
    edges = 6_000
    src, dst = np.random.default_rng(3).integers(0, 300, (2, edges))
    descending = None if weights is None else np.arange(edges)[::-1].astype(weights)
    given = [None if one is None else emulated.upload(one) for one in (src, dst, descending)]
    found = find_edge_list(*given)
    assert found is not None
    memory = emulated.memory
    before = memory.peak_bytes = memory.live_bytes
    builder = DeviceBuilder(found, symmetric=True, drop_duplicates=combine is not None, drop_self_loops=False)
    needed = builder._memory(300)
    assert builder.build(300) is not None
    assert memory.peak_bytes - before <= needed <= 1.2 * (memory.peak_bytes - before)
    capacity, memory.capacity = memory.capacity, memory.live_bytes + needed - 1
    try:
        gp.Graph.from_edgelist(*given, combine=combine)
    finally:
        memory.capacity = capacity
    assert built == [False]


@EMULATED
def test_the_host_builds_the_graph_if_an_allocation_fails(
    emulated: EmulatedDevice, built: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    src, dst, weight = np.array([0, 1, 2, 2]), np.array([1, 2, 3, 3]), np.array([1, 2, 4, 3], np.float32)
    given = [emulated.upload(one) for one in (src, dst, weight)]
    expected = gp.Graph.from_edgelist(src, dst, weight, combine="min")
    assert_equal(gp.Graph.from_edgelist(*given, combine="min"), expected)
    assert built == [False, True]
    built.clear()
    gc.collect()  # what compiling, or another test, has left there
    before, allocate, allocated = emulated.memory.live_bytes, emulated.memory.empty, 0

    def fail(size: Any, dtype: Any) -> Any:
        nonlocal allocated
        allocated += 1
        if allocated == failing:
            raise MemoryError
        return allocate(size, dtype)

    monkeypatch.setattr(emulated.memory, "empty", fail)
    for failing in range(2, 40, 6):
        allocated = 0
        graph = gp.Graph.from_edgelist(*given, combine="min")
        assert (allocated, emulated.memory.live_bytes) == (failing, before)
        assert_equal(graph, expected)
    assert not any(built)


@EMULATED
def test_of_zeros_with_either_sign_the_first_is_kept(emulated: EmulatedDevice) -> None:
    edges = [0, 0, 1, 1], [1, 1, 0, 0], np.array([0.0, -0.0, -0.0, 0.0], np.float32)
    for combine in (None, "min"):
        graph = build(emulated, *edges, directed=True, combine=combine)
        expected = gp.Graph.from_edgelist(*edges, directed=True, combine=combine)
        assert graph.weights is not None
        assert expected.weights is not None
        assert graph.weights.tolist() == expected.weights.tolist() == [0.0] * (4 if combine is None else 2)
        assert np.signbit(graph.weights).tolist() == np.signbit(expected.weights).tolist()


@EMULATED
def test_arrays_in_another_byte_order(emulated: EmulatedDevice, built: list[bool]) -> None:
    # The bytes of 0x100 in the other order are those of 0x10000, which is a vertex too.
    ids = [0x100, 0]
    expected = gp.Graph.from_edgelist(ids, ids[::-1], num_vertices=0x10001)
    given = [emulated.upload(np.array(one, ">i4")) for one in (ids, ids[::-1])]
    assert_equal(gp.Graph.from_edgelist(*given, num_vertices=0x10001), expected)
    arrays = (([0, 1, 2], ">u4"), ([1, 0], ">u4"), ([2, 2], ">f4"))
    given = [emulated.upload(np.array(one, kind)) for one, kind in arrays]
    graph = gp.Graph.from_csr(*given)
    there = graph._on(emulated)
    assert graph.weights is not None
    assert there.copy(graph.indices).get().tolist() == [1, 0]
    assert there.copy(graph.weights).get().tolist() == [2, 2]
    assert there.offsets(graph.indptr).get().tolist() == [0, 1, 2]

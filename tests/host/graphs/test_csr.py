"""Tests of building and checking CSR, compared with SciPy and with simple sorting."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.errors import GraphError, NotEnoughMemoryError
from gpu_pregel.host.devices import memory
from gpu_pregel.host.devices.threads import parallel
from gpu_pregel.host.graphs import csr as host_csr
from gpu_pregel.host.graphs.csr import CSR, build_csr, check_csr, sources, transpose
from tests.graphs import arrays, edge_lists


@pytest.fixture(autouse=True, scope="module")
def threads_for_few_edges() -> Iterator[None]:
    """Let small graphs be built by several threads, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host_csr, "_EDGES_PER_THREAD", 1)
        yield


def expected_rows(
    n: int, edges: list[tuple[int, int]], weights: list[float] | None, symmetric: bool, drop: bool, drop_loops: bool
) -> list[list[tuple[float, ...]]]:
    """Return rows of (destination, weight), built one edge at a time."""
    rows: list[list[tuple[float, ...]]] = [[] for _ in range(n)]
    for e, (u, v) in enumerate(edges):
        tail = () if weights is None else (weights[e],)
        if u != v or not drop_loops:
            rows[u].append((v, *tail))
        if symmetric and u != v:
            rows[v].append((u, *tail))
    for row in rows:
        row.sort()
        if drop:
            row[:] = [edge for i, edge in enumerate(row) if i == 0 or edge[0] != row[i - 1][0]]
    return rows


def rows_of(csr: CSR) -> list[list[tuple[float, ...]]]:
    columns = [csr.indices] if csr.weights is None else [csr.indices, csr.weights]
    edges = list(zip(*(column.tolist() for column in columns), strict=True))
    return [edges[a:b] for a, b in zip(csr.indptr[:-1].tolist(), csr.indptr[1:].tolist(), strict=True)]


@given(
    graph=edge_lists(),
    seed=st.integers(0, 5),
    dtype=st.sampled_from([np.uint32, np.int64]),
    weight_dtype=st.sampled_from([None, np.float32, np.int64]),
    symmetric=st.booleans(),
    drop=st.booleans(),
    drop_loops=st.booleans(),
    threads=st.sampled_from([1, 3]),
)
def test_rows_equal_those_of_simple_sorting(
    graph: Any, seed: int, dtype: Any, weight_dtype: Any, symmetric: bool, drop: bool, drop_loops: bool, threads: int
) -> None:
    n, edges = graph
    weight = None
    if weight_dtype is not None:
        weight = np.random.default_rng(seed).integers(0, 4, len(edges)).astype(weight_dtype)
    csr = build_csr(
        *arrays(edges, dtype),
        weight,
        n,
        symmetric=symmetric,
        combine="min" if drop else None,
        drop_self_loops=drop_loops,
        threads=threads,
    )
    weights = None if weight is None else weight.tolist()
    assert rows_of(csr) == expected_rows(n, edges, weights, symmetric, drop, drop_loops)
    assert csr.indptr.dtype == np.int64
    assert csr.indices.dtype == np.uint32


@pytest.mark.parametrize("n", [7, 1 << 12, 100_003])
@pytest.mark.parametrize("drop", [False, True])
def test_many_buckets_give_the_rows_of_scipy(monkeypatch: pytest.MonkeyPatch, n: int, drop: bool) -> None:
    monkeypatch.setattr(host_csr, "_EDGES_PER_BUCKET", 64)
    random = np.random.default_rng(1)
    src, dst = (random.integers(0, n, 50_000, np.uint32) for _ in range(2))
    weight = random.integers(1, 100, len(src), np.int32)
    csr = build_csr(src, dst, weight, n, symmetric=False, combine="min" if drop else None, threads=3)
    if drop:
        order = np.lexsort((weight, dst, src))
        key = src[order].astype(np.int64) * n + dst[order]
        first = order[np.append(True, key[1:] != key[:-1])]
        src, dst, weight = src[first], dst[first], weight[first]
    expected = scipy.sparse.coo_array((weight, (src, dst)), shape=(n, n)).tocsr()
    actual = scipy.sparse.csr_array((csr.weights, csr.indices.astype(np.int64), csr.indptr), shape=(n, n))
    assert (actual != expected).nnz == 0
    assert len(csr.indices) == len(src)


def test_a_hub_and_the_largest_number_of_vertices() -> None:
    n = host_csr.MAX_VERTICES
    # The number of buckets is bounded for the largest n.
    assert ((n - 1) >> host_csr._bucket_shift(n, 1 << 34)) + 1 <= 1 << 16
    hub = np.full(70_000, 5, np.uint32)
    leaves = np.arange(70_000, dtype=np.uint32)[::-1]
    csr = build_csr(hub, leaves, None, 70_000, symmetric=True, threads=2)
    assert csr.indptr[6] - csr.indptr[5] == 70_000
    assert np.array_equal(csr.indices[csr.indptr[5] : csr.indptr[6]], np.arange(70_000))


@pytest.mark.parametrize("weighted", [False, True])
def test_the_result_does_not_depend_on_parts_and_threads(monkeypatch: pytest.MonkeyPatch, weighted: bool) -> None:
    random = np.random.default_rng(2)
    src, dst = (random.integers(0, 300, 5000, np.uint32) for _ in range(2))
    weight = random.integers(0, 5, len(src)).astype(np.float32) if weighted else None
    whole = build_csr(src, dst, weight, 300, symmetric=True, threads=1)
    monkeypatch.setattr(host_csr, "_EDGES_PER_PART", 77)
    ticks: list[float] = []
    for threads in (1, 3):
        parted = build_csr(
            *(src, dst, weight, 300),
            symmetric=True,
            threads=threads,
            tick=lambda done, size: ticks.append(done / size),
        )
        assert rows_of(parted) == rows_of(whole)
    assert ticks == sorted(ticks[: len(ticks) // 2]) * 2
    assert {0.25, 0.5} <= set(ticks)


def test_the_bucket_of_a_hub_is_included_in_the_memory_check(monkeypatch: pytest.MonkeyPatch) -> None:
    edges = 1 << 20
    leaves = np.arange(edges, dtype=np.uint32)
    hub = np.zeros(edges, np.uint32)
    monkeypatch.setattr(memory, "available_memory", lambda: host_csr.building_memory(edges, edges) + 1)
    build_csr(leaves[:1000], hub[:1000], None, edges, symmetric=False, threads=1)
    with pytest.raises(NotEnoughMemoryError, match=r"needs 30\.0 MiB of memory, but only 14\.0 MiB are available"):
        build_csr(hub, leaves, None, edges, symmetric=False, threads=1)


def test_one_thread_builds_a_small_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []

    def record(*arguments: Any, threads: int, **options: Any) -> None:
        counts.append((arguments[1], threads))
        parallel(*arguments, threads=threads, **options)

    monkeypatch.setattr(host_csr, "parallel", record)
    monkeypatch.setattr(host_csr, "_EDGES_PER_THREAD", 100)
    ends = np.arange(100, dtype=np.uint32)
    build_csr(ends, ends[::-1].copy(), None, 100, symmetric=False, threads=3)
    # One part and one bucket: no thread is woken.
    assert counts == [(1, 1)] * 3
    counts.clear()
    build_csr(ends, ends[::-1].copy(), None, 100, symmetric=True, threads=3)
    assert counts == [(2, 2), (2, 2), (1, 2)]


@given(edge_lists())
def test_transposing_twice_restores_the_graph(graph: Any) -> None:
    n, edges = graph
    weight = np.arange(len(edges), dtype=np.float64) % 3
    csr = build_csr(*arrays(edges), weight, n, symmetric=False, threads=2)
    back = transpose(csr, threads=2)
    assert rows_of(transpose(back, threads=2)) == rows_of(csr)
    pairs = sorted(zip(sources(csr, threads=1).tolist(), csr.indices.tolist(), strict=True))
    assert (
        sorted((v, u) for u, v in zip(sources(back, threads=1).tolist(), back.indices.tolist(), strict=True)) == pairs
    )


def as_csr(indptr: list[int], indices: list[int], weights: list[float] | None = None) -> CSR:
    return CSR(
        np.array(indptr, np.int64),
        np.array(indices, np.uint32),
        None if weights is None else np.array(weights, np.float32),
    )


@pytest.mark.parametrize(
    ("csr", "message"),
    [
        (as_csr([], []), "indptr is empty"),
        (as_csr([1, 2], [0, 0]), "must begin with 0"),
        (as_csr([0, 1], [0, 0]), "end with the number of stored edges, 2"),
        (as_csr([0, 2, 1, 2], [0, 1]), "decreases or leaves the edges at vertex 1"),
        (as_csr([0, 9, 1], [0]), "decreases or leaves the edges at vertex 0"),
        (as_csr([0, -1, 1], [0]), "decreases or leaves the edges at vertex 0"),
        (as_csr([0, 1, 2], [1, 2]), "vertex 1 has an edge to 2, but there are only 2 vertices"),
        (as_csr([0, 1, 2], [1, 0], [1]), "weights has 1 entries and indices 2"),
        (as_csr([0, 1, 2], [1, 0], [1, np.nan]), "weight of stored edge 1 is NaN"),
        (as_csr([0, 1, 1], [1]), "vertex 0 has 1 out-edges and 0 in-edges"),
        (as_csr([0, 1, 2, 3], [1, 2, 0]), "not symmetric at vertex 0, neighbour 1"),
        (as_csr([0, 1, 2], [1, 0], [1, 2]), "not symmetric at vertex 0, neighbour 1"),
        (as_csr([0, 2, 3], [1, 1, 0]), "vertex 0 has 2 out-edges and 1 in-edges"),
    ],
)
def test_an_invalid_csr_is_rejected(csr: CSR, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        check_csr(csr, symmetric=True, threads=2)


def test_check_returns_whether_rows_are_sorted() -> None:
    assert check_csr(as_csr([0, 2, 2, 2], [1, 2]), symmetric=False, threads=1)
    assert not check_csr(as_csr([0, 2, 2, 2], [2, 1]), symmetric=False, threads=1)
    assert not check_csr(as_csr([0, 2, 2], [1, 1], [2, 1]), symmetric=False, threads=1)
    assert check_csr(as_csr([0, 1, 2], [1, 0], [5, 5]), symmetric=True, threads=1)


def test_positive_and_negative_zero_are_equal_weights() -> None:
    assert check_csr(as_csr([0, 1, 2], [1, 0], [0.0, -0.0]), symmetric=True, threads=1)


@given(edge_lists(), st.integers(0, 1000))
def test_removing_one_edge_breaks_symmetry(graph: Any, choice: int) -> None:
    n, edges = graph
    csr = build_csr(*arrays(edges), None, n, symmetric=True, threads=1)
    assert check_csr(csr, symmetric=True, threads=1)
    proper = np.flatnonzero(sources(csr, threads=1) != csr.indices)
    if len(proper) == 0:
        return
    e = int(proper[choice % len(proper)])
    u = int(np.searchsorted(csr.indptr, e, side="right")) - 1
    indptr = csr.indptr.copy()
    indptr[u + 1 :] -= 1
    broken = CSR(indptr, np.delete(csr.indices, e), None)
    with pytest.raises(GraphError, match="not symmetric"):
        check_csr(broken, symmetric=True, threads=1)


def test_insufficient_memory_is_reported_before_building(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 3 << 20)
    src = np.zeros(1 << 20, np.uint32)
    with pytest.raises(NotEnoughMemoryError, match=r"needs 12\.0 MiB of memory, but only 3\.0 MiB are available"):
        build_csr(src, src, None, 4, symmetric=True, threads=1)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 64, 1_001])
def test_weights_of_parallel_edges_ascend(count: int) -> None:
    weights = np.random.default_rng(count).integers(-50, 50, count)
    graph = gp.Graph.from_edgelist([0] * count + [1], [2] * count + [0], [*weights, 7], directed=True)
    assert graph.weights is not None
    assert graph.weights.tolist() == [*sorted(weights.tolist()), 7]

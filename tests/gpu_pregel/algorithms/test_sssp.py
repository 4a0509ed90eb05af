"""Tests of shortest paths: known answers, SciPy, NetworkX, types of weights, plateaus, LDBC's graphs, bad arguments."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import dijkstra

import gpu_pregel as gp
from gpu_pregel.algorithms.checkers.sssp import check_sssp
from gpu_pregel.algorithms.sssp import _DeltaStepping
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, GraphError, VerificationError
from tests.devices import on
from tests.graphs import arrays, edge_lists

MODULE = "gpu_pregel.algorithms.sssp"
FAR = 2**63 - 1
INF = np.inf


@pytest.mark.parametrize("device", ["cpu", "python"])
@pytest.mark.parametrize(
    ("edges", "weights", "directed", "source", "distances", "predecessors"),
    [
        ([], [], False, 0, [0, INF, INF], [0, -1, -1]),
        ([(0, 0)], [2.0], False, 0, [0, INF, INF], [0, -1, -1]),
        ([(0, 1), (1, 2), (0, 2)], [1.0, 1.0, 3.0], False, 0, [0, 1, 2], [0, 0, 1]),
        ([(0, 1), (1, 2), (0, 2)], [1.0, 1.0, 2.0], False, 0, [0, 1, 2], [0, 0, 0]),
        ([(0, 1), (0, 1), (1, 2)], [5.0, 3.0, 1.0], True, 0, [0, 3, 4], [0, 0, 1]),
        ([(0, 1), (1, 2)], [1.0, 1.0], True, 2, [INF, INF, 0], [-1, -1, 2]),
        ([(0, 1), (1, 2), (2, 3)], [1.0, INF, 1.0], True, 0, [0, 1, INF, INF], [0, 0, -1, -1]),
        ([(0, 1), (1, 2), (2, 3)], [1.0, 5.0, 1.0], False, [3, 0], [0, 1, 1, 0], [0, 0, 3, 3]),
        # A cycle of weight 0 is reached by vertex 3 only.
        ([(0, 3), (3, 1), (1, 2), (2, 3)], [1.0, 0.0, 0.0, 0.0], False, 0, [0, 1, 1, 1], [0, 3, 3, 0]),
        ([(2, 1), (1, 0)], [0.0, 0.0], False, 2, [0, 0, 0], [1, 2, 2]),
    ],
)
def test_known_answers(
    edges: list[tuple[int, int]],
    weights: list[float],
    directed: bool,
    source: Any,
    distances: list[float],
    predecessors: list[int],
    device: str,
) -> None:
    graph = gp.Graph.from_edgelist(*arrays(edges), weights, num_vertices=len(distances), directed=directed)
    found = gp.sssp(graph, source, device=device)
    assert (found.distances.tolist(), found.predecessors.tolist()) == (distances, predecessors)
    check_sssp(graph, found)


@given(edge_lists(), st.sampled_from(["i4", "f8"]), st.booleans(), st.data())
@settings(max_examples=40)
def test_distances_are_those_of_networkx(
    drawn: tuple[int, list[tuple[int, int]]], dtype: str, directed: bool, data: Any
) -> None:
    n, edges = drawn
    weights = np.array([data.draw(st.integers(0, 9)) for _ in edges], dtype)
    delta = data.draw(st.sampled_from([None, 0.3, 2, 1000]))
    graph = gp.Graph.from_edgelist(*arrays(edges), weights, num_vertices=n, directed=directed)
    source = data.draw(st.integers(0, n - 1))
    found = gp.sssp(graph, source, delta=delta, device="cpu")
    expected = networkx.single_source_dijkstra_path_length(graph.to_networkx(), source)
    unreached = INF if dtype == "f8" else FAR
    missing = unreached if found.to_numpy().dtype.kind == "f" else None
    assert found.to_dict() == {v: expected.get(v, missing) for v in range(n)}
    check_sssp(graph, found)
    for target in range(n):
        if target in expected:
            path = found.path(target)
            assert (path[0], path[-1]) == (source, target)
            assert len(set(path)) == len(path)


def test_far_vertices_with_integer_weights_on_the_emulated_device() -> None:
    # A path with a long edge, and a shorter way from 0 to 3: every superstep pushes, as few kernels are compiled then.
    weights = np.ones(61, np.int32)
    weights[10], weights[60] = 50, 2
    graph = gp.Graph.from_edgelist(np.r_[:60, 0], np.r_[1:61, 3], weights, num_vertices=62, directed=True)
    found = gp.sssp(graph, 0, delta=40, device="emulated")
    expected = [0, 1, 2, *range(2, 10), *range(59, 109), FAR]
    assert found.to_numpy().tolist() == expected
    assert found.to_numpy().dtype == np.int64
    assert [row["phase"] for row in found.trace].count("find least") == 2


def weighted(graph: gp.Graph, draw: Any) -> gp.Graph:
    """The graph with weights ``draw(count)``, the same for both directions of an edge."""
    src = np.repeat(np.arange(graph.num_vertices), graph.out_degrees)
    once = src <= graph.indices
    return gp.Graph.from_edgelist(
        src[once], graph.indices[once], draw(once.sum()), num_vertices=graph.num_vertices, directed=False
    )


@pytest.mark.parametrize("dtype", ["i4", "f4"])
@pytest.mark.parametrize("shape", ["grid", "kronecker"])
def test_bins_of_several_threads(dtype: str, shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{MODULE}._SERIAL_EDGES", 0)
    monkeypatch.setattr(f"{MODULE}._SLOT_EDGES", 1 << 8)
    rng = np.random.default_rng(7)

    def draw(count: int) -> Any:
        weights: Any = rng.integers(1, 256, count) if dtype == "i4" else rng.random(count) * 255
        return weights.astype(dtype)

    graph = weighted(gp.grid(40, seed=2) if shape == "grid" else gp.kronecker(9), draw)
    source = int(graph.out_degrees.argmax())
    first = gp.sssp(graph, source, threads=1, device="cpu")
    expected = dijkstra(graph.to_scipy(), indices=source)
    found = np.where(first.reached, first.distances, INF)
    np.testing.assert_allclose(found, expected, 1e-5 if dtype == "f4" else 0)
    check_sssp(graph, first)
    # With a small delta, distances are beyond the last bin.
    for threads, delta in ((2, None), (5, None), (2, 0.01), (5, 1e4), (3, 1e-300)):
        again = gp.sssp(graph, source, threads=threads, delta=delta, device="cpu")
        assert np.array_equal(again.distances, first.distances)
        assert np.array_equal(again.predecessors, first.predecessors)
        assert any(row["phase"] == "move bins" for row in again.trace) == (delta in (0.01, 1e-300))


@pytest.mark.parametrize(
    ("device", "dtype"), [on("python", "i4"), on("python", "f8"), on("cuda", "i4"), on("cuda", "f8")]
)
def test_near_and_far_vertices_of_other_devices(device: str, dtype: str) -> None:
    rng = np.random.default_rng(5)
    graph = weighted(gp.grid(4, holes=0), lambda count: rng.integers(0, 99, count).astype(dtype))
    expected = gp.sssp(graph, [0, 13], device="cpu")
    found = gp.sssp(graph, [0, 13], delta=30, device=device)
    assert found.to_numpy().dtype == expected.distances.dtype
    assert np.array_equal(found.to_numpy(), expected.distances)
    assert len(found.trace) > 10


@pytest.mark.parametrize("delta", [1e30, 2.0**63 - 1024])
def test_a_delta_beyond_64_bits(delta: float) -> None:
    graph = gp.Graph.from_edgelist([0, 1, 2], [1, 2, 3], np.array([7, 1, 5]), num_vertices=6)
    assert gp.sssp(graph, 0, delta=delta, device="python").distances.tolist() == [0, 7, 8, 13, FAR, FAR]


def test_without_delta_other_devices_have_one_bin() -> None:
    graph = gp.Graph.from_edgelist([0, 1, 2], [1, 2, 3], np.array([0.5, 1, 2]), num_vertices=5)
    found = gp.sssp(graph, [0, 3], device="python")
    assert found.distances.tolist() == [0, 0.5, 1.5, 0, INF]
    assert found.delta == INF
    assert {row["phase"] for row in found.trace} == {"shorten paths"}


def test_unsigned_weights_of_other_devices() -> None:
    graph = gp.Graph.from_edgelist([0, 1, 2], [1, 2, 3], np.array([7, 2**32 - 1, 5], "u8"), num_vertices=5)
    expected = [0, 7, 2**32 + 6, 2**32 + 11, FAR]
    assert gp.sssp(graph, 0, device="python").distances.tolist() == expected


@pytest.mark.parametrize("threads", [1, 3])
def test_a_full_pool_is_filled_again(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{MODULE}._SERIAL_EDGES", 0)
    monkeypatch.setattr(f"{MODULE}._SLOT_EDGES", 1 << 6)
    rng = np.random.default_rng(3)
    graph = weighted(gp.grid(30, holes=0), lambda count: rng.integers(1, 99, count, np.int32))
    relax, times = _DeltaStepping._relax, []

    def lose_entries(search: _DeltaStepping, *arguments: Any) -> None:
        relax(search, *arguments)
        times.append(1)
        if len(times) in (1, 4, 5):
            search._bins[: search._kernels.BINS + 1] = 0
            search._common[search._kernels.FULL] = 1

    expected = gp.sssp(graph, 0, device="cpu")
    monkeypatch.setattr(_DeltaStepping, "_relax", lose_entries)
    assert np.array_equal(gp.sssp(graph, 0, threads=threads, device="cpu").distances, expected.distances)
    assert len(times) > 5


@pytest.mark.parametrize("dtype", ["i4", "u8"])
def test_integer_weights_are_added_exactly(dtype: str) -> None:
    large = {"i4": 2**31 - 1, "u8": 2**60 - 1}[dtype]
    weights = np.array([large, 1, large], dtype)
    graph = gp.Graph.from_edgelist([0, 1, 2], [1, 2, 3], weights, num_vertices=5, directed=True)
    found = gp.sssp(graph, 0, device="cpu")
    assert found.distances.dtype == np.int64
    assert found.distances.tolist() == [0, large, large + 1, 2 * large + 1, FAR]
    assert found.reached.tolist() == [True] * 4 + [False]
    assert found.predecessors.tolist() == [0, 0, 1, 2, -1]


@pytest.mark.parametrize("device", ["cpu", "python"])
@pytest.mark.parametrize("delta", [None, 5.0, INF])
def test_sums_that_lead_back_are_not_beyond_64_bits(device: str, delta: float | None) -> None:
    """The largest sum leads from the farthest vertex back to another one, or to itself."""
    third = (2**63 - 2) // 3
    for src, dst, weights, n in (
        ([0], [1], np.array([2**62]), 2),
        ([0, 1, 2], [1, 2, 0], np.array([third + 1] * 3), 3),
        ([0, 1], [1, 1], np.array([2**62] * 2), 2),
        ([0], [0], np.array([2**63 + 5], np.uint64), 1),
    ):
        graph = gp.Graph.from_edgelist(src, dst, weights, num_vertices=n, directed=n != 2)
        with pytest.raises(GraphError, match="may exceed it: build the graph with float64 weights"):
            gp.sssp(graph, 0, delta=delta, device=device)
    weights = np.array([third] * 3)
    graph = gp.Graph.from_edgelist([0, 1, 2], [1, 2, 0], weights, directed=True)
    assert gp.sssp(graph, 0, delta=delta and 1e18, device=device).distances.tolist() == [0, third, 2 * third]


def test_the_delta_of_a_result_can_be_given_again() -> None:
    graph = gp.Graph.from_edgelist([0, 1, 2], [1, 2, 3], [0.5, 1, 2])
    for device in ("cpu", "python"):
        first = gp.sssp(graph, 0, device=device)
        again = gp.sssp(graph, 0, delta=first.delta, device=device)
        assert (again.delta, again.distances.tolist()) == (first.delta, [0, 0.5, 1.5, 3.5])
    assert gp.sssp(graph, 0, delta=INF, device="cpu").distances.tolist() == [0, 0.5, 1.5, 3.5]


@pytest.mark.parametrize("delta", [None, 5e-324, 1e-290, 1e300])
def test_extreme_weights_and_deltas(delta: float | None) -> None:
    for weights, expected in (
        ([1e308, 1e308], [0, 1e308, INF]),
        ([1e308, 1.0], [0, 1e308, 1e308]),
        ([1e-308, 5e-324], [0, 1e-308, 1e-308 + 5e-324]),
        ([0.0, 0.0], [0, 0, 0]),
    ):
        graph = gp.Graph.from_edgelist([0, 1], [1, 2], weights)
        assert gp.sssp(graph, 0, delta=delta, device="cpu").distances.tolist() == expected


@pytest.mark.parametrize("delta", [None, 1e38, 1e300])
def test_sums_and_deltas_beyond_the_type_of_distances(delta: float | None) -> None:
    graph = gp.Graph.from_edgelist([0, 1, 2], [1, 2, 3], np.array([3e38, 3e37, 3e38], np.float32))
    expected = gp.sssp(graph, 0, device="cpu").distances
    assert gp.sssp(graph, 0, delta=delta, device="python").distances.tolist() == expected.tolist()


def test_a_graph_without_weights_counts_edges() -> None:
    graph = gp.grid(12, seed=5)
    found, hops = gp.sssp(graph, 3, device="cpu"), gp.bfs(graph, 3, device="cpu")
    assert found.distances.tolist() == [FAR if h < 0 else h for h in hops.hops.tolist()]
    assert found.predecessors.tolist() == hops.parents.tolist()
    check_sssp(graph, found)


def test_plateaus_of_zeros_have_trees() -> None:
    rng = np.random.default_rng(1)
    n = 300
    weights = rng.choice([0.0, 0.0, 1e-30, 1.0], 900)
    graph = gp.Graph.from_edgelist(
        rng.integers(0, n, 900), rng.integers(0, n, 900), weights, num_vertices=n, directed=True
    )
    found = gp.sssp(graph, 0, device="cpu")
    check_sssp(graph, found)
    assert sum(len(found.path(v)) for v in np.flatnonzero(found.reached).tolist()) > n


def test_ids_paths_and_tables() -> None:
    graph = gp.Graph.from_edgelist(["a", "a", "b", "x"], ["b", "c", "c", "y"], [1.5, 4.0, 2.0, 1.0])
    found = gp.sssp(graph, "a", delta=2, device="cpu")
    assert (found.sources.tolist(), found.delta) == ([0], 2)
    assert found.path("c") == ["a", "b", "c"]
    assert found["c"] == 3.5
    columns = {"vertex": ["a", "b", "c", "x", "y"], "distance": [0, 1.5, 3.5, INF, INF]}
    table = found.to_pandas().to_dict("list")
    assert {name: table[name] for name in columns} == columns
    assert found._columns()["predecessor"].tolist() == ["a", "a", "b", None, None]
    assert found.summary() == {"reached": 3, "largest": 3.5}
    assert repr(found) == "<Distances: 3 of 5 vertices reached, at distances up to 3.5>"
    with pytest.raises(ArgumentError, match="there is no path to 'x'"):
        found.path("x")


def test_bad_arguments() -> None:
    graph = gp.Graph.from_edgelist(["a", "b"], ["b", "c"], [1.0, -2.0])
    with pytest.raises(GraphError, match=r"the edge from 'b' to 'c' has -2\.0"):
        gp.sssp(graph, "a")
    graph = gp.Graph.from_edgelist([0, 1], [1, 2], [1.0, 2.0])
    with pytest.raises(ArgumentError, match=r"source: .*\b7\b"):
        gp.sssp(graph, 7)
    for delta in (0, -1, np.nan, -INF):
        with pytest.raises(ArgumentError, match="delta must be above 0"):
            gp.sssp(graph, 0, delta=delta)
    with pytest.raises(ArgumentTypeError, match="delta must be a number"):
        gp.sssp(graph, 0, delta="x")  # type: ignore[arg-type]
    large = gp.Graph.from_edgelist([0, 1], [1, 2], np.array([2**63 - 1, 1]))
    with pytest.raises(GraphError, match=r"up to 9,223,372,036,854,775,807, may exceed it: build the graph with"):
        gp.sssp(large, 0)


@pytest.mark.parametrize("direction", ["dir", "undir"])
def test_ldbc_graphalytics_expected_distances(data: Path, direction: str) -> None:
    folder = data / "graphalytics" / "sssp"
    rows = [line.split() for line in (folder / f"{direction}-input.e").read_text().splitlines()]
    graph = gp.Graph.from_edgelist(
        [int(row[0]) for row in rows],
        [int(row[1]) for row in rows],
        [float(row[2]) for row in rows],
        vertices=[int(v) for v in (folder / f"{direction}-input.v").read_text().split()],
        directed=direction == "dir",
    )
    pairs = (line.split() for line in (folder / f"{direction}-output").read_text().splitlines())
    expected = {int(v): float(distance.replace("infinity", "inf")) for v, distance in pairs}
    found = gp.sssp(graph, 1, device="cpu").to_dict()
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("field", "values", "message"),
    [
        ("distances", [0.0, 1.0, 2.0, 9.0], "the edge 2 to 3 shortens the distance 9.0 to 3.0"),
        ("distances", [0.0, 1.0, 2.0, 2.5], "no edge from there gives its distance"),
        ("distances", [0.0, 1.0, 2.0, np.nan], "is not a sum of weights"),
        ("distances", [0.5, 1.0, 2.0, 3.0], "source 0 has distance 0.5"),
        ("distances", [0.0, 1.0, 2.0], "distances have shape"),
    ],
)
def test_the_checker_refuses(field: str, values: list[float], message: str) -> None:
    graph = gp.Graph.from_edgelist([0, 1, 2], [1, 2, 3], [1.0, 1.0, 1.0])
    damage: dict[str, Any] = {field: np.array(values)}
    with pytest.raises(VerificationError, match=message):
        check_sssp(graph, replace(gp.sssp(graph, 0, device="cpu"), **damage))


@pytest.mark.parametrize(
    ("predecessors", "message"),
    [
        ([0, 0, 1, 1, 3], "vertex 3 has predecessor 1, and no edge from there"),
        ([0, 0, 1, 4, 3], "begins in no source"),
        ([1, 0, 1, 2, 3], "source 0 has predecessor 1, not itself"),
        ([0, 0, 1, 2, -1], "vertex 4 has predecessor -1, and no edge from there"),
        ([0, 0, 3, 2, 3], "vertex 2 has predecessor 3, not the smallest one"),
    ],
)
def test_the_checker_refuses_predecessors(predecessors: list[int], message: str) -> None:
    graph = gp.Graph.from_edgelist([0, 1, 2, 3], [1, 2, 3, 4], [1.0, 1.0, 0.0, 0.0])
    found = gp.sssp(graph, 0, device="cpu")
    found.__dict__["predecessors"] = np.array(predecessors)
    with pytest.raises(VerificationError, match=message):
        check_sssp(graph, found)


def test_the_checker_accepts_sums_that_overflow() -> None:
    graph = gp.Graph.from_edgelist([0, 1], [1, 2], np.array([3e38, 3e38], np.float32))
    found = gp.sssp(graph, 0, device="cpu")
    assert found.distances.tolist() == np.array([0, 3e38, np.inf], np.float32).tolist()
    check_sssp(graph, found)


@pytest.mark.parametrize("weights", [None, [3, 4], [3.0, 4.0]])
def test_unreachable_vertices_have_no_integer_distance(weights: Any, tmp_path: Path) -> None:
    graph = gp.Graph.from_edgelist(["ann", "cid"], ["bob", "dan"], weights)
    found, length = gp.sssp(graph, "ann", device="cpu"), 1 if weights is None else 3
    nothing = np.inf if isinstance(weights, list) and isinstance(weights[0], float) else None
    assert found.to_dict() == {"ann": 0, "bob": length, "cid": nothing, "dan": nothing}
    assert (found["cid"], found["bob"]) == (nothing, length)
    assert found.to_arrow()["distance"].to_pylist() == [0, length, nothing, nothing]
    frame = found.to_pandas()
    found.save(tmp_path / "distances.csv")
    found.save(tmp_path / "distances.parquet")
    read = pyarrow.parquet.read_table(tmp_path / "distances.parquet")
    assert read["distance"].to_pylist() == [0, length, nothing, nothing]
    if nothing is None:
        assert (str(frame["distance"].dtype), frame["distance"].isna().tolist()) == (
            "Int64",
            [False, False, True, True],
        )
        assert '"cid",,' in (tmp_path / "distances.csv").read_text()
        assert found.to_numpy().tolist() == [0, length, FAR, FAR]

"""Triangle counts: known answers, NetworkX on random graphs, both plans of the CPU, public graphs.

``tests/kernels/algorithms/test_triangles_cuda.py`` tests the kernels of CUDA.
"""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.algorithms import _triangles
from gpu_pregel.algorithms.checkers.triangle_count import check_triangle_count
from gpu_pregel.errors import GraphError, VerificationError
from tests.devices import EMULATED_DEVICES, on
from tests.graphs import arrays, edge_lists

OTHERS = [on("python"), on("emulated"), on("cuda")]
DEVICES = pytest.mark.parametrize("device", ["cpu", *OTHERS])
CLIQUE = list(combinations(range(5), 2))
KNOWN: list[tuple[str, int, list[tuple[int, int]], list[int]]] = [
    ("empty", 0, [], []),
    ("isolated vertices", 2, [], [0, 0]),
    ("triangle", 3, [(0, 1), (1, 2), (2, 0)], [1, 1, 1]),
    ("triangle with repeated edges and self-loops", 3, [(0, 1), (1, 0), (1, 2), (2, 0), (0, 0), (2, 2)], [1, 1, 1]),
    ("self-loop", 1, [(0, 0)], [0]),
    ("square", 4, [(0, 1), (1, 2), (2, 3), (3, 0)], [0, 0, 0, 0]),
    ("self-loop and repeated edge", 2, [(0, 0), (0, 1), (0, 1)], [0, 0]),
    ("bow tie", 5, [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 2)], [1, 1, 2, 1, 1]),
    ("clique of five", 5, CLIQUE, [6] * 5),
    ("clique with repeated edges and self-loops", 5, [*CLIQUE, (3, 3), *CLIQUE, (0, 0), *CLIQUE[:4]], [6] * 5),
    ("clique and an isolated vertex", 6, CLIQUE, [*[6] * 5, 0]),
]


def plans(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make the CPU use packed rows, then plain ones."""
    for skewed in (True, False):
        monkeypatch.setattr(_triangles, "_is_skewed", lambda graph, skewed=skewed: skewed)
        yield skewed


def built(n: int, edges: list[tuple[int, int]]) -> gp.Graph:
    return gp.Graph.from_edgelist(*arrays(edges), num_vertices=n)


@DEVICES
def test_known_answers(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in plans(monkeypatch):
        for name, n, edges, expected in KNOWN:
            found = gp.triangle_count(built(n, edges), device=device)
            assert found.to_numpy().tolist() == expected, name
            assert (found.total, found.counts.dtype) == (sum(expected) // 3, np.int64), name


def oracle(n: int, edges: list[tuple[int, int]]) -> list[int]:
    graph = networkx.empty_graph(n)
    graph.add_edges_from((u, v) for u, v in edges if u != v)
    return [networkx.triangles(graph)[v] for v in range(n)]


def test_agrees_with_networkx(monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in plans(monkeypatch):

        @settings(max_examples=40)
        @given(edge_lists(max_vertices=30, max_edges=200), st.sampled_from([1, 3]))
        def check(graph: Any, threads: int) -> None:
            found = gp.triangle_count(built(*graph), device="cpu", threads=threads)
            assert found.to_numpy().tolist() == oracle(*graph)
            check_triangle_count(found.graph, found)

        check()


@pytest.mark.parametrize("device", OTHERS)
def test_other_devices_agree_with_networkx(device: str) -> None:
    @settings(max_examples=15)
    @given(edge_lists(max_vertices=12, max_edges=40))
    def check(graph: Any) -> None:
        assert gp.triangle_count(built(*graph), device=device).to_numpy().tolist() == oracle(*graph)

    check()


def test_plans_and_threads_agree_on_large_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    # More ranks than one chunk, words that hold many neighbours, and ranks that share a counter.
    monkeypatch.setattr("gpu_pregel.kernels.algorithms.packed_rows_cpu.HUBS", 1 << 10)
    for graph in (gp.kronecker(12, 16), gp.uniform(11, 32), gp.grid(70)):
        counts = [
            gp.triangle_count(graph, device="cpu", threads=threads).to_numpy()
            for _ in plans(monkeypatch)
            for threads in (1, 2, 5)
        ]
        assert all(np.array_equal(counts[0], other) for other in counts[1:])
        check_triangle_count(graph, counts[0])


@EMULATED_DEVICES
def test_the_kernels_of_cuda_agree_with_the_cpu_on_large_graphs(device: str) -> None:
    for graph in (gp.kronecker(11), gp.uniform(9, 32), gp.grid(40)):
        found = gp.triangle_count(graph, device=device)
        np.testing.assert_array_equal(found.to_numpy(), gp.triangle_count(graph, device="cpu").counts)
        assert [row["phase"] for row in found.trace] == ["direct edges", "count"]


def test_the_plan_follows_the_degrees() -> None:
    assert _triangles._is_skewed(gp.kronecker(10))
    assert _triangles._is_skewed(gp.uniform(8, 16))
    assert not _triangles._is_skewed(gp.uniform(12, 8))
    assert not _triangles._is_skewed(gp.grid(40))


def test_ids_conversions_and_summary() -> None:
    triangles = gp.triangle_count(gp.Graph.from_edgelist(["a", "b", "c", "d"], ["b", "c", "a", "a"]), device="cpu")
    assert triangles.to_dict() == {"a": 1, "b": 1, "c": 1, "d": 0}
    assert triangles["c"] == 1
    assert triangles.summary() == {"triangles": 1, "largest": 1}
    assert triangles.describe() == "1 triangles, at most 1 at one vertex"
    assert repr(triangles) == "<TriangleCounts: 1 triangles, 4 vertices>"
    assert triangles.stats["device"] == "cpu"
    assert {"count"} <= {row["phase"] for row in triangles.trace}


def test_a_directed_graph_is_rejected() -> None:
    with pytest.raises(GraphError, match=r"triangle_count needs an undirected graph.*graph\.to_undirected\(\)"):
        gp.triangle_count(gp.Graph.from_edgelist([0], [1], directed=True))


@pytest.mark.parametrize(("counts", "message"), [([1, 1], "shape"), ([1, 2, 1], "vertex 1 has triangles 2, not 1")])
def test_the_checker_rejects_wrong_counts(counts: list[int], message: str) -> None:
    with pytest.raises(VerificationError, match=message):
        check_triangle_count(gp.Graph.from_edgelist([0, 0, 1], [1, 2, 2]), counts)


@pytest.mark.parametrize(("file", "total"), [("snap/wiki-Vote.txt", 608_389), ("mtx/karate.mtx", 45)])
def test_public_graphs(data: Path, file: str, total: int) -> None:
    graph = gp.read_graph(data / file, directed=False)
    assert gp.triangle_count(graph, device="cpu").total == total

"""Tests of closeness and harmonic centrality: known answers, NetworkX, SciPy, sources, samples and bad arguments."""

from __future__ import annotations

from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import shortest_path

import gpu_pregel as gp
from gpu_pregel.algorithms.checkers.closeness_centrality import check_closeness_centrality, check_harmonic_centrality
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, NotEnoughMemoryError, VerificationError
from tests.devices import on
from tests.graphs import arrays, edge_lists

OTHERS = pytest.mark.parametrize("device", [on("python"), on("emulated")])


@pytest.mark.parametrize(
    ("edges", "n", "directed", "closeness", "harmonic"),
    [
        ([], 0, False, [], []),
        ([], 2, False, [0, 0], [0, 0]),
        ([(0, 0)], 1, False, [0], [0]),
        ([(0, 1), (1, 2)], 3, False, [2 / 3, 1, 2 / 3], [1.5, 2, 1.5]),
        ([(0, 1), (1, 2)], 3, True, [0, 1 / 2, 2 / 3], [0, 1, 1.5]),
        ([(0, 1), (0, 1), (1, 0), (1, 1)], 2, True, [1, 1], [1, 1]),
        ([(0, 1), (2, 3), (3, 4)], 5, False, [1 / 4, 1 / 4, 1 / 3, 1 / 2, 1 / 3], [1, 1, 1.5, 2, 1.5]),
        ([(0, v) for v in range(1, 5)], 5, False, [1] + [4 / 7] * 4, [4] + [2.5] * 4),
    ],
)
def test_known_answers(edges: Any, n: int, directed: bool, closeness: Any, harmonic: Any) -> None:
    graph = gp.Graph.from_edgelist(*arrays(edges), num_vertices=n, directed=directed)
    assert gp.closeness_centrality(graph, device="cpu").scores.tolist() == pytest.approx(closeness)
    assert gp.harmonic_centrality(graph, device="cpu").scores.tolist() == pytest.approx(harmonic)


@given(edge_lists(), st.booleans(), st.booleans(), st.data())
@settings(max_examples=25)
def test_scores_are_those_of_networkx(drawn: Any, directed: bool, improved: bool, data: Any) -> None:
    n, edges = drawn
    graph = gp.Graph.from_edgelist(*arrays(edges), num_vertices=n, directed=directed)
    given_ids = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=5))
    plain = networkx.DiGraph(edges) if directed else networkx.Graph(edges)
    plain.add_nodes_from(range(n))
    found = gp.closeness_centrality(graph, improved=improved, device="cpu")
    assert found.to_dict() == pytest.approx(networkx.closeness_centrality(plain, wf_improved=improved), rel=1e-12)
    check_closeness_centrality(graph, found)
    chosen = gp.closeness_centrality(graph, improved=improved, sources=given_ids, device="cpu")
    assert np.array_equal(chosen[given_ids], found[given_ids])
    assert np.isnan(chosen.scores).sum() == n - len(set(given_ids))
    harmonic = gp.harmonic_centrality(graph, device="cpu")
    assert harmonic.to_dict() == pytest.approx(networkx.harmonic_centrality(plain), rel=1e-12)
    assert np.array_equal(gp.harmonic_centrality(graph, samples=n, seed=5, device="cpu").scores, harmonic.scores)


def directed_graph() -> gp.Graph:
    """A directed graph of 1,100 vertices, three batches, with vertices that reach few others."""
    src, dst = np.random.default_rng(2).integers(0, 1100, (2, 2500))
    return gp.Graph.from_edgelist(src, dst, num_vertices=1100, directed=True)


@pytest.mark.parametrize("graph", [gp.kronecker(10, 4), gp.grid(33), directed_graph()], ids=["kron", "grid", "random"])
def test_several_batches(graph: gp.Graph) -> None:
    distances = shortest_path(graph.to_scipy(), unweighted=True)
    inverse = np.divide(1, distances, out=np.zeros_like(distances), where=(distances > 0) & np.isfinite(distances))
    found = [gp.harmonic_centrality(graph, threads=threads).scores for threads in (1, 2, 5)]
    np.testing.assert_allclose(found[0], inverse.sum(axis=0), 1e-12)
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])
    some = np.random.default_rng(0).permutation(graph.num_vertices)[:700]
    assert np.array_equal(gp.harmonic_centrality(graph, sources=some, device="cpu")[some], found[0][some])


def test_estimates_from_samples() -> None:
    graph = gp.kronecker(9, 8).largest_component(device="cpu")
    exact = gp.closeness_centrality(graph, device="cpu")
    estimated = gp.closeness_centrality(graph, samples=200, seed=1, device="cpu")
    check_closeness_centrality(graph, estimated)
    assert len(set(np.asarray(estimated.samples).tolist())) == 200
    np.testing.assert_allclose(estimated.scores, exact.scores, rtol=0.1)
    # Samples are estimated from one vertex less than the others, and not lower.
    ratio = estimated.scores / exact.scores
    assert ratio[estimated.samples].mean() == pytest.approx(ratio.mean(), rel=1e-3)
    other = gp.closeness_centrality(graph, samples=200, seed=2, device="cpu")
    assert not np.array_equal(np.asarray(other.samples), np.asarray(estimated.samples))


@pytest.mark.parametrize("samples", [2, 3, 8])
def test_estimates_are_exact_where_all_distances_are_equal(samples: int) -> None:
    graph = gp.Graph.from_networkx(networkx.complete_graph(8))
    assert gp.closeness_centrality(graph, samples=samples, device="cpu").scores.tolist() == pytest.approx([1] * 8)
    assert gp.harmonic_centrality(graph, samples=samples, device="cpu").scores.tolist() == pytest.approx([7] * 8)


def test_the_only_sample_has_no_score() -> None:
    found = gp.harmonic_centrality(gp.Graph.from_edgelist([0, 1], [1, 2]), samples=1, device="cpu")
    assert found.samples is not None
    assert [v for v in range(3) if found[v] == 0] == found.samples.tolist()
    check_harmonic_centrality(found.graph, found)


@OTHERS
def test_sources_and_samples_on_other_devices(device: str) -> None:
    graph = gp.Graph.from_edgelist([0, 0, 1, 5, 6, 7], [1, 2, 3, 6, 7, 3], directed=True)
    for options in ({"sources": [3, 7, 3]}, {"samples": 3}):
        found = gp.harmonic_centrality(graph, device=device, **options)
        assert np.array_equal(
            found.scores, gp.harmonic_centrality(graph, device="cpu", **options).scores, equal_nan=True
        )
    check_harmonic_centrality(graph, found)


def test_results_describe_themselves() -> None:
    path = gp.Graph.from_edgelist(["a", "b"], ["b", "c"])
    assert gp.closeness_centrality(path, device="cpu").describe() == "the largest closeness score is 1, of vertex 'b'"
    found = gp.harmonic_centrality(path, samples=1, device="cpu")
    assert found.describe().endswith(", estimated from 1 vertices")
    empty = gp.Graph.from_edgelist([], [])
    assert gp.closeness_centrality(empty, device="cpu").summary() == {"largest": 0.0, "vertex": None}


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"sources": [7]}, ArgumentError, "sources: no vertex has the id 7"),
        ({"sources": []}, ArgumentError, "sources is empty"),
        ({"samples": 4}, ArgumentError, "samples must be at most 3, the number of vertices, not 4"),
        ({"samples": 0}, ArgumentError, "samples must be at least 1, not 0"),
        ({"samples": 1, "sources": [0]}, ArgumentError, "pass sources or samples, not both"),
        ({"seed": -1}, ArgumentError, "seed must be at least 0"),
        ({"improved": 1}, ArgumentTypeError, "improved must be True or False, not 1"),
    ],
)
def test_bad_arguments(options: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        gp.closeness_centrality(gp.Graph.from_edgelist([0, 1], [1, 2]), device="cpu", **options)


def test_memory_is_checked_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpu_pregel.algorithms._searches._BYTES_PER_VERTEX", 1 << 50)
    with pytest.raises(NotEnoughMemoryError, match="searching from 9 sources on 1 threads"):
        gp.closeness_centrality(gp.grid(3), device="cpu")


def test_the_checker_refuses_scores_of_other_vertices() -> None:
    graph = gp.grid(3)
    found = gp.closeness_centrality(graph, sources=[0], device="cpu")
    found.sources[0] = 1  # type: ignore[index]
    with pytest.raises(VerificationError, match="not known for exactly the vertices"):
        check_closeness_centrality(graph, found)


@pytest.mark.parametrize("device", [on("cpu"), on("cuda")])
def test_a_few_samples_of_a_long_path_are_accurate(device: str) -> None:
    n = 200_000 if device == "cpu" else 400
    path = gp.Graph.from_edgelist(np.arange(n - 1), np.arange(1, n))
    found = gp.harmonic_centrality(path, samples=2, device=device)
    distances = np.abs(np.arange(n)[:, None] - np.asarray(found.samples))
    expected = np.where(distances == 0, 0, 1 / np.maximum(distances, 1)).sum(1) * (n - 1) / (distances > 0).sum(1)
    np.testing.assert_allclose(found.scores, expected, rtol=1e-12)

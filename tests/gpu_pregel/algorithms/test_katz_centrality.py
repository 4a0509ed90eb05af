"""Tests of Katz centrality: known answers, the linear equations, NetworkX, errors, determinism."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.algorithms.checkers.katz_centrality import check_katz_centrality
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, GraphError, VerificationError
from tests.devices import on
from tests.graphs import arrays, edge_lists


@pytest.mark.parametrize("device", [on("cpu"), on("cuda"), on("python")])
@pytest.mark.parametrize(
    ("n", "edges", "directed", "arguments", "expected"),
    [
        (0, [], False, {}, []),
        (2, [], False, {}, [1, 1]),
        (3, [(0, 1), (1, 2)], True, {"alpha": 0.5}, [1, 1.5, 1.75]),
        (3, [(0, 1), (0, 1), (1, 2)], True, {"alpha": 0.5, "beta": [1, 0, 2]}, [1, 1, 2.5]),
        (2, [(0, 1)], False, {"alpha": 0.5, "beta": {0: 3}}, [4, 2]),
        (1, [(0, 0)], True, {"alpha": 0.5, "beta": 2}, [4]),
        # The default: 0.9 divided by the largest in-degree, 2.
        (3, [(0, 2), (1, 2)], True, {}, [1, 1, 1.9]),
        (2, [(0, 1)], True, {"beta": 0}, [0, 0]),
    ],
)
def test_known_answers(
    device: str, n: int, edges: list[Any], directed: bool, arguments: dict[str, Any], expected: list[float]
) -> None:
    graph = gp.Graph.from_edgelist(*arrays(edges), num_vertices=n, directed=directed)
    scores = gp.katz_centrality(graph, tolerance=1e-12, normalized=False, **arguments, device=device)
    assert scores.to_numpy().tolist() == pytest.approx(expected, abs=1e-11)
    assert scores.converged
    check_katz_centrality(graph, scores)


@settings(max_examples=25)
@given(edge_lists(), st.booleans(), st.integers(0, 9), st.booleans())
def test_scores_solve_the_equations(drawn: Any, directed: bool, seed: int, weighted: bool) -> None:
    n, edges = drawn
    random = np.random.default_rng(seed)
    weight = random.integers(0, 5, len(edges)).astype(float)
    graph = gp.Graph.from_edgelist(*arrays(edges), weight, num_vertices=n, directed=directed)
    matrix = graph.to_scipy().toarray().astype(float) if weighted else _counts(graph)
    scores = gp.katz_centrality(graph, weighted=weighted, tolerance=1e-12, normalized=False, device="cpu")
    expected = np.linalg.solve(np.eye(n) - scores.alpha * matrix.T, np.ones(n))
    assert np.allclose(scores.scores, expected, rtol=1e-10)
    check_katz_centrality(graph, scores)
    scaled = gp.katz_centrality(graph, weighted=weighted, tolerance=1e-12, device="cpu")
    assert np.allclose(scaled.scores, expected / np.linalg.norm(expected), rtol=1e-10)
    check_katz_centrality(graph, scaled)


def _counts(graph: gp.Graph) -> np.ndarray[Any, Any]:
    """The number of edges between any two vertices."""
    matrix = np.zeros((graph.num_vertices, graph.num_vertices))
    np.add.at(matrix, (np.repeat(np.arange(graph.num_vertices), np.diff(graph.indptr)), graph.indices), 1)
    return matrix


@pytest.mark.parametrize("directed", [False, True])
def test_scores_are_those_of_networkx(directed: bool) -> None:
    known = networkx.gnm_random_graph(40, 90, seed=2, directed=directed)
    expected = networkx.katz_centrality(known, alpha=0.07, beta=2.0, tol=1e-13)
    scores = gp.katz_centrality(known, alpha=0.07, beta=2.0, tolerance=1e-12, device="cpu")
    assert scores.to_dict() == pytest.approx(expected, abs=1e-12)


def test_renumbering_and_threads_change_nothing_but_rounding() -> None:
    graph = gp.kronecker(15, 4)
    found = [gp.katz_centrality(graph, threads=threads) for threads in (1, 2, 5)]
    assert len({one.scores.tobytes() for one in found}) == 1
    assert "renumber" in [row["phase"] for row in found[0].trace]
    check_katz_centrality(graph, found[0])


def test_a_public_graph(data: Path) -> None:
    graph = gp.read_graph(data / "snap" / "wiki-Vote.txt", directed=True)
    scores = gp.katz_centrality(graph, device="cpu")
    assert scores.converged
    check_katz_centrality(graph, scores)


def test_the_limit_ends_without_an_error() -> None:
    graph = gp.grid(6, holes=0)
    scores = gp.katz_centrality(graph, max_iterations=3, device="cpu")
    assert (scores.iterations, scores.converged) == (3, False)
    check_katz_centrality(graph, scores)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"alpha": 0}, ArgumentError, "alpha must be above 0"),
        ({"alpha": 50}, ArgumentError, "alpha=50 is too large for this graph: after .* iterations the scores exceed"),
        ({"beta": -1}, ArgumentError, "beta must be at least 0"),
        ({"beta": [1, -1, 1]}, ArgumentError, r"beta has -1\.0 for the vertex 1"),
        ({"beta": {9: 1}}, ArgumentError, "beta: .*9"),
        ({"beta": True}, ArgumentTypeError, "beta must be a number"),
        ({"beta": 10**400}, ArgumentError, "beta must be at least 0"),
        ({"beta": "x"}, ArgumentTypeError, "beta must have a real number for each vertex"),
        ({"normalized": 1}, ArgumentTypeError, "normalized must be True or False"),
        ({"tolerance": -1.0}, ArgumentError, "tolerance must be at least 0"),
        ({"max_iterations": 0}, ArgumentError, "max_iterations must be at least 1"),
    ],
)
def test_invalid_arguments_are_rejected(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        gp.katz_centrality(gp.Graph.from_edgelist([0, 1], [1, 2]), device="cpu", **arguments)


def test_negative_weights_are_rejected() -> None:
    with pytest.raises(GraphError, match="katz_centrality needs weights of at least 0"):
        gp.katz_centrality(gp.Graph.from_edgelist([0], [1], [-1.0]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda scores: {"scores": scores.scores[1:]}, "shape"),
        (lambda scores: {"scores": -scores.scores}, "vertex 0 has the score"),
        (lambda scores: {"scores": scores.scores * 2}, "squares of the scores sum to"),
        (lambda scores: {"scores": np.roll(scores.scores, 1)}, "another iteration changes the scores"),
        (lambda scores: {"converged": False}, "converged is False"),
        (lambda scores: {"beta": 0 * scores.beta}, "beta is 0 everywhere"),
    ],
)
def test_the_checker_detects_errors(change: Any, message: str) -> None:
    graph = gp.Graph.from_edgelist([0, 1], [1, 2])
    scores = gp.katz_centrality(graph, device="cpu")
    with pytest.raises(VerificationError, match=message):
        check_katz_centrality(graph, replace(scores, **change(scores)))


def test_subnormal_weights_have_a_finite_alpha() -> None:
    graph = gp.Graph.from_edgelist([0], [1], [5e-324])
    scores = gp.katz_centrality(graph, normalized=False, device="cpu")
    assert scores.converged
    assert np.isfinite(scores.alpha)
    assert scores.scores.tolist() == pytest.approx([1, 1])

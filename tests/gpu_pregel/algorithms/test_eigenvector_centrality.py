"""Tests of eigenvector centrality: known answers, SciPy's eigenvectors, errors, determinism."""

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
from gpu_pregel.algorithms.checkers.eigenvector_centrality import check_eigenvector_centrality
from gpu_pregel.errors import ArgumentError, GraphError, VerificationError
from tests.devices import on
from tests.graphs import arrays

STRICT: dict[str, Any] = {"tolerance": 1e-13, "max_iterations": 5000}


@pytest.mark.parametrize("device", [on("cpu"), on("cuda"), on("python")])
@pytest.mark.parametrize(
    ("n", "edges", "directed", "expected"),
    [
        (0, [], False, []),
        (3, [], False, [3**-0.5] * 3),
        (1, [(0, 0)], False, [1]),
        # The eigenvector of a star for sqrt(3), and of a path for sqrt(2).
        (4, [(0, 1), (0, 2), (0, 3)], False, [2**-0.5, 6**-0.5, 6**-0.5, 6**-0.5]),
        (3, [(0, 1), (1, 2)], False, [0.5, 2**-0.5, 0.5]),
        # Two edges from 0 to 1 and one back: the eigenvalue is sqrt(2).
        (2, [(0, 1), (0, 1), (1, 0)], True, [3**-0.5, (2 / 3) ** 0.5]),
        # An isolated vertex has no part in the largest eigenvalue.
        (3, [(0, 1)], False, [2**-0.5, 2**-0.5, 0]),
    ],
)
def test_known_answers(device: str, n: int, edges: list[Any], directed: bool, expected: list[float]) -> None:
    graph = gp.Graph.from_edgelist(*arrays(edges), num_vertices=n, directed=directed)
    scores = gp.eigenvector_centrality(graph, tolerance=1e-12, max_iterations=200, device=device)
    assert scores.to_numpy().tolist() == pytest.approx(expected, abs=1e-10)
    assert scores.converged
    check_eigenvector_centrality(graph, scores)


@settings(max_examples=20)
@given(st.integers(3, 25), st.integers(0, 99), st.booleans(), st.booleans())
def test_scores_are_those_of_networkx(n: int, seed: int, directed: bool, weighted: bool) -> None:
    known = networkx.gnp_random_graph(n, 0.5, seed=seed, directed=directed)
    known.add_edges_from((v, (v + 1) % n) for v in range(n))
    random = np.random.default_rng(seed)
    for _, _, data in known.edges(data=True):
        data["weight"] = float(random.integers(1, 9))
    expected = networkx.eigenvector_centrality_numpy(known, weight="weight" if weighted else None)
    graph = gp.Graph.from_networkx(known)
    scores = gp.eigenvector_centrality(graph, weighted=weighted, device="cpu", **STRICT)
    assert scores.to_dict() == pytest.approx(expected, abs=1e-8)
    check_eigenvector_centrality(graph, scores)


def test_renumbering_and_threads_change_nothing_but_rounding() -> None:
    graph = gp.kronecker(15, 4)
    found = [gp.eigenvector_centrality(graph, threads=threads) for threads in (1, 2, 5)]
    assert len({one.scores.tobytes() for one in found}) == 1
    assert "renumber" in [row["phase"] for row in found[0].trace]
    check_eigenvector_centrality(graph, found[0])


def test_a_public_graph(data: Path) -> None:
    graph = gp.read_graph(data / "snap" / "wiki-Vote.txt", directed=True)
    scores = gp.eigenvector_centrality(graph, device="cpu")
    assert scores.converged
    check_eigenvector_centrality(graph, scores)


def test_the_limit_and_the_initial_scores() -> None:
    graph = gp.grid(6, holes=0)
    scores = gp.eigenvector_centrality(graph, max_iterations=2, device="cpu")
    assert (scores.iterations, scores.converged) == (2, False)
    check_eigenvector_centrality(graph, scores)
    solved = gp.eigenvector_centrality(graph, max_iterations=400, device="cpu")
    assert solved.converged
    again = gp.eigenvector_centrality(graph, initial=solved.scores, tolerance=1e-5, device="cpu")
    assert again.iterations < 3 < solved.iterations


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"initial": [0, 0]}, "initial sums to 0"),
        ({"tolerance": -1.0}, "tolerance must be at least 0"),
        ({"max_iterations": 0}, "max_iterations must be at least 1"),
    ],
)
def test_invalid_arguments_are_rejected(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        gp.eigenvector_centrality(gp.Graph.from_edgelist([0], [1]), **arguments)
    with pytest.raises(GraphError, match="eigenvector_centrality needs weights of at least 0"):
        gp.eigenvector_centrality(gp.Graph.from_edgelist([0], [1], [-1.0]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda scores: {"scores": scores.scores[1:]}, "shape"),
        (lambda scores: {"scores": -scores.scores}, "vertex 0 has the score"),
        (lambda scores: {"scores": scores.scores * 2}, "squares of the scores sum to"),
        (lambda scores: {"scores": np.roll(scores.scores, 1)}, "another iteration changes the scores"),
        (lambda scores: {"converged": False}, "converged is False"),
    ],
)
def test_the_checker_detects_errors(change: Any, message: str) -> None:
    graph = gp.Graph.from_edgelist([0, 1], [1, 2])
    scores = gp.eigenvector_centrality(graph, device="cpu")
    with pytest.raises(VerificationError, match=message):
        check_eigenvector_centrality(graph, replace(scores, **change(scores)))


@pytest.mark.parametrize("initial", [None, {0: 2, 5: 1}])
def test_the_checker_detects_errors_after_few_iterations(initial: Any) -> None:
    graph = gp.kronecker(6, 3)
    for iterations in (1, 5):
        found = gp.eigenvector_centrality(graph, max_iterations=iterations, initial=initial, device="cpu")
        assert not found.converged
        check_eigenvector_centrality(graph, found)
        for v in (0, 20):
            scores = found.scores.copy()
            scores[v] = scores[v] * 1.01 + 1e-6
            scores /= np.sqrt((scores * scores).sum())
            with pytest.raises(VerificationError, match=rf"vertex \d+ has the score .* after {iterations} iterations"):
                check_eigenvector_centrality(graph, replace(found, scores=scores))


@pytest.mark.parametrize("algorithm", [gp.eigenvector_centrality, gp.hits, gp.katz_centrality])
@pytest.mark.parametrize("weights", [[1.0, np.inf], [1e160, 1e160], [1e308, 1e308]])
def test_weights_whose_squares_overflow_are_rejected(algorithm: Any, weights: list[float]) -> None:
    graph = gp.Graph.from_edgelist([0, 1], [1, 2], weights)
    with pytest.raises(GraphError, match=r"needs weights whose sum is at most 1e\+150"):
        algorithm(graph, device="cpu")
    assert np.isfinite(algorithm(graph, weighted=False, device="cpu").scores).all()


def test_changes_may_grow_in_a_directed_graph() -> None:
    n = 40
    u, v = np.triu_indices(n, 1)
    weights = np.random.default_rng(0).choice([0, 5e-324, 1e-310, 1e-17, 1.0, 1e17], len(u))
    graph = gp.Graph.from_edgelist(v, u, weights, num_vertices=n, directed=True)
    check_eigenvector_centrality(graph, gp.eigenvector_centrality(graph, device="cpu"))


@pytest.mark.parametrize("weights", [[1.0, np.inf], [1e200, 1e200], [1e308, 1e308]])
def test_walks_and_similarities_refuse_weights_that_overflow(weights: list[float]) -> None:
    graph = gp.Graph.from_edgelist([0, 0], [1, 2], weights)
    with pytest.raises(GraphError, match="random_walks needs weights whose sum is at most"):
        gp.random_walks(graph, [0], 3, weighted=True, device="cpu")
    with pytest.raises(GraphError, match="cosine needs weights whose sum is at most"):
        gp.cosine(graph, weighted=True, device="cpu")

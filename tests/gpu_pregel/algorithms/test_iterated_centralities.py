"""Tests of Katz centrality, eigenvector centrality and HITS, which repeat an iteration until nothing changes.

Known answers, linear equations, eigenvectors and singular vectors, NetworkX, errors, determinism.
"""

from __future__ import annotations

from collections.abc import Callable
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
from gpu_pregel.algorithms.checkers.hits import check_hits
from gpu_pregel.algorithms.checkers.katz_centrality import check_katz_centrality
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, GraphError, VerificationError
from gpu_pregel.host.graphs.edge_arrays import to_host
from tests.devices import on
from tests.graphs import arrays, edge_lists

STRICT: dict[str, Any] = {"tolerance": 1e-13, "max_iterations": 5000}
GOLDEN = (5**0.5 - 1) / 2
CHECKERS: dict[Callable[..., Any], Callable[..., None]] = {
    gp.eigenvector_centrality: check_eigenvector_centrality,
    gp.hits: check_hits,
    gp.katz_centrality: check_katz_centrality,
}
ALL = pytest.mark.parametrize("algorithm", CHECKERS, ids=lambda algorithm: algorithm.__name__)


# All of them


@ALL
def test_renumbering_and_threads_change_nothing_but_rounding(algorithm: Any) -> None:
    graph = gp.kronecker(15, 4)
    found = [algorithm(graph, threads=threads) for threads in (1, 2, 5)]
    assert len({(one.scores.tobytes(), one.error) for one in found}) == 1
    if algorithm is gp.hits:
        assert len({one.hubs.tobytes() for one in found}) == 1
    else:
        assert "renumber" in [row["phase"] for row in found[0].trace]
    CHECKERS[algorithm](graph, found[0])


@ALL
def test_a_public_graph(algorithm: Any, data: Path) -> None:
    graph = gp.read_graph(data / "snap" / "wiki-Vote.txt", directed=True)
    scores = algorithm(graph, device="cpu")
    assert scores.converged
    CHECKERS[algorithm](graph, scores)
    if algorithm is gp.hits:
        reverse = gp.hits(graph.transpose(), device="cpu")
        assert np.allclose(reverse.hubs, scores.authorities, atol=1e-7)


@ALL
def test_the_limit_ends_without_an_error(algorithm: Any) -> None:
    graph = gp.grid(6, holes=0)
    scores = algorithm(graph, max_iterations=2, device="cpu")
    assert (scores.iterations, scores.converged) == (2, False)
    CHECKERS[algorithm](graph, scores)


@ALL
def test_invalid_arguments_of_all(algorithm: Any) -> None:
    graph = gp.Graph.from_edgelist([0], [1])
    with pytest.raises(ArgumentError, match="tolerance must be at least 0"):
        algorithm(graph, tolerance=-1.0, device="cpu")
    with pytest.raises(ArgumentError, match="max_iterations must be at least 1"):
        algorithm(graph, max_iterations=0, device="cpu")
    if algorithm is not gp.katz_centrality:
        with pytest.raises(ArgumentError, match="initial sums to 0"):
            algorithm(graph, initial=[0, 0], device="cpu")
    with pytest.raises(GraphError, match=f"{algorithm.__name__} needs weights of at least 0"):
        algorithm(gp.Graph.from_edgelist([0], [1], [-1.0]), device="cpu")


@ALL
@pytest.mark.parametrize("weights", [[1.0, np.inf], [1e160, 1e160], [1e308, 1e308]])
def test_weights_whose_squares_overflow_are_rejected(algorithm: Any, weights: list[float]) -> None:
    graph = gp.Graph.from_edgelist([0, 1], [1, 2], weights)
    with pytest.raises(GraphError, match=r"needs weights whose sum is at most 1e\+150"):
        algorithm(graph, device="cpu")
    assert np.isfinite(algorithm(graph, weighted=False, device="cpu").scores).all()


@ALL
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda scores: {"scores": scores.scores[1:]}, "shape"),
        (lambda scores: {"scores": -scores.scores}, "has the score"),
        (lambda scores: {"scores": scores.scores * 2}, "scores sum to"),
        (lambda scores: {"scores": np.roll(scores.scores, 1)}, "no edge joins|another iteration"),
        (lambda scores: {"converged": False}, "converged is False"),
    ],
)
def test_the_checkers_detect_errors(algorithm: Any, change: Any, message: str) -> None:
    if algorithm is gp.hits:
        graph = gp.Graph.from_edgelist([0, 1, 1], [2, 2, 3], directed=True)
    else:
        graph = gp.Graph.from_edgelist([0, 1], [1, 2])
    scores = algorithm(graph, device="cpu")
    with pytest.raises(VerificationError, match=message):
        CHECKERS[algorithm](graph, replace(scores, **change(scores)))


@pytest.mark.parametrize(
    ("algorithm", "change", "message"),
    [
        (gp.hits, lambda scores: {"hubs": -scores.hubs}, "vertex 0 has the score"),
        (gp.hits, lambda scores: {"hubs": np.roll(scores.hubs, 1)}, "another iteration changes the scores"),
        (gp.katz_centrality, lambda scores: {"beta": 0 * scores.beta}, "beta is 0 everywhere"),
    ],
)
def test_the_checkers_detect_errors_of_one_algorithm(algorithm: Any, change: Any, message: str) -> None:
    graph = gp.Graph.from_edgelist([0, 1, 1], [2, 2, 3], directed=algorithm is gp.hits)
    scores = algorithm(graph, device="cpu")
    with pytest.raises(VerificationError, match=message):
        CHECKERS[algorithm](graph, replace(scores, **change(scores)))


# Eigenvector centrality


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
def test_known_eigenvectors(device: str, n: int, edges: list[Any], directed: bool, expected: list[float]) -> None:
    graph = gp.Graph.from_edgelist(*arrays(edges), num_vertices=n, directed=directed)
    scores = gp.eigenvector_centrality(graph, tolerance=1e-12, max_iterations=200, device=device)
    assert scores.to_numpy().tolist() == pytest.approx(expected, abs=1e-10)
    assert scores.converged
    check_eigenvector_centrality(graph, scores)


@settings(max_examples=20)
@given(st.integers(3, 25), st.integers(0, 99), st.booleans(), st.booleans())
def test_eigenvectors_are_those_of_networkx(n: int, seed: int, directed: bool, weighted: bool) -> None:
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


def test_initial_scores_shorten_the_search() -> None:
    graph = gp.grid(6, holes=0)
    solved = gp.eigenvector_centrality(graph, max_iterations=400, device="cpu")
    assert solved.converged
    again = gp.eigenvector_centrality(graph, initial=solved.scores, tolerance=1e-5, device="cpu")
    assert again.iterations < 3 < solved.iterations


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


# Katz centrality


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
def test_known_katz_scores(
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
def test_katz_scores_are_those_of_networkx(directed: bool) -> None:
    known = networkx.gnm_random_graph(40, 90, seed=2, directed=directed)
    expected = networkx.katz_centrality(known, alpha=0.07, beta=2.0, tol=1e-13)
    scores = gp.katz_centrality(known, alpha=0.07, beta=2.0, tolerance=1e-12, device="cpu")
    assert scores.to_dict() == pytest.approx(expected, abs=1e-12)


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
    ],
)
def test_invalid_arguments_of_katz_centrality(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        gp.katz_centrality(gp.Graph.from_edgelist([0, 1], [1, 2]), device="cpu", **arguments)


@pytest.mark.parametrize("device", ["cpu", "emulated", "python"])
def test_katz_scores_that_overflow_name_alpha_on_every_device(device: str) -> None:
    with pytest.raises(ArgumentError, match="alpha=50 is too large for this graph"):
        gp.katz_centrality(gp.Graph.from_edgelist([0, 1], [1, 2]), alpha=50, device=device)


def test_subnormal_weights_have_a_finite_alpha() -> None:
    graph = gp.Graph.from_edgelist([0], [1], [5e-324])
    scores = gp.katz_centrality(graph, normalized=False, device="cpu")
    assert scores.converged
    assert np.isfinite(scores.alpha)
    assert scores.scores.tolist() == pytest.approx([1, 1])


# HITS


@pytest.mark.parametrize("device", [on("cpu"), on("cuda"), on("python")])
@pytest.mark.parametrize(
    ("n", "edges", "directed", "authorities", "hubs"),
    [
        (0, [], True, [], []),
        (2, [], True, [0, 0], [0, 0]),
        (1, [(0, 0)], True, [1], [1]),
        (3, [(0, 2), (1, 2)], True, [0, 0, 1], [0.5, 0.5, 0]),
        # Two edges to vertex 2 and one to vertex 1.
        (3, [(0, 1), (0, 2), (0, 2)], True, [0, 1 / 3, 2 / 3], [1, 0, 0]),
        (4, [(0, 2), (1, 2), (1, 3)], True, [0, 0, GOLDEN, 1 - GOLDEN], [1 - GOLDEN, GOLDEN, 0, 0]),
        (3, [(0, 1), (1, 2), (2, 0)], False, [1 / 3] * 3, [1 / 3] * 3),
    ],
)
def test_known_hubs_and_authorities(
    device: str, n: int, edges: list[Any], directed: bool, authorities: list[float], hubs: list[float]
) -> None:
    graph = gp.Graph.from_edgelist(*arrays(edges), num_vertices=n, directed=directed)
    scores = gp.hits(graph, tolerance=1e-12, device=device)
    assert scores.to_numpy().tolist() == pytest.approx(authorities, abs=1e-11)
    assert to_host(scores.hubs).tolist() == pytest.approx(hubs, abs=1e-11)
    assert scores.converged
    check_hits(graph, scores)


@pytest.mark.parametrize("device", ["cpu", "python"])
def test_the_smallest_weights_do_not_underflow(device: str) -> None:
    ends = [0, 1, 1], [2, 2, 3]
    scores = gp.hits(gp.Graph.from_edgelist(*ends, [5e-324] * 3, directed=True), device=device)
    expected = gp.hits(gp.Graph.from_edgelist(*ends, directed=True), device=device)
    assert scores.authorities.tolist() == pytest.approx(expected.authorities.tolist(), rel=1e-12)
    assert scores.hubs.tolist() == pytest.approx(expected.hubs.tolist(), rel=1e-12)
    check_hits(scores.graph, scores)


@settings(max_examples=20)
@given(st.integers(3, 25), st.integers(0, 99), st.booleans(), st.booleans())
def test_hubs_and_authorities_are_those_of_networkx(n: int, seed: int, directed: bool, weighted: bool) -> None:
    known = networkx.gnp_random_graph(n, 0.5, seed=seed, directed=directed)
    known.add_edges_from((v, (v + step) % n) for v in range(n) for step in (1, 2))
    random = np.random.default_rng(seed)
    for _, _, data in known.edges(data=True):
        data["weight"] = float(random.integers(1, 9)) if weighted else 1.0
    hubs, authorities = networkx.hits(known, tol=1e-14)
    graph = gp.Graph.from_networkx(known)
    scores = gp.hits(graph, tolerance=1e-13, max_iterations=20000, device="cpu")
    assert scores.to_dict() == pytest.approx(authorities, abs=1e-8)
    assert scores.to_pandas().set_index("vertex")["hub"].to_dict() == pytest.approx(hubs, abs=1e-8)
    check_hits(graph, scores)


def test_results_of_hits_have_two_columns() -> None:
    graph = gp.Graph.from_edgelist(["a", "b", "b"], ["c", "c", "d"], directed=True)
    scores = gp.hits(graph, max_iterations=1, initial={"a": 1}, device="cpu")
    assert scores.to_pandas().columns.tolist() == ["vertex", "authority", "hub"]
    assert (scores.iterations, scores.converged, scores["c"]) == (1, False, 1.0)
    assert "the highest authority 1 at 'c'" in scores.describe()
    check_hits(graph, scores)

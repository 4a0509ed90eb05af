"""Tests of HITS: known answers, singular vectors, errors, determinism."""

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
from gpu_pregel.algorithms.checkers.hits import check_hits
from gpu_pregel.errors import ArgumentError, GraphError, VerificationError
from tests.devices import on
from tests.graphs import arrays

GOLDEN = (5**0.5 - 1) / 2


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
def test_known_answers(
    device: str, n: int, edges: list[Any], directed: bool, authorities: list[float], hubs: list[float]
) -> None:
    graph = gp.Graph.from_edgelist(*arrays(edges), num_vertices=n, directed=directed)
    scores = gp.hits(graph, tolerance=1e-12, device=device)
    assert scores.authorities.tolist() == pytest.approx(authorities, abs=1e-11)
    assert scores.hubs.tolist() == pytest.approx(hubs, abs=1e-11)
    assert scores.converged
    check_hits(graph, scores)


@settings(max_examples=20)
@given(st.integers(3, 25), st.integers(0, 99), st.booleans(), st.booleans())
def test_scores_are_those_of_networkx(n: int, seed: int, directed: bool, weighted: bool) -> None:
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


def test_threads_do_not_change_the_scores() -> None:
    graph = gp.kronecker(14, 8)
    found = [gp.hits(graph, threads=threads) for threads in (1, 2, 5)]
    assert len({(one.scores.tobytes(), one.hubs.tobytes(), one.error) for one in found}) == 1
    check_hits(graph, found[0])


def test_a_public_graph(data: Path) -> None:
    graph = gp.read_graph(data / "snap" / "wiki-Vote.txt", directed=True)
    scores = gp.hits(graph, device="cpu")
    assert scores.converged
    check_hits(graph, scores)
    reverse = gp.hits(graph.transpose(), device="cpu")
    assert np.allclose(reverse.hubs, scores.authorities, atol=1e-7)


def test_results_have_two_columns_and_the_limit_is_no_error() -> None:
    graph = gp.Graph.from_edgelist(["a", "b", "b"], ["c", "c", "d"], directed=True)
    scores = gp.hits(graph, max_iterations=1, initial={"a": 1}, device="cpu")
    assert scores.to_pandas().columns.tolist() == ["vertex", "authority", "hub"]
    assert (scores.iterations, scores.converged, scores["c"]) == (1, False, 1.0)
    assert "the highest authority 1 at 'c'" in scores.describe()
    check_hits(graph, scores)


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
        gp.hits(gp.Graph.from_edgelist([0], [1]), **arguments)
    with pytest.raises(GraphError, match="hits needs weights of at least 0"):
        gp.hits(gp.Graph.from_edgelist([0], [1], [-1.0]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda scores: {"scores": scores.scores[1:]}, "shape"),
        (lambda scores: {"hubs": -scores.hubs}, "vertex 0 has the score"),
        (lambda scores: {"scores": scores.scores * 2}, "the authority scores sum to 2"),
        (lambda scores: {"hubs": np.roll(scores.hubs, 1)}, "another iteration changes the scores"),
        (lambda scores: {"scores": np.roll(scores.scores, 1)}, "no edge joins|another iteration"),
        (lambda scores: {"converged": False}, "converged is False"),
    ],
)
def test_the_checker_detects_errors(change: Any, message: str) -> None:
    graph = gp.Graph.from_edgelist([0, 1, 1], [2, 2, 3], directed=True)
    scores = gp.hits(graph, device="cpu")
    with pytest.raises(VerificationError, match=message):
        check_hits(graph, replace(scores, **change(scores)))

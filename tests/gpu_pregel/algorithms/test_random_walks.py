"""Tests of random walks: their distributions, ends, devices, and bad arguments."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.algorithms.checkers.random_walks import check_random_walks
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, GraphError, VerificationError
from tests.devices import on
from tests.graphs import arrays, edge_lists

SRC = [0, 0, 0, 0, 1, 1, 2]
DST = [1, 2, 3, 4, 2, 3, 3]
WEIGHTS = [1.0, 2.0, 3.0, 0.0, 4.0, 0.5, 0.25]


def assert_distributed(counts: dict[Any, int], probabilities: dict[Any, float]) -> None:
    """Compare counts with expected ones, within four and a half standard deviations."""
    total = sum(counts.values())
    assert set(counts) <= {key for key, p in probabilities.items() if p > 0}
    for key, p in probabilities.items():
        assert abs(counts.get(key, 0) - total * p) <= 4.5 * (total * p * (1 - p)) ** 0.5, key


@pytest.mark.parametrize("weighted", [False, True])
def test_first_steps_are_drawn_from_the_row(weighted: bool) -> None:
    graph = gp.Graph.from_edgelist(SRC, DST, WEIGHTS)
    found = gp.random_walks(graph, [0] * 5000, 1, weighted=weighted, seed=3, device="cpu")
    expected = {v: (w / 6 if weighted else 1 / 4) for v, w in zip(DST[:4], WEIGHTS, strict=False)}
    assert_distributed(Counter(found.walks[:, 1].tolist()), expected)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("p", "q"), [(0.25, 4.0), (4.0, 0.25), (1e4, 1e3)])
def test_biased_steps_follow_the_probabilities_of_node2vec(weighted: bool, p: float, q: float) -> None:
    graph = gp.Graph.from_edgelist(SRC, DST, WEIGHTS)
    found = gp.random_walks(graph, [0] * 6000, 2, weighted=weighted, p=p, q=q, device="cpu")
    check_random_walks(graph, found)
    for v in (1, 2, 3):
        shares = {}
        begin, end = graph.indptr[v : v + 2]
        assert graph.weights is not None
        for x, w in zip(graph.indices[begin:end].tolist(), graph.weights[begin:end].tolist(), strict=True):
            factor = 1 / p if x == 0 else 1.0 if graph.has_edge(0, x) else 1 / q
            shares[x] = factor * (w if weighted else 1.0)
        steps = Counter(found.walks[found.walks[:, 1] == v, 2].tolist())
        assert_distributed(steps, {x: share / sum(shares.values()) for x, share in shares.items()})


@given(edge_lists(), st.booleans(), st.booleans(), st.integers(0, 1 << 80), st.data())
@settings(max_examples=25)
def test_walks_follow_edges(drawn: Any, directed: bool, weighted: bool, seed: int, data: Any) -> None:
    n, edges = drawn
    weights = np.arange(len(edges)) % 3.0
    graph = gp.Graph.from_edgelist(*arrays(edges), weights, num_vertices=n, directed=directed)
    starts = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=9))
    for p in (1.0, 0.5):
        found = gp.random_walks(graph, starts, 6, weighted=weighted, p=p, seed=seed, device="cpu")
        check_random_walks(graph, found)


def test_walks_that_end_are_padded() -> None:
    graph = gp.Graph.from_edgelist(["a", "b", "x"], ["b", "c", "x"], directed=True)
    found = gp.random_walks(graph, ["a", "c", "x"], 3, device="cpu")
    assert found.walks.tolist() == [[0, 1, 2, -1], [2, -1, -1, -1], [3, 3, 3, 3]]
    assert found.paths() == [["a", "b", "c"], ["c"], ["x"] * 4]
    assert found.describe() == "3 walks, 5 steps, 2 walks ended early"
    assert found.to_pandas()["vertex"].tolist() == ["a", "b", "c", "c", "x", "x", "x", "x"]


def test_walks_depend_on_the_seed_and_the_position_only() -> None:
    graph = gp.kronecker(8)
    first = gp.random_walks(graph, range(200), 10, p=0.5, q=2.0, seed=1, threads=1)
    for threads in (2, 5):
        again = gp.random_walks(graph, range(200), 10, p=0.5, q=2.0, seed=1, threads=threads)
        assert np.array_equal(again.walks, first.walks)
    part = gp.random_walks(graph, range(50), 5, p=0.5, q=2.0, seed=1, device="cpu")
    assert np.array_equal(part.walks, first.walks[:50, :6])
    other = gp.random_walks(graph, range(200), 10, p=0.5, q=2.0, seed=2, device="cpu")
    assert not np.array_equal(other.walks, first.walks)
    same_start = gp.random_walks(graph, [first.walks[0, 0]] * 20, 5, device="cpu")
    assert len(np.unique(same_start.walks, axis=0)) > 10


@pytest.mark.parametrize("device", [on("python"), on("emulated")])
def test_biased_and_weighted_walks_on_other_devices(device: str) -> None:
    graph = gp.Graph.from_edgelist(SRC, DST, WEIGHTS)
    for options in ({"weighted": True, "p": 1e4, "q": 1e3}, {"p": 0.5, "q": 2.0}, {"weighted": True}):
        found = gp.random_walks(graph, range(5), 4, device=device, **options)
        expected = gp.random_walks(graph, range(5), 4, device="cpu", **options)
        assert np.array_equal(found.walks, expected.walks)


@pytest.mark.parametrize("device", ["cpu", "python"])
def test_shares_of_the_smallest_weights_do_not_underflow(device: str) -> None:
    graph = gp.Graph.from_edgelist([0, 0, 1], [1, 2, 3], [5e-324, 5e-324, 1.0], directed=True)
    found = gp.random_walks(graph, [0] * 400, 1, device=device)
    assert_distributed(Counter(found.walks[:, 1].tolist()), {1: 0.5, 2: 0.5})


def test_biased_steps_know_weights_that_vanish_beside_others() -> None:
    graph = gp.Graph.from_edgelist([0, 1, 1], [1, 2, 3], [1e20, 1.0, 1.0])
    found = gp.random_walks(graph, [0] * 400, 2, p=1e30, device="cpu")
    assert_distributed(Counter(found.walks[:, 2].tolist()), {2: 0.5, 3: 0.5})


@pytest.mark.parametrize(("weight", "p"), [(5e-324, 1.0), (1e149, 1e-200)])
def test_biased_steps_of_extreme_weights(weight: float, p: float) -> None:
    graph = gp.Graph.from_edgelist([0, 1], [1, 2], [weight, weight], directed=p == 1.0)
    assert gp.random_walks(graph, [0], 2, p=p, q=1e9, device="cpu").walks[0, 2] == (2 if p == 1.0 else 0)


@pytest.mark.parametrize(
    ("starts", "length", "options", "error", "message"),
    [
        ([9], 1, {}, ArgumentError, "starts: no vertex has the id 9"),
        ([0], 0, {}, ArgumentError, "length must be from 1 to"),
        ([0], 1, {"p": 0}, ArgumentError, "p must be above 0"),
        ([0], 1, {"q": -1.0}, ArgumentError, "q must be above 0"),
        ([0], 1, {"seed": 0.5}, ArgumentTypeError, "seed must be a whole number"),
        ([0], 1, {"weighted": 1}, ArgumentTypeError, "weighted must be True or False"),
    ],
)
def test_bad_arguments(starts: Any, length: Any, options: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        gp.random_walks(gp.grid(2), starts, length, device="cpu", **options)


def test_negative_weights_are_rejected() -> None:
    graph = gp.Graph.from_edgelist(["a"], ["b"], [-1.0])
    with pytest.raises(GraphError, match="needs weights of at least 0, and the edge from 'a' to 'b' has"):
        gp.random_walks(graph, ["a"], 1, weighted=True, device="cpu")


@pytest.mark.parametrize(
    ("walks", "message"),
    [
        ([[1, 0, 1]], "do not begin at the starts"),
        ([[0, 2, 1]], "from 0 to 2 in step 1, which is no edge"),
        ([[0, 1, -1]], "ends in step 2 at vertex 1, which has out-edges"),
    ],
)
def test_the_checker_refuses_wrong_walks(walks: list[list[int]], message: str) -> None:
    graph = gp.Graph.from_edgelist([0, 1], [1, 2])
    found = gp.random_walks(graph, [0], 2, device="cpu")
    with pytest.raises(VerificationError, match=message):
        check_random_walks(graph, replace(found, walks=np.array(walks)))

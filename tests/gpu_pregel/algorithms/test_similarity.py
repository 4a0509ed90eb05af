"""Jaccard, overlap and cosine coefficients: known answers, NetworkX and SciPy, kinds of pairs, bad input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import networkx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.algorithms.checkers.similarity import check_cosine, check_jaccard, check_overlap
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, GraphError, VerificationError
from tests.graphs import arrays, edge_lists
from tests.packages import needs

pd = needs("pandas", "test")

DEVICES = pytest.mark.parametrize("device", ["cpu", "python"])
"""The conformance tests run the same operators on the emulated device."""
CHECKS: list[tuple[Callable[..., gp.PairScores], Callable[..., None]]] = [
    (gp.jaccard, check_jaccard),
    (gp.overlap, check_overlap),
    (gp.cosine, check_cosine),
]
TWO_STARS = gp.Graph.from_edgelist(["a", "a", "a", "b", "b"], ["c", "d", "e", "c", "d"], [1.0, 2.0, 4.0, 3.0, 1.0])
"""The vertices a and b have the neighbours c and d in common, and a has e in addition."""


@DEVICES
def test_known_answers(device: str) -> None:
    pairs = [("a", "b"), ("c", "d"), ("b", "c"), ("e", "e")]
    assert gp.jaccard(TWO_STARS, pairs=pairs, weighted=False, device=device).to_numpy().tolist() == pytest.approx(
        [2 / 3, 1, 0, 1]
    )
    assert gp.overlap(TWO_STARS, pairs=pairs, weighted=False, device=device).to_numpy().tolist() == pytest.approx(
        [1, 1, 0, 1]
    )
    assert gp.cosine(TWO_STARS, pairs=pairs, weighted=False, device=device).to_numpy().tolist() == pytest.approx(
        [2 / 6**0.5, 1, 0, 1]
    )
    options: Any = {"pairs": pairs[:1], "weighted": True, "device": device}
    assert gp.jaccard(TWO_STARS, **options).to_numpy().tolist() == pytest.approx([2 / 9])
    assert gp.overlap(TWO_STARS, **options).to_numpy().tolist() == pytest.approx([2 / 4])
    assert gp.cosine(TWO_STARS, **options).to_numpy().tolist() == pytest.approx([5 / (21 * 10) ** 0.5])


@DEVICES
def test_weights_whose_squares_underflow(device: str) -> None:
    weights = np.array([3.0, 4.0, 5.0, 12.0])
    for factor in (1.0, np.array([1e-200, 1e-200, 1e100, 1e100]), 1e-310):
        graph = gp.Graph.from_edgelist(["a", "a", "b", "b"], ["c", "d", "c", "e"], weights * factor)
        found = gp.cosine(graph, [("a", "b")], weighted=True, device=device)
        assert found.to_numpy().tolist() == pytest.approx([3 / 13])
        check_cosine(graph, found)


@DEVICES
def test_all_adjacent_pairs_are_the_default(device: str) -> None:
    # A triangle with a tail, a self-loop, a repeated edge and an isolated vertex.
    graph = gp.Graph.from_edgelist([0, 1, 2, 2, 3, 0], [1, 2, 0, 3, 3, 1], num_vertices=5)
    found = gp.jaccard(graph, device=device)
    assert found.to_dict() == pytest.approx({(0, 1): 1 / 3, (0, 2): 1 / 4, (1, 2): 1 / 4, (2, 3): 0})
    assert (found.adjacent, found.weighted, len(found)) == (True, False, 4)
    for n in (0, 3):
        empty = gp.cosine(gp.Graph.from_edgelist([], [], num_vertices=n), device=device)
        assert (len(empty), empty.summary()) == (0, {"pairs": 0, "mean": 0.0, "largest": 0.0})


@DEVICES
def test_agrees_with_networkx_and_the_checkers(device: str) -> None:
    @settings(max_examples=30 if device == "cpu" else 8)
    @given(edge_lists(max_vertices=14, max_edges=60), st.booleans())
    def check(given_graph: Any, weighted: bool) -> None:
        n, edges = given_graph
        src, dst = arrays(edges)
        graph = gp.Graph.from_edgelist(src, dst, np.arange(len(src)) % 5, num_vertices=n)
        oracle = networkx.empty_graph(n)
        oracle.add_edges_from((u, v) for u, v in edges if u != v)
        pairs = [(u, v) for u in range(n) for v in range(n)]
        for function, check_scores in CHECKS:
            check_scores(graph, function(graph, pairs=pairs, weighted=weighted, device=device))
            check_scores(graph, function(graph, weighted=weighted, device=device))
        expected = {(u, v): p for u, v, p in networkx.jaccard_coefficient(oracle, pairs)}
        assert gp.jaccard(graph, pairs=pairs, weighted=False, device=device).to_dict() == pytest.approx(expected)

    check()


def test_agrees_with_scipy_and_between_threads() -> None:
    graph = gp.kronecker(11, 16)
    matrix = scipy.sparse.csr_array(graph.to_scipy(), dtype=np.int64)
    common, degrees = (matrix @ matrix).multiply(matrix), graph.out_degrees
    found = [gp.cosine(graph, device="cpu", threads=threads) for threads in (1, 2, 5)]
    for scores in found:
        assert scores.to_numpy().tobytes() == found[0].to_numpy().tobytes()
        u, v = scores.first, scores.second
        expected = np.asarray(common[u, v]).ravel() / np.sqrt(degrees[u] * degrees[v])
        np.testing.assert_allclose(scores.to_numpy(), expected)
    assert len(found[0]) == graph.num_stored_edges // 2


@pytest.mark.parametrize(
    "pairs",
    [
        [("a", "b"), ("c", "e")],
        np.array([["a", "b"], ["c", "e"]]),
        pd.DataFrame({"one": ["a", "c"], "other": ["b", "e"]}),
        (pair for pair in [("a", "b"), ("c", "e")]),
    ],
    ids=["list", "array", "data frame", "generator"],
)
def test_pairs_are_given_in_several_ways(pairs: Any) -> None:
    found = gp.jaccard(TWO_STARS, pairs=pairs, weighted=False, device="cpu")
    assert found.to_dict() == pytest.approx({("a", "b"): 2 / 3, ("c", "e"): 1 / 2})
    assert found.to_pandas().columns.tolist() == ["first", "second", "score"]
    assert found.describe() == "2 pairs, scores up to 0.666667, 0.583333 on average"
    assert repr(found) == "<PairScores: 2 pairs>"


@pytest.mark.parametrize("pairs", [["ab", "cd"], [1, 2], np.arange(4), np.zeros((2, 3)), 7, [("a", "b", "c")]])
def test_arguments_that_are_no_pairs_are_rejected(pairs: Any) -> None:
    with pytest.raises(ArgumentTypeError, match="pairs must be an array of two columns"):
        gp.jaccard(TWO_STARS, pairs=pairs)


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(ArgumentError, match=r"pairs: .*'x'"):
        gp.overlap(TWO_STARS, pairs=[("a", "x")])
    with pytest.raises(ArgumentError, match="pairs is empty"):
        gp.overlap(TWO_STARS, pairs=[])
    with pytest.raises(GraphError, match="cosine needs an undirected graph"):
        gp.cosine(gp.Graph.from_edgelist([0], [1], directed=True))
    with pytest.raises(GraphError, match="jaccard needs weights of at least 0"):
        gp.jaccard(gp.Graph.from_edgelist([0], [1], [-1.0]), weighted=True)
    with pytest.raises(ArgumentTypeError, match="weighted must be True or False"):
        gp.jaccard(TWO_STARS, weighted="yes")  # type: ignore[arg-type]


def test_the_checker_rejects_missing_pairs() -> None:
    graph = gp.Graph.from_edgelist([0, 0, 1], [1, 2, 2])
    found = gp.jaccard(graph, device="cpu")
    partial = gp.PairScores(graph, {}, (), found.first[1:], found.second[1:], found.to_numpy()[1:], True, False)
    with pytest.raises(VerificationError, match="the pairs are not those of all adjacent vertices"):
        check_jaccard(graph, partial)

"""Tests of the checks of arguments that algorithms share: what they accept, and what their errors say."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.algorithms import _arguments
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, GraphError

NAMED = gp.Graph.from_edgelist(["ann", "bob"], ["bob", "cid"])
NUMBERED = gp.Graph.from_edgelist([10, 20], [20, 30], directed=True)


def weighted(*weights: float, dtype: Any = np.float32) -> gp.Graph:
    src = np.arange(10, 10 + len(weights))
    return gp.Graph.from_edgelist(src, src + 1, np.array(weights, dtype), directed=True)


def test_vertices_are_found_by_id() -> None:
    assert _arguments.vertex_number(NAMED, "source", "cid") == 2
    numbers = _arguments.vertex_numbers(NUMBERED, "sources", [30, 10, 30])
    assert (numbers.tolist(), numbers.dtype) == ([2, 0, 2], np.int64)


def test_sets_of_vertices_are_sorted_by_number() -> None:
    names = [f"v{k}" for k in range(30)]
    graph = gp.Graph.from_edgelist(names[:-1], names[1:])
    some = set(names[::3])
    expected = list(range(0, 30, 3))
    assert _arguments.vertex_numbers(graph, "starts", some).tolist() == expected
    assert gp.random_walks(graph, some, length=1, device="cpu").starts.tolist() == expected
    assert gp.bfs(graph, some, device="cpu").sources.tolist() == expected
    assert gp.sssp(graph, some, device="cpu").sources.tolist() == expected
    pairs = gp.jaccard(graph, {("v9", "v3"), ("v2", "v4"), ("v2", "v3")}, device="cpu")
    assert (pairs.first.tolist(), pairs.second.tolist()) == ([2, 2, 9], [3, 4, 3])


@pytest.mark.parametrize(
    ("find", "graph", "ids", "error", "message"),
    [
        (_arguments.vertex_number, NAMED, "dan", ArgumentError, "source: no vertex has the id 'dan': `id in graph`"),
        (_arguments.vertex_number, NAMED, None, ArgumentError, "source: no vertex has the id None"),
        (_arguments.vertex_number, NUMBERED, "10", ArgumentError, "there is the id 10, which is an integer"),
        (_arguments.vertex_numbers, NUMBERED, [10, 11], ArgumentError, "source: no vertex has the id 11"),
        (_arguments.vertex_numbers, NAMED, ["ann", 4], ArgumentError, "source: no vertex has the id 4"),
        (_arguments.vertex_numbers, NAMED, "ann", ArgumentTypeError, "source: ids must be a list or an array"),
        (_arguments.vertex_numbers, NUMBERED, 10, ArgumentTypeError, "source: ids must be a list or an array"),
        (_arguments.vertex_numbers, NUMBERED, [], ArgumentError, "source is empty: give at least one id"),
    ],
)
def test_unknown_vertices_are_rejected(
    find: Callable[..., Any], graph: gp.Graph, ids: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        find(graph, "source", ids)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "find",
    [
        lambda graph, **options: gp.betweenness_centrality(graph, **options).scores,
        lambda graph, **options: gp.edge_betweenness_centrality(graph, **options).scores,
        lambda graph, **options: gp.pagerank(graph, **options).scores,
        lambda graph, **options: gp.jaccard(graph, **options).scores,
        lambda graph, **options: gp.overlap(graph, **options).scores,
        lambda graph, **options: gp.cosine(graph, **options).scores,
        lambda graph, **options: gp.random_walks(graph, [0] * 50, 3, **options).walks,
    ],
)
def test_weights_are_used_if_there_are_any(find: Any) -> None:
    ends = [0, 0, 1, 2, 2], [1, 2, 2, 3, 4]
    graph, plain = gp.Graph.from_edgelist(*ends, [9.0, 1.0, 1.0, 4.0, 2.0]), gp.Graph.from_edgelist(*ends)
    default, used, unused = find(graph), find(graph, weighted=True), find(graph, weighted=False)
    assert np.array_equal(default, used)
    assert not np.array_equal(default, unused)
    assert np.array_equal(unused, find(plain))
    assert np.array_equal(unused, find(plain, weighted=True))


def test_requirements_on_the_graph() -> None:
    _arguments.check_directed(NUMBERED, "scc")
    _arguments.check_undirected(NAMED, "cores")
    assert _arguments.weights_required(weighted(2, 3), "forest").tolist() == [2, 3]
    with pytest.raises(GraphError, match=r"cores needs an undirected graph, .* pass graph\.to_undirected\(\)"):
        _arguments.check_undirected(NUMBERED, "cores")
    with pytest.raises(GraphError, match=r"scc needs a directed graph, .* build it with directed=True"):
        _arguments.check_directed(NAMED, "scc")
    with pytest.raises(GraphError, match="forest needs weights, and this graph has none: pass weight="):
        _arguments.weights_required(NAMED, "forest")


@pytest.mark.parametrize(
    "graph",
    [NAMED, weighted(), weighted(0, 1, math.inf), weighted(0, -0.0), weighted(0, 7, dtype=np.uint8)],
    ids=["none", "empty", "infinite", "zeros", "unsigned"],
)
def test_weights_of_at_least_zero_pass(graph: gp.Graph) -> None:
    for _ in range(2):
        _arguments.check_weights_nonnegative(graph, "sssp")


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (weighted(1, -2, -3), "the edge from 11 to 12 has -2.0"),
        (weighted(-1, dtype=np.int64), "the edge from 10 to 11 has -1"),
    ],
)
def test_negative_weights_are_rejected(graph: gp.Graph, message: str) -> None:
    for _ in range(2):
        with pytest.raises(GraphError, match=f"sssp needs weights of at least 0, and {message}: "):
            _arguments.check_weights_nonnegative(graph, "sssp")


def test_the_edge_of_a_weight_that_is_nan_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = weighted(1, 2, 3)
    monkeypatch.setattr(type(graph), "weights", np.array([1, np.nan, 3]))
    with pytest.raises(GraphError, match="the edge from 11 to 12 has nan"):
        _arguments.check_weights_nonnegative(graph, "sssp")


@pytest.mark.parametrize("value", [0.85, Fraction(1, 2), np.float32(0.25)])
def test_numbers_inside_an_open_interval_pass(value: Any) -> None:
    found = _arguments.check_open_interval("damping", value, 0, 1)
    assert (found, type(found)) == (float(value), float)
    assert _arguments.check_positive("delta", value) == float(value)


@pytest.mark.parametrize("value", [0, 1, -1, 1.5, math.nan, math.inf, -math.inf, 10**400])
def test_numbers_outside_an_open_interval_are_rejected(value: Any) -> None:
    with pytest.raises(ArgumentError, match="damping must be above 0 and below 1, not "):
        _arguments.check_open_interval("damping", value, 0, 1)


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, 10**400])
def test_numbers_that_are_not_positive_are_rejected(value: Any) -> None:
    with pytest.raises(ArgumentError, match="delta must be above 0 and a finite number, not "):
        _arguments.check_positive("delta", value)


@pytest.mark.parametrize("value", [True, "1", None, 1j])
def test_what_is_no_number_is_rejected(value: Any) -> None:
    with pytest.raises(ArgumentTypeError, match="delta must be a number, not "):
        _arguments.check_positive("delta", value)

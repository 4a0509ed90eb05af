"""Spanning forests: total weights of NetworkX and SciPy, all types of weights, ties, ids, rejected arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
import scipy.sparse.csgraph
from hypothesis import given, settings
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.algorithms import _boruvka_cpu
from gpu_pregel.algorithms.checkers.minimum_spanning_forest import check_minimum_spanning_forest
from gpu_pregel.errors import ArgumentTypeError, GraphError, VerificationError
from tests.chunks import shrink_chunks
from tests.graphs import arrays, edge_lists

DTYPES = ("int32", "int64", "uint32", "uint64", "float32", "float64")


@pytest.mark.parametrize("maximum", [False, True])
@pytest.mark.parametrize(
    ("n", "edges", "weights", "smallest", "largest"),
    [
        (0, [], [], [], []),
        (3, [(1, 1)], [5], [], []),
        (3, [(2, 0), (0, 2), (1, 0)], [7, 3, 1], [[0, 1], [0, 2]], [[0, 1], [0, 2]]),
        (3, [(0, 1), (1, 2), (0, 2)], [1, 2, 3], [[0, 1], [1, 2]], [[0, 2], [1, 2]]),
        (4, [(3, 2), (2, 1), (1, 0), (0, 3)], [1] * 4, [[0, 1], [0, 3], [1, 2]], [[0, 1], [0, 3], [1, 2]]),
        (5, [(0, 1), (3, 4)], [-2, -1], [[0, 1], [3, 4]], [[0, 1], [3, 4]]),
    ],
    ids=["empty", "self-loop", "repeated edges", "triangle", "ties", "two trees"],
)
def test_known_answers(n: int, edges: Any, weights: Any, smallest: Any, largest: Any, maximum: bool) -> None:
    graph = gp.Graph.from_edgelist(*arrays(edges), np.array(weights, np.int32), num_vertices=n)
    forest = gp.minimum_spanning_forest(graph, maximum=maximum)
    assert forest.edges.tolist() == (largest if maximum else smallest)
    assert list(forest.to_dict()) == [tuple(edge) for edge in (largest if maximum else smallest)]
    assert sum(forest.to_dict().values()) == forest.total_weight
    assert forest.edges.dtype == forest.labels.dtype == np.uint32
    assert forest.maximum == maximum
    assert forest.count == gp.connected_components(graph).count
    assert forest.labels.tolist() == gp.connected_components(graph).labels.tolist()
    check_minimum_spanning_forest(graph, forest)


@pytest.mark.parametrize("degree", [3, 0], ids=["at once", "light edges first"])
@pytest.mark.parametrize("dtype", ["int32", "float64"])
def test_the_total_weight_is_that_of_networkx(dtype: str, degree: int, monkeypatch: pytest.MonkeyPatch) -> None:
    shrink_chunks(monkeypatch, 8)
    monkeypatch.setattr(_boruvka_cpu, "_SMALL", 0)
    monkeypatch.setattr(_boruvka_cpu, "_DEGREE", degree)
    numbers = st.lists(st.integers(-4, 4), min_size=80, max_size=80)

    @settings(max_examples=40)
    @given(graph=edge_lists(), numbers=numbers, maximum=st.booleans())
    def check(graph: Any, numbers: list[int], maximum: bool) -> None:
        n, edges = graph
        weights = numbers[: len(edges)]
        built = gp.Graph.from_edgelist(*arrays(edges), np.array(weights, dtype), num_vertices=n)
        forest = gp.minimum_spanning_forest(built, maximum=maximum, device="cpu", threads=2)
        oracle = networkx.MultiGraph()
        oracle.add_nodes_from(range(n))
        oracle.add_weighted_edges_from([(u, v, w) for (u, v), w in zip(edges, weights, strict=True)])
        find = networkx.maximum_spanning_edges if maximum else networkx.minimum_spanning_edges
        expected = [attributes["weight"] for *_, attributes in find(oracle, data=True)]
        assert (len(forest), forest.total_weight) == (len(expected), sum(expected))
        check_minimum_spanning_forest(built, forest)

    check()


@pytest.mark.parametrize("dtype", DTYPES)
def test_threads_share_the_work(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shrink_chunks(monkeypatch)
    monkeypatch.setattr(_boruvka_cpu, "_SMALL", 0)
    monkeypatch.setattr(_boruvka_cpu, "_CHUNK", 16)
    pattern = gp.uniform(9, 12)
    rows, columns = np.repeat(np.arange(512), pattern.out_degrees), pattern.indices
    weights = (rows ^ columns).astype(np.int64) * 7919 % 97 + 1
    built = gp.Graph.from_edgelist(
        rows[rows < columns], columns[rows < columns], weights[rows < columns].astype(dtype), num_vertices=512
    )
    total = scipy.sparse.csgraph.minimum_spanning_tree(built.to_scipy()).sum()
    first = gp.minimum_spanning_forest(built, threads=1)
    assert any(row["phase"] == "collect light" for row in first.trace)
    assert first.total_weight == total
    assert first.weights is not None
    assert first.weights.dtype == dtype
    for threads in (2, 5):
        forest = gp.minimum_spanning_forest(built, threads=threads)
        assert forest.edges.tolist() == first.edges.tolist()
    check_minimum_spanning_forest(built, forest)
    check_minimum_spanning_forest(built, gp.minimum_spanning_forest(built, maximum=True))


@pytest.mark.parametrize("device", ["cpu", "python"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_extreme_weights_are_ordered(dtype: str, device: str) -> None:
    kind = np.dtype(dtype)
    if kind.kind == "f":
        extremes = [np.inf, np.finfo(kind).max, 1, np.finfo(kind).tiny, 0.0, -0.0, -1, -np.finfo(kind).max, -np.inf]
    else:
        extremes = [np.iinfo(kind).max, np.iinfo(kind).max - 1, 3, 2, np.iinfo(kind).min + 1, np.iinfo(kind).min]
    weights = np.array(extremes, kind)
    k = len(weights)
    # A ring: the forest lacks exactly the heaviest edge, or the lightest one; zero and negative zero are equal.
    graph = gp.Graph.from_edgelist(np.arange(k), (np.arange(k) + 1) % k, weights)
    for maximum in (False, True):
        forest = gp.minimum_spanning_forest(graph, maximum=maximum, device=device)
        missing = {(0, 1), *((v, v + 1) for v in range(k - 1)), (0, k - 1)} - set(map(tuple, forest.edges.tolist()))
        assert missing == {(0, k - 1) if maximum else (0, 1)}
        check_minimum_spanning_forest(graph, forest)
    zeros = gp.Graph.from_edgelist([0, 0, 1], [1, 2, 2], np.array([0.0, -0.0, -0.0]))
    assert gp.minimum_spanning_forest(zeros, device=device).edges.tolist() == [[0, 1], [0, 2]]


def test_totals_do_not_overflow() -> None:
    graph = gp.Graph.from_edgelist([0, 1, 2], [1, 2, 3], np.full(3, (1 << 64) - 1, np.uint64))
    assert gp.minimum_spanning_forest(graph).total_weight == 3 * ((1 << 64) - 1)
    graph = gp.Graph.from_edgelist([0, 1, 2], [1, 2, 3], np.full(3, -(1 << 63), np.int64))
    assert gp.minimum_spanning_forest(graph).total_weight == -3 << 63
    graph = gp.Graph.from_edgelist([0, 1], [1, 2], np.full(2, -(1 << 31), np.int32))
    assert gp.minimum_spanning_forest(graph).total_weight == -1 << 32


def test_ids_columns_and_the_tree() -> None:
    graph = gp.Graph.from_edgelist(["a", "b", "a", "x"], ["b", "c", "c", "y"], [1.0, 2.0, 3.0, 4.0])
    forest = gp.minimum_spanning_forest(graph)
    table = {"source": ["a", "b", "x"], "target": ["b", "c", "y"], "weight": [1.0, 2.0, 4.0]}
    assert forest.to_pandas().to_dict("list") == table
    assert forest.to_arrow().to_pydict() == table
    assert forest.summary() == {"edges": 3, "trees": 2, "weight": 7.0}
    assert forest.describe() == "3 edges of total weight 7.0 in 2 trees"
    assert repr(forest) == "<SpanningForest: 3 edges in 2 trees>"
    tree = forest.tree()
    assert tree.to_pandas().to_dict("list") == table
    assert (tree.num_vertices, tree.is_directed) == (5, False)


def test_without_weights_it_is_a_spanning_forest() -> None:
    forest = gp.minimum_spanning_forest(gp.grid(5, holes=0))
    assert (len(forest), forest.weights, forest.total_weight) == (24, None, 24)
    assert list(forest.to_pandas()) == ["source", "target"]


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(ArgumentTypeError, match="maximum must be True or False"):
        gp.minimum_spanning_forest(gp.grid(2), maximum="yes")  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="needs an undirected graph"):
        gp.minimum_spanning_forest(gp.Graph.from_edgelist([0], [1], directed=True))


def test_the_checker_refuses_wrong_weights_and_labels() -> None:
    from dataclasses import replace

    graph = gp.Graph.from_edgelist([0, 1], [1, 2], [1, 2])
    forest = gp.minimum_spanning_forest(graph)
    with pytest.raises(VerificationError, match="a weight is not that of the edge"):
        check_minimum_spanning_forest(graph, replace(forest, weights=np.array([2, 2])))
    with pytest.raises(VerificationError, match="a label is not the smallest"):
        check_minimum_spanning_forest(graph, replace(forest, labels=np.array([0, 0, 2])))


@pytest.mark.parametrize("file", ["mtx/jagmesh7.mtx", "snap/as20graph.txt"])
def test_public_graphs(data: Path, file: str) -> None:
    graph = gp.read_graph(data / file)
    check_minimum_spanning_forest(graph, gp.minimum_spanning_forest(graph))


@pytest.mark.parametrize(
    ("weights", "total"),
    [
        ([1.7e308, 1.7e308, 1.0], np.inf),
        ([1.7e308, 1.7e308, -1.7e308, -1.7e308, 1e300], 1e300),
        ([-np.inf, 1.7e308, 1.7e308], -np.inf),
        ([np.inf, -np.inf], np.nan),
    ],
)
def test_totals_beyond_floats(weights: list[float], total: float) -> None:
    src = np.arange(len(weights))
    found = gp.minimum_spanning_forest(gp.Graph.from_edgelist(src, src + 1, weights), device="cpu")
    assert found.total_weight == pytest.approx(total, rel=1e-7, nan_ok=True)

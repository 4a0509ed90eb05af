"""Greedy colouring: the colours of NetworkX in the same order, threads that wait for each other, rejected arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.algorithms import greedy_color as module
from gpu_pregel.algorithms._random_order import random_keys
from gpu_pregel.algorithms.checkers.greedy_color import check_greedy_color
from gpu_pregel.errors import ArgumentError, GraphError, VerificationError
from tests.chunks import shrink_chunks
from tests.graphs import arrays, edge_lists

ORDERS = ("log_degree", "degree", "random")


def networkx_colors(graph: gp.Graph, order: str, seed: int) -> list[int]:
    """The colours that NetworkX finds in the order that the documentation describes."""
    n = graph.num_vertices
    keys = random_keys(n, seed)
    degrees = np.diff(graph.indptr).tolist()
    ranks = {"log_degree": [degree.bit_length() for degree in degrees], "degree": degrees, "random": [0] * n}[order]
    vertices = sorted(range(n), key=lambda v: (-ranks[v], keys[v // 64], v))
    rows = np.repeat(np.arange(n), degrees)
    oracle = networkx.Graph([(u, v) for u, v in zip(rows.tolist(), graph.indices.tolist(), strict=True) if u != v])
    oracle.add_nodes_from(range(n))
    colors = networkx.coloring.greedy_color(oracle, lambda *_: vertices)
    return [colors[v] for v in range(n)]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("n", "edges", "count"),
    [
        (0, [], 0),
        (1, [(0, 0)], 1),
        (3, [(0, 1), (0, 1), (1, 1)], 2),
        (5, [(u, v) for u in range(5) for v in range(u)], 5),
        (6, [(5, v) for v in range(5)], 2),
    ],
    ids=["empty", "self-loop", "repeated edges", "clique", "star"],
)
def test_known_answers(n: int, edges: list[tuple[int, int]], count: int, order: str) -> None:
    graph = gp.Graph.from_edgelist(*arrays(edges), num_vertices=n)
    coloring = gp.greedy_color(graph, order=order)
    assert coloring.count == count
    assert coloring.colors.dtype == np.uint32
    assert coloring.sizes().sum() == n
    check_greedy_color(graph, coloring)


@given(graph=edge_lists(), order=st.sampled_from(ORDERS), seed=st.integers(0, (1 << 64) - 1))
def test_colors_are_those_of_networkx(graph: Any, order: str, seed: int) -> None:
    n, edges = graph
    built = gp.Graph.from_edgelist(*arrays(edges), num_vertices=n)
    coloring = gp.greedy_color(built, order=order, seed=seed, device="cpu")
    assert coloring.colors.tolist() == networkx_colors(built, order, seed)
    check_greedy_color(built, coloring)


@pytest.mark.parametrize("first", [1 << 12, 100])
@pytest.mark.parametrize(
    "build", [lambda: gp.kronecker(10, 8), lambda: gp.grid(40, 30, holes=0), lambda: gp.uniform(8, 40)]
)
def test_threads_wait_for_each_other(build: Any, first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    shrink_chunks(monkeypatch)
    monkeypatch.setattr(module, "_SERIAL_EDGES", 0)
    monkeypatch.setattr(module, "_FIRST", first)
    graph = build()
    expected = networkx_colors(graph, "log_degree", 3)
    for threads in (1, 2, 5):
        assert gp.greedy_color(graph, seed=3, threads=threads).colors.tolist() == expected


def test_many_colors_on_a_device_without_kernels() -> None:
    clique = gp.Graph.from_edgelist(*np.nonzero(~np.eye(70, dtype=bool)), combine="min")
    coloring = gp.greedy_color(clique, device="python")
    assert sorted(coloring.colors.tolist()) == list(range(70))
    assert coloring.colors.tolist() == gp.greedy_color(clique, device="cpu").colors.tolist()


def test_ids_columns_and_summary() -> None:
    coloring = gp.greedy_color(gp.Graph.from_edgelist(["hub"] * 3, ["a", "b", "c"]))
    assert coloring.to_dict() == {"hub": 0, "a": 1, "b": 1, "c": 1}
    assert list(coloring.to_pandas()) == ["vertex", "color"]
    assert coloring.sizes().tolist() == [1, 3]
    assert coloring.summary() == {"colors": 2}
    assert coloring.describe() == "2 colours for 4 vertices"
    assert repr(coloring) == "<Coloring: 2 colours of 4 vertices>"
    assert (coloring.order, coloring.seed) == ("log_degree", 0)


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(ArgumentError, match="order must be 'log_degree', 'degree' or 'random', not 'best'"):
        gp.greedy_color(gp.grid(2), order="best")
    with pytest.raises(ArgumentError, match="seed must be from 0"):
        gp.greedy_color(gp.grid(2), seed=-1)
    with pytest.raises(GraphError, match="needs an undirected graph"):
        gp.greedy_color(gp.Graph.from_edgelist([0], [1], directed=True))


@pytest.mark.parametrize(
    ("colors", "message"),
    [
        ([0, 0, 0], "0 and 1 are neighbours of colour 0"),
        ([0, 2, 0], "vertex 1 has colour 2"),
        ([0, -1, 0], "vertex 1 has no valid colour"),
        ([0.0, 1.0, 0.0], "not integers"),
    ],
)
def test_the_checker_refuses_other_colorings(colors: list[Any], message: str) -> None:
    with pytest.raises(VerificationError, match=message):
        check_greedy_color(gp.Graph.from_edgelist([0], [1], num_vertices=3), colors)


@pytest.mark.parametrize("file", ["mesh/wing.graph", "snap/as20graph.txt"])
def test_public_graphs(data: Path, file: str) -> None:
    graph = gp.read_graph(data / file)
    check_greedy_color(graph, gp.greedy_color(graph))

"""Reading NetworkX's dicts: the fast ways, for plain nodes and numbers, and the general one give the same."""

from __future__ import annotations

from collections import UserDict
from fractions import Fraction
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
import pytest

from gpu_pregel.host.graphs import networkx_adjacency
from gpu_pregel.host.graphs.networkx_adjacency import read_adjacency, read_edge_numbers


class Odd(UserDict[Any, Any]):
    pass


class OddRows(nx.Graph):
    adjlist_inner_dict_factory = Odd


class OddData(nx.Graph):
    edge_attr_dict_factory = Odd


NODES: dict[str, Any] = {
    "numbers from 0": lambda v: v,
    "reversed": lambda v: 100 - v,
    "gaps": lambda v: 3 * v - 50,
    "wide gaps": lambda v: v * 10**6,
    "beyond 64 bits": lambda v: v + 2**70,
    "strings": lambda v: f"node {v}",
    "tuples": lambda v: (v, str(v)),
    "mixed": lambda v: v if v % 2 else str(v),
    "floats": lambda v: v + 0.5,
}
KINDS = [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph, OddRows]


def made(kind: type, node: Any) -> nx.Graph:
    graph = kind()
    graph.add_nodes_from(map(node, range(40)))
    for e in range(150):
        graph.add_edge(node(e * 7 % 39), node((e * e + 3) % 39))
    return graph


@pytest.mark.parametrize("node", NODES.values(), ids=NODES)
@pytest.mark.parametrize("kind", KINDS)
def test_neighbors_are_those_of_networkx_in_its_order(kind: type, node: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(networkx_adjacency, "_BLOCK", 64)  # rows are read in several parts
    graph = made(kind, node)
    number = {node: v for v, node in enumerate(graph)}
    copies = graph.is_multigraph()
    expected = [
        [number[v] for v, data in row.items() for _ in (data if copies else [0])] for row in graph._adj.values()
    ]
    nodes, indptr, neighbors = read_adjacency(graph)
    assert nodes == list(graph)
    assert [neighbors[begin:end].tolist() for begin, end in pairwise(indptr)] == expected


def test_equal_neighbors_of_another_type_are_found() -> None:
    graph = nx.Graph([(0, 1)])
    graph.add_edge(1.0, 2)
    graph.add_edge(True, 3)
    assert read_adjacency(graph).neighbors.tolist() == [1, 0, 2, 3, 1, 1]


@pytest.mark.parametrize("node", [lambda v: v, str])
def test_rows_that_name_no_node_are_an_error(node: Any) -> None:
    graph = nx.Graph()
    graph.add_nodes_from(map(node, range(5)))
    graph._adj[node(0)][node(7)] = {}
    with pytest.raises(KeyError):
        read_adjacency(graph)


def weighted(values: Any, kind: type = nx.Graph) -> nx.Graph:
    graph = kind()
    for e, value in enumerate(values):
        graph.add_edge(e % 7, 100 + e, **({} if value is None else {"cost": value}))
    return graph


def stored(graph: nx.Graph, default: Any) -> list[Any]:
    return [data.get("cost", default) for row in graph._adj.values() for data in row.values()]


@pytest.mark.parametrize(
    ("values", "default"),
    [
        ([3, -1, 0, 2**53, -(2**53)], 1),
        ([0.5, -0.0, 1e300, float("inf"), 5e-324], 1),
        ([None, 2, None], 7),
        ([None, 2.5, None], 7.0),
        ([None, None], 1),
        ([], 1),
        (range(300), 1),
    ],
)
@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph])
def test_numbers_of_one_type_are_read(kind: type, values: Any, default: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(networkx_adjacency, "_BLOCK", 64)
    graph = weighted(values, kind)
    column = read_edge_numbers(graph, "cost", default)
    assert column is not None
    assert list(map(repr, column.tolist())) == list(map(repr, stored(graph, default)))


@pytest.mark.parametrize(
    ("values", "default"),
    [
        ([1, 2.0], 1),
        ([1, 2**53 + 1], 1),
        ([1, -(2**90)], 1),
        ([1.0, float("nan")], 1),
        ([1.0, None], 1),
        ([1, True], 1),
        ([True], 1),
        ([1, np.int64(2)], 1),
        ([1, "2"], 1),
        ([Fraction(1, 2)], 1),
        ([None], None),
    ],
)
def test_other_values_are_left_to_the_caller(values: Any, default: Any) -> None:
    assert read_edge_numbers(weighted(values), "cost", default) is None


def test_what_is_not_plain_is_left_to_the_caller() -> None:
    assert read_edge_numbers(weighted([1, 2], nx.MultiGraph), "cost", 1) is None
    assert read_edge_numbers(weighted([1, 2]), ("cost",), 1) is None
    assert read_edge_numbers(weighted([1, 2], OddRows), "cost", 1) is None
    assert read_edge_numbers(weighted([1, 2], OddData), "cost", 1) is None


class Contrary:
    """A key with the hash of "cost" that refuses comparison."""

    def __hash__(self) -> int:
        return hash("cost")

    def __eq__(self, other: object) -> bool:
        raise ValueError("not comparable")


def test_keys_that_refuse_comparison_are_left_to_the_caller() -> None:
    graph = weighted([1, 2, 3])
    graph[1][101].clear()
    graph[1][101][Contrary()] = 5
    assert read_edge_numbers(graph, "cost", 1) is None


def test_views_are_read_as_the_graphs_that_they_show() -> None:
    graph = weighted(range(30))
    view = graph.subgraph([0, 1, 2, *range(100, 120)])
    copy = nx.Graph(view)
    adjacency = read_adjacency(view)
    assert adjacency.nodes == list(copy)
    assert adjacency.neighbors.tolist() == read_adjacency(copy).neighbors.tolist()
    column, expected = read_edge_numbers(view, "cost", 1), read_edge_numbers(copy, "cost", 1)
    assert column is not None
    assert expected is not None
    assert column.tolist() == expected.tolist()


def test_numbers_are_read_from_dicts_that_lie_anywhere() -> None:
    # Edges are added in an order that is not that of the rows; some dicts are replaced, so that they lie elsewhere.
    graph = nx.gnm_random_graph(300, 3000, seed=1)
    for u, v in sorted(graph.edges, key=lambda edge: edge[0] * 7919 % 301 + edge[1]):
        graph.add_edge(u, v, cost=u * 1000 + v)
    kept: list[Any] = []
    for u, v in list(graph.edges)[::7]:
        kept.append([{} for _ in range(50)])
        graph.remove_edge(u, v)
        graph.add_edge(u, v, cost=-u)
    column = read_edge_numbers(graph, "cost", 1)
    assert column is not None
    assert column.tolist() == stored(graph, 1)

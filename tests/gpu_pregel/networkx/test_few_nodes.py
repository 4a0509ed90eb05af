"""Calls that read a few rows of a large graph are handed over, and asking whether they are takes no time."""

from __future__ import annotations

import inspect
from typing import Any

import networkx as nx
import pytest

from gpu_pregel.networkx import FUNCTIONS
from gpu_pregel.networkx.backend import backend
from gpu_pregel.networkx.few_nodes import _CHOSEN, _DEPTHS, measured_as, reads_few_nodes
from gpu_pregel.networkx.sizes import NEVER, SIZES


@pytest.mark.parametrize("name", [*_CHOSEN, *_DEPTHS])
def test_arguments_are_where_networkx_has_them(name: str) -> None:
    argument, position = (_CHOSEN.get(name) or _DEPTHS[name])[:2]
    parameters = list(inspect.signature(FUNCTIONS[name].original()).parameters)
    assert (parameters[0], parameters.index(argument)) == ("G", position)


@pytest.fixture(scope="module")
def large() -> nx.Graph:
    return nx.cycle_graph(60_000)


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "reason"),
    [
        ("volume", ([1, 2],), {}, "S has 2 of 60,000 nodes"),
        ("cut_size", (range(50_000),), {}, None),
        ("triangles", (5,), {}, "nodes has 1 of 60,000 nodes"),
        ("triangles", (), {}, None),
        ("edge_boundary", (iter([1]),), {}, None),
        ("adamic_adar_index", (), {"ebunch": [(0, 2)]}, "ebunch has 1 of 60,000 nodes"),
        ("reciprocity", (), {"nodes": "absent"}, "nodes has 6 of 60,000 nodes"),
        ("single_source_shortest_path_length", (0, 1), {}, "cutoff is 1"),
        ("bfs_edges", (0,), {"depth_limit": 100}, None),
        ("bfs_layers", (0,), {}, "the graph is not converted"),
        ("pagerank", (), {}, None),
    ],
)
def test_a_call_for_few_nodes_is_handed_over(
    large: nx.Graph, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], reason: str | None
) -> None:
    assert reads_few_nodes(name, (large, *args), kwargs) == reason
    if reason is not None:
        assert backend.should_run(name, (large, *args), kwargs) == reason


def test_more_nodes_are_few_in_a_graph_that_is_not_converted(large: nx.Graph) -> None:
    graph = large.copy()
    assert reads_few_nodes("cut_size", (graph, range(2_000)), {}) == "S has 2,000 of 60,000 nodes"
    nx.is_connected(graph, backend="gpu_pregel")
    assert reads_few_nodes("cut_size", (graph, range(2_000)), {}) is None


def test_a_node_is_few_in_a_small_graph() -> None:
    graph = nx.cycle_graph(300)
    nx.is_connected(graph, backend="gpu_pregel")
    assert reads_few_nodes("clustering", (graph, 5), {}) == "nodes has 1 of 300 nodes"
    assert reads_few_nodes("clustering", (graph, range(9)), {}) is None


@pytest.mark.parametrize(
    ("args", "kwargs", "measured"),
    [
        ((0, 5), {}, "bidirectional_shortest_path"),
        ((0, 5), {"weight": "w"}, "bidirectional_dijkstra"),
        ((0, 5, "w", "bellman-ford"), {}, "shortest_path"),
        ((0,), {}, "shortest_path"),
        ((), {"target": 5}, "shortest_path"),
    ],
)
def test_a_search_between_two_nodes_has_a_size_of_its_own(
    large: nx.Graph, args: tuple[Any, ...], kwargs: dict[str, Any], measured: str
) -> None:
    assert measured_as("shortest_path", (large, *args), kwargs) == measured


def test_edges_are_not_counted_where_the_answer_is_known(large: nx.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    class Uncounted(dict[Any, Any]):
        def values(self) -> Any:
            raise AssertionError("edges are counted")

    graph = large.copy()
    graph._adj = Uncounted(graph._adj)
    every = "NetworkX is faster at graphs of every size"
    monkeypatch.setitem(SIZES, "is_regular", (NEVER, NEVER))
    monkeypatch.setitem(SIZES, "has_path", (10, NEVER))
    assert backend.should_run("is_regular", (graph,), {}) == every
    assert backend.should_run("has_path", (graph, 0, 1), {}) == f"{every} that are not converted"

"""Calls that read a few rows of a large graph are handed over, and asking whether they are takes no time."""

from __future__ import annotations

import inspect
from typing import Any

import networkx as nx
import pytest

from gpu_pregel.networkx import FUNCTIONS
from gpu_pregel.networkx.backend import backend
from gpu_pregel.networkx.few_nodes import _CHOSEN, _DEPTHS


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
        ("shortest_path", (0, 5), {}, "NetworkX is faster at graphs of every size that are not converted"),
        (
            "shortest_path_length",
            (0, 5),
            {"weight": "w"},
            "NetworkX is faster at graphs of every size that are not converted",
        ),
        ("shortest_path_length", (0, 5), {"weight": "w", "method": "bellman-ford"}, None),
        ("shortest_path", (0,), {}, None),
        ("descendants_at_distance", (0, 1), {}, "NetworkX is faster at graphs of every size"),
        ("has_path", (0, 1), {}, "NetworkX is faster at graphs of every size that are not converted"),
    ],
)
def test_a_call_for_few_nodes_is_handed_over(
    large: nx.Graph, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], reason: str | None
) -> None:
    assert backend.should_run(name, (large, *args), kwargs) == (reason or True)


def test_the_nodes_of_a_converted_graph_are_worth_less(large: nx.Graph) -> None:
    graph = large.copy()
    assert backend.should_run("cut_size", (graph, range(2_000)), {}) == "S has 2,000 of 60,000 nodes"
    nx.is_connected(graph, backend="gpu_pregel")
    assert backend.should_run("cut_size", (graph, range(2_000)), {}) is True


def test_edges_are_not_counted_where_the_answer_is_known(large: nx.Graph) -> None:
    class Uncounted(dict[Any, Any]):
        def values(self) -> Any:
            raise AssertionError("edges are counted")

    graph = large.copy()
    graph._adj = Uncounted(graph._adj)
    assert isinstance(backend.should_run("is_regular", (graph,), {}), str)


def test_a_node_is_few_in_a_small_graph() -> None:
    graph = nx.cycle_graph(300)
    nx.is_connected(graph, backend="gpu_pregel")
    assert backend.should_run("clustering", (graph, 5), {}) == "nodes has 1 of 300 nodes"
    assert backend.should_run("clustering", (graph, range(9)), {}) is True

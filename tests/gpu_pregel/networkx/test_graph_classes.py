"""Graphs of classes of users, and views of graphs of another kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import networkx as nx
import pytest

import gpu_pregel as gp
from gpu_pregel.networkx.backend import backend

GRAPHS_AS_RESULTS: dict[str, Callable[..., Any]] = {
    "k_core": nx.k_core,
    "k_shell": nx.k_shell,
    "k_crust": nx.k_crust,
    "k_corona": lambda graph, **options: nx.k_corona(graph, 1, **options),
    "k_truss": lambda graph, **options: nx.k_truss(graph, 2, **options),
    "minimum_spanning_tree": nx.minimum_spanning_tree,
    "maximum_spanning_tree": nx.maximum_spanning_tree,
}


class Roads(nx.Graph):
    """A class of a user."""


@pytest.mark.parametrize("name", GRAPHS_AS_RESULTS)
def test_a_function_whose_result_has_the_class_of_a_user_is_left_to_networkx(name: str) -> None:
    call = GRAPHS_AS_RESULTS[name]
    with pytest.raises(NotImplementedError, match="for the given arguments"):
        call(Roads(nx.path_graph(3)), backend="gpu_pregel")
    own = gp.networkx.Graph(gp.Graph.from_edgelist([0, 1], [1, 2]))
    assert type(call(own)) is type(call(nx.path_graph(3), backend="gpu_pregel")) is nx.Graph


class Hidden(nx.DiGraph):
    """A class that hides some of its edges from those who ask for all."""

    @property
    def edges(self) -> Any:
        return nx.DiGraph([(0, 1)]).edges

    def predecessors(self, n: Any) -> Any:
        return iter(())


class Loud(nx.MultiDiGraph):
    """A class that changes nothing of what is read."""

    def add_node(self, node_for_adding: Any, **attr: Any) -> None:
        super().add_node(node_for_adding, loud=True, **attr)


def test_classes_that_override_what_is_read_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="Hidden overrides edges"):
        backend.convert_from_nx(Hidden([(0, 1), (1, 2)]))
    assert nx.number_weakly_connected_components(Loud([(0, 1), (2, 3)]), backend="gpu_pregel") == 2


def test_weights_of_an_undirected_view_that_differ_by_direction_are_refused() -> None:
    graph = nx.DiGraph([(0, 1, {"weight": 1}), (1, 0, {"weight": 5}), (1, 2, {"weight": 2})])
    view = graph.to_undirected(as_view=True)
    for one in (view, view.subgraph([0, 1])):
        with pytest.raises(NotImplementedError, match="both directions of an edge of an undirected view"):
            backend.convert_from_nx(one, edge_attrs={"weight": 1})
    assert nx.is_connected(view, backend="gpu_pregel")
    assert nx.degree_centrality(graph.to_directed(as_view=True), backend="gpu_pregel") == nx.degree_centrality(graph)


@pytest.mark.parametrize("k", [6, 300])
def test_a_view_of_edges_from_one_end_is_left_to_networkx(k: int) -> None:
    graph = nx.complete_graph(k)
    graph.add_edge(1, k)
    one_way = nx.subgraph_view(graph, filter_edge=lambda u, v: not (u == 1 and v == k))
    with pytest.raises(NotImplementedError, match="one of its ends"):
        backend.convert_from_nx(one_way)
    both_ways = nx.subgraph_view(graph, filter_edge=lambda u, v: {u, v} != {1, k})
    assert nx.number_connected_components(both_ways, backend="gpu_pregel") == 2


def test_a_graph_that_refers_to_itself_is_counted_once() -> None:
    class Own(nx.Graph):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self._graph = self

    graph = Own()
    nx.add_path(graph, range(50))
    assert "148" in str(backend.should_run("is_connected", (graph,), {}))

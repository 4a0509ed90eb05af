"""Converted graphs that NetworkX keeps: what copies, pickles, views and changed attributes see of them."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import networkx as nx
import pytest

import gpu_pregel as gp
from gpu_pregel.networkx.backend import backend
from gpu_pregel.networkx.hand_over import conversion_of
from gpu_pregel.networkx.rows import weighted_rows

pytestmark = pytest.mark.filterwarnings("ignore:Note. conversions to backend graphs are saved to cache")


def _pickled(graph: Any) -> Any:
    return pickle.loads(pickle.dumps(graph))


@pytest.mark.parametrize("duplicate", [copy.deepcopy, _pickled])
@pytest.mark.parametrize("directed", [False, True])
def test_a_graph_that_has_been_converted_can_be_copied_and_pickled(
    duplicate: Callable[[Any], Any], directed: bool
) -> None:
    graph = nx.gnp_random_graph(12, 0.4, seed=3, directed=directed)
    nx.pagerank(graph, backend="gpu_pregel")
    other = duplicate(graph)
    # In-edges of the copy are no longer read from the graph, which has changed.
    expected = list(nx.bfs_edges(graph, 5, reverse=True))
    graph.clear_edges()
    assert list(nx.bfs_edges(other, 5, reverse=True, backend="gpu_pregel")) == expected
    other.remove_node(5)
    assert nx.degree_centrality(other, backend="gpu_pregel") == nx.degree_centrality(other)


def test_a_graph_of_this_package_can_be_pickled() -> None:
    graph = gp.networkx.Graph(gp.Graph.from_edgelist(["a", "b"], ["b", "c"], [1.5, 2.0]))
    nx.pagerank(graph)
    assert nx.dijkstra_path_length(_pickled(graph), "a", "c") == 3.5


def _all_but_last(graph: Any) -> Any:
    return graph.subgraph(list(graph)[:-1])


@pytest.mark.parametrize("make", [_all_but_last, nx.reverse_view, lambda graph: graph.to_undirected(as_view=True)])
def test_a_view_follows_its_graph(make: Callable[[Any], Any]) -> None:
    graph = nx.path_graph(8, create_using=nx.DiGraph)
    view = make(graph)
    assert nx.has_path(view, 5, 2, backend="gpu_pregel") == nx.has_path(view, 5, 2)
    graph.remove_edge(3, 4)
    graph.add_edge(6, 0)
    assert nx.has_path(view, 5, 2, backend="gpu_pregel") == nx.has_path(view, 5, 2)
    assert nx.degree_centrality(view, backend="gpu_pregel") == nx.degree_centrality(view)


def test_attributes_of_the_graph_are_those_of_the_time_of_the_call() -> None:
    graph = nx.complete_graph(4)
    nx.k_core(graph, backend="gpu_pregel")
    graph.graph["name"] = "complete"
    assert nx.k_core(graph, backend="gpu_pregel").graph == {"name": "complete"}


def test_attributes_of_a_graph_whose_names_are_no_strings_convert_back() -> None:
    graph = nx.Graph()
    graph.graph[1] = "one"
    assert backend.convert_to_nx(backend.convert_from_nx(graph, preserve_graph_attrs=True)).graph == {1: "one"}


def test_missing_weights_get_the_default_of_each_call_of_a_conversion_with_all_attributes() -> None:
    graph = nx.DiGraph([(0, 1, {"weight": 5}), (1, 2)])
    nx.k_core(graph, k=1, backend="gpu_pregel")
    lengths = [nx.dag_longest_path_length(graph, default_weight=d, backend="gpu_pregel") for d in (1, 3, 0)]
    assert lengths == [6, 8, 5]


def test_weighted_rows_are_kept_by_attribute_and_direction() -> None:
    graph = nx.DiGraph([(0, 1, {"a": 3, "b": 1.5}), (1, 2, {"a": 4, "b": 2})])
    converted = backend.convert_from_nx(graph, edge_attrs={"a": 1, "b": 1})
    rows = weighted_rows(converted, "a")
    assert (rows.weights.tolist(), rows.integers, rows.buckets) == ([3, 4], True, 64)
    assert weighted_rows(converted, "a") is rows
    backwards = weighted_rows(converted, "a", reverse=True)
    assert (backwards.indptr.tolist(), backwards.weights.tolist()) == ([0, 0, 1, 2], [3, 4])
    assert weighted_rows(converted, None).weights.tolist() == [1, 1]
    # An integer among floats is taken by some functions only.
    assert weighted_rows(converted, "b", mixed=True).buckets == 0
    with pytest.raises(NotImplementedError, match="different types"):
        weighted_rows(converted, "b")


def test_a_conversion_may_be_kept_while_another_thread_asks() -> None:
    graph = nx.path_graph(3)
    nx.is_connected(graph, backend="gpu_pregel")
    kept = graph.__networkx_cache__["backends"]["gpu_pregel"]
    conversion = next(iter(kept.values()))

    class Failed:
        def __getattr__(self, name: str) -> Any:
            kept["another"] = conversion
            raise AttributeError(name)

    kept.clear()
    kept["failed"] = Failed()
    assert conversion_of(graph) is None
    assert conversion_of(graph) is conversion

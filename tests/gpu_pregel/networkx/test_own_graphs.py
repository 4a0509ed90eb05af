"""Functions of communities, trees and bipartite graphs on graphs of this package, whose arrays cannot be written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import networkx as nx
import pytest

import gpu_pregel as gp

CALLS: dict[str, Callable[[Any], Any]] = {
    "louvain": lambda graph: nx.community.louvain_communities(graph, seed=1),
    "propagation": lambda graph: list(nx.community.fast_label_propagation_communities(graph, seed=1)),
    "merging": nx.community.greedy_modularity_communities,
    "spanning edges": lambda graph: list(nx.minimum_spanning_edges(graph)),
    "spanning tree": lambda graph: list(nx.minimum_spanning_tree(graph).edges(data=True)),
    "colors": nx.greedy_color,
    "sides": nx.bipartite.color,
    "matching": nx.bipartite.hopcroft_karp_matching,
    "projection": lambda graph: list(nx.bipartite.weighted_projected_graph(graph, [0, 2]).edges(data=True)),
    "redundancy": lambda graph: nx.bipartite.node_redundancy(graph, [0, 5]),
    "independent set": lambda graph: nx.maximal_independent_set(graph, seed=1),
    "all distances": nx.floyd_warshall,
    "boundary": lambda graph: list(nx.edge_boundary(graph, [0, 1], data=True)),
}


@pytest.mark.parametrize("name", CALLS)
def test_function_of_own_graph_returns_what_networkx_returns(name: str) -> None:
    edges = [(0, 1), (0, 3), (1, 2), (2, 3), (2, 5), (3, 4), (4, 5)]
    graph = gp.networkx.Graph(gp.Graph.from_edgelist(*map(list, zip(*edges, strict=True))))
    theirs = nx.empty_graph(6)
    theirs.add_edges_from(edges)
    with nx.config(fallback_to_nx=False):
        assert CALLS[name](graph) == CALLS[name](theirs)


def test_generated_graph_is_known_in_converted_form_until_it_changes() -> None:
    graph = nx.gnm_random_graph(20, 30, seed=1, backend="gpu_pregel")
    u, v = next(iter(graph.edges))
    assert graph[u][v] is graph[v][u]
    assert "gpu_pregel" in graph.__networkx_cache__["backends"]
    for *_, data in graph.edges(data=True):
        data["weight"] = len(data) + 2
    lengths = [nx.shortest_path_length(graph, u, weight="weight", backend=name) for name in ("gpu_pregel", "networkx")]
    assert lengths[0] == lengths[1]
    # NetworkX warns when a cached conversion is used for the first time.
    with nx.config(warnings_to_ignore={"cache"}):
        assert nx.number_connected_components(graph, backend="gpu_pregel") == nx.number_connected_components(graph)
        graph.add_edge("new", "other")
        assert nx.number_connected_components(graph, backend="gpu_pregel") == nx.number_connected_components(graph)


@pytest.mark.parametrize("use", [lambda graph: graph.edges, lambda graph: list(nx.generate_edgelist(graph))])
def test_attributes_that_own_graphs_lack_are_explained(use: Callable[[Any], Any]) -> None:
    graph = gp.networkx.Graph(gp.Graph.from_edgelist([0], [1]))
    with pytest.raises(AttributeError, match=r"gp.networkx.Graph has no 'edges': .* to_networkx\(\) of the gpu_pregel"):
        use(graph)

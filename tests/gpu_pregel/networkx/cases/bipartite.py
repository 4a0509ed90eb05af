"""Calls of functions of bipartite graphs."""

from __future__ import annotations

from typing import Any

import networkx as nx

from tests.gpu_pregel.networkx.comparison import Case, call


def _side(graph: nx.Graph) -> list[Any]:
    """Return one side of a bipartite graph, and every second node of another one."""
    if nx.is_bipartite(graph):
        return [node for node, side in nx.bipartite.color(graph).items() if side]
    return list(graph)[::2]


def _of_side(*extra: Any, **options: Any) -> Case:
    return Case(lambda graph: ((graph, _side(graph), *extra), options))


_ABSENT = Case(lambda graph: ((graph, [*_side(graph), "absent"]), {}))
_HALF = Case(lambda graph: ((graph, list(graph)[::2]), {}))
_ALL = Case(lambda graph: ((graph, list(graph)), {}))


def _isolates_between(kind: Any) -> Case:
    """Return a graph of which each component follows an isolated node; edges lead to the first of its nodes."""
    graph = kind()
    graph.add_nodes_from(range(7))
    graph.add_edges_from([(2, 1), (5, 4), (6, 5)])
    return Case(lambda _: ((graph,), {}), graphs=("empty",))


CASES: dict[str, list[Case]] = {
    "color": [call(), _isolates_between(nx.Graph), _isolates_between(nx.DiGraph)],
    "is_bipartite": [call()],
    "sets": [call(), _of_side()],
    "is_bipartite_node_set": [_of_side(), _HALF, _ABSENT, Case(lambda graph: ((graph, list(graph) * 2), {}))],
    "bipartite_degree_centrality": [_of_side(), _ABSENT, _ALL],
    "bipartite_betweenness_centrality": [_of_side(), _ABSENT, _ALL],
    "bipartite_closeness_centrality": [_of_side(), _of_side(normalized=False), _ABSENT, _ALL],
    "latapy_clustering": [call(), _of_side("max"), call(mode="min"), _ABSENT, call(mode="other")],
    "bipartite_average_clustering": [call(), _of_side(mode="min")],
    "robins_alexander_clustering": [call()],
    "hopcroft_karp_matching": [call(), _of_side(), _ABSENT, _HALF],
}

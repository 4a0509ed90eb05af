"""Calls of shortest paths by weight."""

from __future__ import annotations

from typing import Any

import networkx as nx

from tests.gpu_pregel.networkx.cases.nodes import at, between, from_first, from_last
from tests.gpu_pregel.networkx.comparison import Arguments, Case, call


def _with_negative_edge(graph: nx.Graph) -> nx.Graph:
    for *_, data in list(graph.edges(data=True))[1:2]:
        data["weight"] = -2
    return graph


def negative(*places: int, **options: Any) -> Case:
    """Return the case that passes nodes of a graph with an edge of negative weight."""

    def arguments(graph: nx.Graph) -> Arguments | None:
        nodes = list(graph)
        return (_with_negative_edge(graph), *(nodes[place] for place in places)), options

    return Case(arguments, graphs=("complete", "grid", "dense directed", "acyclic", "multigraph"))


def sources(*places: int, **options: Any) -> Case:
    """Return the case that passes the graph and a list of nodes."""

    def arguments(graph: nx.Graph) -> Arguments | None:
        nodes = list(graph)
        return (graph, [nodes[place % len(nodes)] for place in places]), options

    return Case(lambda graph: arguments(graph) if len(graph) else None)


_OPTIONS: tuple[dict[str, Any], ...] = ({}, {"cutoff": 3}, {"weight": "cost"}, {"weight": None}, {"cutoff": 2.5})
_FROM_NODE = [*(from_first(**options) for options in _OPTIONS), from_last(), call("absent"), negative(0)]
_SEVERAL = [sources(1, 0, 2), sources(-1, 3, -1, cutoff=3), sources(2, weight="cost"), call([]), call(["absent"])]
_PAIRS = [
    *(between(i, k) for i, k in ((0, -1), (1, 2), (-1, 0), (3, 3))),
    between(2, -2, weight="cost"),
    between(1, -1, weight=None),
    call("absent", "missing"),
    from_first(target="missing"),
    negative(0, -1),
]
_ALL_PAIRS = [call(weight="cost"), call(cutoff=4)]

CASES: dict[str, list[Case]] = {
    "all_pairs_dijkstra": _ALL_PAIRS,
    "all_pairs_dijkstra_path": _ALL_PAIRS,
    "all_pairs_dijkstra_path_length": _ALL_PAIRS,
    "bidirectional_dijkstra": _PAIRS,
    "dijkstra_path": _PAIRS,
    "dijkstra_path_length": _PAIRS,
    "dijkstra_predecessor_and_distance": _FROM_NODE,
    "multi_source_dijkstra": [*_SEVERAL, sources(0, 1, target="absent"), sources(0, 1, cutoff=1)],
    "multi_source_dijkstra_path": _SEVERAL,
    "multi_source_dijkstra_path_length": _SEVERAL,
    "single_source_dijkstra": [*_FROM_NODE, at(0, -1), at(0, 0), at(1, 2, cutoff=2), from_first(target="absent")],
    "single_source_dijkstra_path": _FROM_NODE,
    "single_source_dijkstra_path_length": _FROM_NODE,
}

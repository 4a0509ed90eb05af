"""Calls of shortest paths by the method that is asked for."""

from __future__ import annotations

from typing import Any

import networkx as nx

from tests.gpu_pregel.networkx.cases.nodes import at, between
from tests.gpu_pregel.networkx.cases.weighted_paths import negative
from tests.gpu_pregel.networkx.comparison import Arguments, Case, call

_METHODS: tuple[dict[str, Any], ...] = (
    {},
    {"weight": "weight"},
    {"weight": "cost", "method": "bellman-ford"},
    {"method": "bellman-ford"},
    {"weight": "weight", "method": "fastest"},
)
_GRAPHS = ("empty", "loop", "karate", "some weights", "view", "multigraph", "directed", "acyclic", "mixed nodes")


def _to_last(**options: Any) -> Case:
    return Case(lambda graph: ((graph, None, list(graph)[-1]), options) if len(graph) else None, graphs=_GRAPHS)


def _with_free_edges(*places: int, **options: Any) -> Case:
    """Return the case of a graph some of whose edges weigh 0, so that paths return to where they began."""

    def arguments(graph: nx.Graph) -> Arguments | None:
        for i, (*_, data) in enumerate(graph.edges(data=True)):
            data["weight"] = 0 if i % 3 else 1
        nodes = list(graph)
        return (graph, *(nodes[place] for place in places)), options

    return Case(arguments, graphs=("path", "cycle", "directed cycle", "complete"))


_QUERIES = [
    *(call(**options) for options in ({}, {"weight": "cost"}, {"weight": "weight", "method": "bellman-ford"})),
    *(at(0, **options) for options in _METHODS),
    *(_to_last(**options) for options in _METHODS),
    *(between(0, -1, **options) for options in _METHODS),
    between(1, 1, graphs=_GRAPHS),
    call("absent"),
    call(target="absent"),
    call("absent", "missing"),
    call(target="absent", weight="weight"),
    call(target="absent", weight="weight", method="bellman-ford"),
    negative(-1, weight="weight"),
]
_ALL_PATHS = [*(at(0, **options, graphs=_GRAPHS) for options in _METHODS), call("absent")]

CASES: dict[str, list[Case]] = {
    "all_pairs_all_shortest_paths": [
        call(),
        Case(lambda graph: ((graph,), {"weight": "cost"}), graphs=_GRAPHS),
        Case(lambda graph: ((graph,), {"weight": "weight", "method": "fastest"}), graphs=_GRAPHS),
        _with_free_edges(weight="weight"),
    ],
    "all_shortest_paths": [
        *(between(0, -1, **options) for options in _METHODS),
        between(2, 1),
        call("absent", "missing"),
        at(0, target="absent"),
        _with_free_edges(0, 2, weight="weight"),
        _with_free_edges(0, 0, weight="weight"),
    ],
    "average_shortest_path_length": [
        *(call(**options) for options in _METHODS),
        call(weight="weight", method="dijkstra"),
        call(weight="weight", method="bellman-ford"),
        *(call(weight="weight", method=f"floyd-warshall{suffix}") for suffix in ("", "-numpy")),
        call(method="unweighted", weight="weight"),
        *(negative(weight="weight", method=method) for method in ("dijkstra", "bellman-ford")),
    ],
    "has_path": [between(0, -1), between(-1, 0), between(1, 1), call("absent", "missing"), at(0, target="absent")],
    "shortest_path": _QUERIES,
    "shortest_path_length": _QUERIES,
    "single_source_all_shortest_paths": [*_ALL_PATHS, _with_free_edges(0, weight="weight")],
}

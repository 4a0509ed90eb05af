"""Calls of directed acyclic graphs, ancestors and descendants, and dominators."""

from __future__ import annotations

from typing import Any

import networkx as nx

from tests.gpu_pregel.networkx.comparison import Arguments, Case, call


def _of_last(graph: Any) -> Arguments | None:
    return ((graph, list(graph)[-1]), {}) if len(graph) else None


def _of_first(graph: Any) -> Arguments | None:
    return ((graph, next(iter(graph))), {}) if len(graph) else None


def _acyclic(**options: Any) -> Case:
    """Keep the edges of every graph that lead to later nodes."""

    def arguments(graph: Any) -> Arguments:
        places = {node: i for i, node in enumerate(graph)}
        acyclic = (nx.MultiDiGraph if graph.is_multigraph() else nx.DiGraph)()
        acyclic.add_nodes_from(graph)
        edges = [(u, v, data) for u, v, data in graph.edges(data=True) if u != v]
        acyclic.add_edges_from((u, v, data) if places[u] < places[v] else (v, u, data) for u, v, data in edges)
        return (acyclic,), options

    return Case(arguments)


def _pair(first: int, second: int, **options: Any) -> Case:
    """Pass two nodes of an acyclic graph, by their places."""

    def arguments(graph: Any) -> Arguments | None:
        nodes = list(graph)
        if len(nodes) < 2:
            return None
        (acyclic,), _ = _acyclic().arguments(graph) or ((graph,), {})
        return (acyclic, nodes[first % len(nodes)], nodes[second % len(nodes)]), options

    return Case(arguments)


def _negative(_: Any) -> Arguments:
    """Return a graph whose longest path does not begin at a node without edges to it."""
    graph = nx.DiGraph()
    graph.add_weighted_edges_from([("a", "b", -2), ("b", "c", 5), ("c", "d", -1)])
    return (graph,), {}


_LONGEST = [
    call(),
    _acyclic(),
    _acyclic(weight="cost"),
    _acyclic(weight=None, default_weight=2),
    _acyclic(weight="absent", default_weight=0.5),
    Case(_negative, graphs=("empty",)),
]

CASES: dict[str, list[Case]] = {
    "ancestors": [Case(_of_last), Case(_of_first), call("absent")],
    "descendants": [Case(_of_last), Case(_of_first), call("absent")],
    "lowest_common_ancestor": [
        *(_pair(first, second, default="none") for first, second in ((-1, -2), (-3, 7), (2, 2))),
        _pair(0, -1),
        call("absent", "other"),
    ],
    "has_cycle": [call(), _acyclic()],
    "is_directed_acyclic_graph": [call(), _acyclic()],
    "topological_generations": [call(), _acyclic()],
    "topological_sort": [call(), _acyclic()],
    "lexicographical_topological_sort": [
        call(),
        _acyclic(),
        _acyclic(key=str),
        _acyclic(key=lambda node: -len(f"{node}")),
    ],
    "dag_longest_path": _LONGEST,
    "dag_longest_path_length": _LONGEST,
    "is_aperiodic": [call(), Case(lambda graph: ((graph.to_directed(),), {}))],
    "transitive_reduction": [call(), _acyclic()],
    "dominance_frontiers": [Case(_of_last), Case(_of_first), call("absent")],
    "immediate_dominators": [Case(_of_last), Case(_of_first), call("absent")],
}

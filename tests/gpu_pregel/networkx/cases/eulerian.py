"""Calls of Eulerian graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import networkx as nx

from tests.gpu_pregel.networkx.comparison import Arguments, Case, call


def _made(make: Callable[[], Any], *extra: Any) -> Case:
    """Return a call on another graph, which is made anew."""
    return Case(lambda _: ((make(), *extra), {}), graphs=("empty",))


def _from(place: int) -> Case:
    return Case(lambda graph: ((graph, list(graph)[place]), {}) if len(graph) else None)


def _directed_path() -> Any:
    return nx.path_graph(4, create_using=nx.DiGraph)


_CIRCUITS = [
    _made(lambda: nx.complete_graph(5)),
    _made(lambda: nx.MultiDiGraph([(1, 2), (2, 1), (1, 2), (2, 1)])),
    # Two starts and two ends.
    _made(lambda: nx.DiGraph([(1, 2), (2, 3), (4, 2), (2, 5)])),
]
_PATHS = [_from(0), _from(-1), *(_made(_directed_path, source) for source in (0, 3, None))]


def _of_circuits(graph: Any) -> Arguments | None:
    """Add a node next to each node of odd degree, which makes the largest component Eulerian."""
    if graph.is_multigraph() or graph.number_of_edges() == 0:
        return None
    if graph.is_directed():
        return (nx.Graph(graph).to_directed().subgraph(max(nx.weakly_connected_components(graph), key=len)).copy(),), {}
    graph = graph.subgraph(max(nx.connected_components(graph), key=len)).copy()
    graph.add_edges_from([("even", node) for node, degree in list(graph.degree) if degree % 2])
    return (graph,), {}


def _of_paths(*place: int) -> Case:
    """Remove an edge of an Eulerian graph."""

    def arguments(graph: Any) -> Arguments | None:
        if (found := _of_circuits(graph)) is None:
            return None
        eulerian = found[0][0]
        ends = list(eulerian.edges)[-1]
        eulerian.remove_edge(*ends)
        return (eulerian, *(ends[i] for i in place)), {}

    return Case(arguments)


CASES: dict[str, list[Case]] = {
    "is_eulerian": [call(), *_CIRCUITS],
    "has_eulerian_path": [call(), *_CIRCUITS, *_PATHS, call("absent")],
    "is_semieulerian": [call(), *_CIRCUITS],
    "eulerian_circuit": [call(), *_CIRCUITS, Case(_of_circuits), call("absent")],
    "eulerian_path": [call(), *_CIRCUITS, Case(_of_circuits), _of_paths(), _of_paths(0), _of_paths(1), *_PATHS],
}

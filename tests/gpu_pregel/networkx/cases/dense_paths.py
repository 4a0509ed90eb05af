"""Calls of the Floyd-Warshall algorithm."""

from __future__ import annotations

import networkx as nx

from tests.gpu_pregel.networkx.cases.bellman_ford import lowered
from tests.gpu_pregel.networkx.comparison import Arguments, Case, call

_ALL = [
    call(),
    call(weight="cost"),
    call(weight=None),
    lowered(cycle=False),
    lowered(cycle=True, graphs=("acyclic", "directed cycle")),
]


def _reversed(graph: nx.Graph) -> Arguments:
    return (graph, list(graph)[::-1]), {}


CASES: dict[str, list[Case]] = {
    "floyd_warshall": _ALL,
    "floyd_warshall_numpy": [
        *_ALL,
        Case(_reversed),
        call(["absent"]),
        Case(lambda graph: ((graph, [*list(graph)[:-1], "absent"]), {}) if len(graph) else None),
    ],
    "floyd_warshall_predecessor_and_distance": _ALL,
}

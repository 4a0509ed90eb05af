"""Calls of projections of bipartite graphs and of the redundancy of nodes."""

from __future__ import annotations

from tests.gpu_pregel.networkx.cases.bipartite import _side
from tests.gpu_pregel.networkx.comparison import Arguments, Case, call


def _inner(graph: object) -> Arguments:
    """Pass the nodes that have more than one neighbour."""
    return (graph, [node for node in graph if len(graph[node]) > 1]), {}  # type: ignore[attr-defined, index]


_ONTO = [
    Case(lambda graph: ((graph, _side(graph)), {})),
    Case(lambda graph: ((graph, set(list(graph)[::2])), {})),
    Case(lambda graph: ((graph, [*list(graph)[:2], "absent"]), {})),
    Case(lambda graph: ((graph, list(graph)), {})),
]

CASES: dict[str, list[Case]] = {
    "projected_graph": _ONTO,
    "weighted_projected_graph": [*_ONTO, Case(lambda graph: ((graph, _side(graph), True), {}))],
    "node_redundancy": [call(), Case(_inner), call(["absent"])],
}

"""Calls of matchings."""

from __future__ import annotations

from typing import Any

import networkx as nx

from tests.gpu_pregel.networkx.comparison import Case, call


def _edges(graph: nx.Graph, count: int | None) -> list[Any]:
    """Return the first edges of a maximal matching."""
    return sorted(nx.maximal_matching(nx.Graph(graph)), key=repr)[:count]


def _of_edges(count: int | None, *more: Any) -> Case:
    return Case(lambda graph: ((graph, [*_edges(graph, count), *more]), {}))


CASES: dict[str, list[Case]] = {
    "maximal_matching": [call()],
    "is_maximal_matching": [
        _of_edges(None),
        _of_edges(1),
        _of_edges(0),
        _of_edges(1, ("absent", 0)),
        _of_edges(1, (1, 2, 3)),
        Case(lambda graph: ((graph, {u: v for edge in _edges(graph, None) for u, v in (edge, edge[::-1])}), {})),
        Case(lambda graph: ((graph, {u: u for u in graph}), {})),
        Case(lambda graph: ((graph, list(graph.edges())), {}), graphs=("path", "complete", "star", "edge")),
    ],
}

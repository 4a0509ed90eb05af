"""Calls of PageRank and HITS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import networkx as nx

from tests.gpu_pregel.networkx.comparison import Case, call


def _by_node(**values: Callable[[int], Any]) -> Case:
    """Return the case that passes dicts from every second node to the values."""
    return Case(
        lambda graph: (
            (graph,),
            {name: {node: value(i) for i, node in enumerate(graph) if i % 2} for name, value in values.items()},
        )
    )


def _reversed_nodes(graph: nx.Graph) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return (graph,), {"nodelist": list(graph)[::-1], "alpha": 0.6}


# Of bipartite graphs, the vector of the largest singular value is not unique.
_CONNECTED = ("karate", "random", "complete", "loops", "directed", "dense directed", "directed view")

CASES: dict[str, list[Case]] = {
    "pagerank": [
        call(),
        call(weight=None, alpha=0.5),
        call(weight="cost", tol=1e-9, max_iter=200),
        call(max_iter=3),
        call(max_iter=0),
        call(alpha=1.0, max_iter=5),
        _by_node(personalization=lambda i: i),
        _by_node(personalization=lambda i: i, dangling=lambda i: 1 + i % 3, nstart=lambda i: 2),
        _by_node(nstart=lambda i: i),
        _by_node(personalization=lambda i: 2 - i),
        call(personalization={"absent": 1}),
    ],
    "google_matrix": [
        call(),
        call(weight=None, alpha=0.5),
        call(personalization={"absent": 1}),
        _by_node(personalization=lambda i: i, dangling=lambda i: 1 + i % 3),
        Case(_reversed_nodes),
        call(nodelist=["absent"]),
    ],
    "hits": [
        Case(tolerance=1e-6, absolute=1e-7, graphs=_CONNECTED),
        Case(lambda graph: ((graph, 0), {}), graphs=("empty", "karate")),
        Case(
            lambda graph: ((graph,), {"nstart": {u: 1 + i % 3 for i, u in enumerate(graph)}}),
            tolerance=1e-6,
            absolute=1e-7,
            graphs=_CONNECTED,
        ),
        Case(graphs=("empty directed", "one node")),
    ],
}

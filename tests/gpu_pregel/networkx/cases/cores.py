"""Calls of cores, shells and trusses."""

from __future__ import annotations

from typing import Any

import networkx as nx

from tests.gpu_pregel.networkx.comparison import Case, call


def _without_loops(graph: nx.Graph) -> nx.Graph:
    if graph.number_of_nodes() and not nx.is_frozen(graph):
        graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    return graph


def _given(*extra: Any) -> Case:
    """Return the case with core numbers, in the opposite order of the nodes."""
    return Case(
        lambda graph: ((graph, *extra), {"core_number": {u: i % 5 for i, u in enumerate(reversed(list(graph)))}})
    )


def _simple(*extra: Any) -> Case:
    return Case(lambda graph: ((_without_loops(graph), *extra), {}))


_SUBGRAPHS = [call(), _simple(2), _simple(1), _given(3), _given(), call(100)]

CASES: dict[str, list[Case]] = {
    "core_number": [call(), _simple()],
    "k_core": _SUBGRAPHS,
    "k_shell": _SUBGRAPHS,
    "k_crust": _SUBGRAPHS,
    "k_corona": [_simple(2), _simple(1), _given(3), call(100)],
    "k_truss": [call(3), call(4), call(2), call(2.5), _simple(3), call(6), call(0)],
    "onion_layers": [call(), _simple()],
}

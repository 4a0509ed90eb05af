"""Calls of connected components of every kind."""

from __future__ import annotations

from typing import Any

import networkx as nx

from tests.gpu_pregel.networkx.comparison import Arguments, Case, call


def _of_last(graph: Any) -> Arguments | None:
    return ((graph, list(graph)[-1]), {}) if len(graph) else None


def _with_components(graph: Any) -> Arguments | None:
    """Pass components in another order."""
    if not graph.is_directed() or not len(graph):
        return None
    return (graph, list(nx.kosaraju_strongly_connected_components(graph))), {}


def _with_missing_component(graph: Any) -> Arguments | None:
    if not graph.is_directed() or not len(graph):
        return None
    return (graph, iter([{node} for node in list(graph)[1:]])), {}


CASES: dict[str, list[Case]] = {
    "connected_components": [call()],
    "number_connected_components": [call()],
    "is_connected": [call()],
    "node_connected_component": [Case(_of_last), call("absent")],
    "weakly_connected_components": [call()],
    "number_weakly_connected_components": [call()],
    "is_weakly_connected": [call()],
    "strongly_connected_components": [call()],
    "kosaraju_strongly_connected_components": [call(), Case(_of_last), call(source="absent")],
    "number_strongly_connected_components": [call()],
    "is_strongly_connected": [call()],
    "is_semiconnected": [call()],
    "condensation": [call(), Case(_with_components), Case(_with_missing_component)],
    "attracting_components": [call()],
    "number_attracting_components": [call()],
    "is_attracting_component": [call()],
    "flow_hierarchy": [call(), call("weight"), call(weight="cost")],
}

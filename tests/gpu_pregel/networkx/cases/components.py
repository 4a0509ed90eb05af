"""Calls of connected components of every kind."""

from __future__ import annotations

from tests.gpu_pregel.networkx.comparison import Case, call

CASES: dict[str, list[Case]] = {
    "connected_components": [call()],
    "number_connected_components": [call()],
    "is_connected": [call()],
    "node_connected_component": [Case(lambda graph: ((graph, list(graph)[-1]), {}) if graph else None), call("absent")],
}

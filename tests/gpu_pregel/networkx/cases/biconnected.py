"""Calls of biconnected components, articulation points, bridges and chains."""

from __future__ import annotations

from typing import Any

from tests.gpu_pregel.networkx.comparison import Arguments, Case, call


def _from_last(graph: Any) -> Arguments | None:
    return ((graph,), {"root": list(graph)[-1]}) if len(graph) else None


CASES: dict[str, list[Case]] = {
    "biconnected_components": [call()],
    "biconnected_component_edges": [call()],
    "articulation_points": [call()],
    "is_biconnected": [call()],
    "bridges": [call(), Case(_from_last)],
    "has_bridges": [call(), Case(_from_last), call(root="absent")],
    "local_bridges": [call(), call(with_span=False), call(weight="weight")],
    "bridge_components": [call()],
    "k_edge_components": [call(1), call(2), call(k=3), call(0)],
    "chain_decomposition": [call(), Case(_from_last), call("absent")],
}

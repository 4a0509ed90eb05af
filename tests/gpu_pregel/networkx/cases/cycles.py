"""Calls of cycles of undirected graphs."""

from __future__ import annotations

from tests.gpu_pregel.networkx.comparison import Case, call

CASES: dict[str, list[Case]] = {
    "cycle_basis": [
        call(),
        Case(lambda graph: ((graph, next(iter(graph))), {}) if len(graph) else None),
        call("absent"),
    ],
    "girth": [call()],
}

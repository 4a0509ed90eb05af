"""Calls of cycles."""

from __future__ import annotations

from typing import Any

from tests.gpu_pregel.networkx.comparison import Arguments, Case, call


def _from_last(graph: Any) -> Arguments | None:
    return ((graph, list(graph)[-1]), {}) if len(graph) else None


CASES: dict[str, list[Case]] = {
    "cycle_basis": [
        call(),
        Case(lambda graph: ((graph, next(iter(graph))), {}) if len(graph) else None),
        call("absent"),
    ],
    "girth": [call()],
    "find_cycle": [
        call(),
        Case(_from_last),
        Case(lambda graph: ((graph, list(graph)[::-1]), {"orientation": "original"})),
        call(orientation="ignore"),
        call("absent"),
        call(10**9),
    ],
}

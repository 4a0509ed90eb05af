"""Calls of triads and structural holes."""

from __future__ import annotations

from tests.gpu_pregel.networkx.comparison import Case, call

_HOLES = [
    call(),
    call(weight="weight"),
    call(weight="cost"),
    call(["absent"]),
    Case(lambda graph: ((graph, list(graph)[::-2]), {})),
    Case(lambda graph: ((graph, list(graph)[:7]), {"weight": "weight"})),
]

CASES: dict[str, list[Case]] = {
    "triadic_census": [call(), Case(lambda graph: ((graph, list(graph)[:2]), {}))],
    "constraint": _HOLES,
    "effective_size": _HOLES,
}

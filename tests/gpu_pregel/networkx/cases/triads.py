"""Calls of triads and structural holes."""

from __future__ import annotations

from tests.gpu_pregel.networkx.comparison import Case, call

CASES: dict[str, list[Case]] = {
    "triadic_census": [call(), Case(lambda graph: ((graph, list(graph)[:2]), {}))],
    "constraint": [call(), call(weight="weight"), call(weight="cost"), call(["absent"])],
    "effective_size": [call(), call(weight="weight"), call(weight="cost"), call(["absent"])],
}

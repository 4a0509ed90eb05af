"""Calls of sums over the distances of all pairs of nodes."""

from __future__ import annotations

from tests.gpu_pregel.networkx.cases.nodes import between, from_first
from tests.gpu_pregel.networkx.cases.weighted_paths import negative, sources
from tests.gpu_pregel.networkx.comparison import Case, call

_INDEX = [call(), call(weight="weight"), call(weight="cost"), negative(weight="weight")]
_SMALL = ("loop", "edge", "path", "cycle", "complete", "grid", "some weights", "multigraph", "directed cycle")

CASES: dict[str, list[Case]] = {
    "closeness_vitality": [
        *(call(**options, graphs=_SMALL) for options in ({}, {"weight": "cost"}, {"wiener_index": 100})),
        from_first(),
        from_first(weight="weight"),
        call("absent"),
    ],
    "efficiency": [between(0, -1), between(1, 2), between(0, 0), call("absent", "missing")],
    "global_efficiency": [call()],
    "gutman_index": _INDEX,
    "hyper_wiener_index": _INDEX,
    "local_efficiency": [call()],
    "schultz_index": _INDEX,
    "voronoi_cells": [
        sources(0, -1),
        sources(2, 1, 0, weight="cost"),
        sources(-1, weight=None),
        call([]),
        call(["absent"]),
    ],
    "wiener_index": _INDEX,
}

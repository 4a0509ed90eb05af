"""Calls of spanning trees and forests."""

from __future__ import annotations

from tests.gpu_pregel.networkx.comparison import Case, call

_EDGES = [
    call(),
    call(data=False, weight="cost"),
    call("prim"),
    call("prim", weight=None, data=False),
    call("other", keys=False),
]
_TREES = [call(), call(weight="cost"), call(algorithm="prim", ignore_nan=True), call(algorithm="other")]
_ALL = [*(call(minimum) for minimum in (True, False)), call(True, weight="cost", keys=False, data=True)]

CASES: dict[str, list[Case]] = {
    "minimum_spanning_edges": _EDGES,
    "maximum_spanning_edges": _EDGES,
    "minimum_spanning_tree": _TREES,
    "maximum_spanning_tree": _TREES,
    "kruskal_mst_edges": _ALL,
    "prim_mst_edges": [*_ALL, call(False, data=False)],
}

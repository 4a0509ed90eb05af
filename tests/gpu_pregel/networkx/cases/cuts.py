"""Calls of cuts, boundaries and volumes; regular graphs."""

from __future__ import annotations

from typing import Any

import networkx as nx

from tests.gpu_pregel.networkx.comparison import Case, call


def _half(**options: Any) -> Case:
    return Case(lambda graph: ((graph, list(graph)[::2]), options))


def _thirds(**options: Any) -> Case:
    """Pass two sets of nodes that overlap."""
    return Case(lambda graph: ((graph, set(list(graph)[::3]), list(graph)[1::2]), options))


def _made(other: nx.Graph) -> Case:
    return Case(lambda _: ((other,), {}), graphs=("empty",))


_ABSENT = Case(lambda graph: ((graph, [*list(graph)[:2], "absent"]), {}))
_ALL = Case(lambda graph: ((graph, list(graph)), {}))
_CUTS = [_half(), _half(weight="weight"), _thirds(), _thirds(weight="cost"), _ABSENT, _ALL, call([])]

CASES: dict[str, list[Case]] = {
    "edge_boundary": [_half(), _half(data=True), _thirds(), _thirds(data=True, default=5), _ABSENT],
    "node_boundary": [_half(), _thirds(), _ABSENT, call([])],
    "cut_size": _CUTS,
    "volume": [_half(), _half(weight="weight"), _ABSENT, call([])],
    "normalized_cut_size": _CUTS,
    "conductance": _CUTS,
    "edge_expansion": _CUTS,
    "mixing_expansion": _CUTS,
    "node_expansion": [_half(), _ABSENT, call([])],
    "boundary_expansion": [_half(), _ABSENT, call([])],
    "is_regular": [
        call(),
        _made(nx.DiGraph([(0, 1), (0, 3), (2, 1), (2, 3)])),
        _made(nx.Graph([(0, 0), (1, 2), (2, 3), (3, 1)])),
    ],
    "is_k_regular": [call(1), call(2), call(5), call("two")],
}

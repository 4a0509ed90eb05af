"""Calls of label propagation, fluid communities and the quality of partitions."""

from __future__ import annotations

from typing import Any

import networkx as nx

from tests.gpu_pregel.networkx.comparison import Case, call


def _thirds(graph: nx.Graph) -> list[Any]:
    nodes = list(graph)
    return [part for i in range(3) if (part := set(nodes[i::3]))]


def _of_thirds(**options: Any) -> Case:
    return Case(lambda graph: ((graph, _thirds(graph)), options))


def _seeded(**options: Any) -> Case:
    return Case(lambda graph: ((graph,), {"seed": 4, **options}))


_TUPLES = Case(lambda graph: ((graph, [tuple(part) for part in _thirds(graph)]), {}), graphs=("karate", "directed"))
_NO_PARTITIONS = [
    Case(lambda graph: ((graph, _thirds(graph)[1:]), {})),
    Case(lambda graph: ((graph, [*_thirds(graph), {"absent"}]), {})),
    Case(lambda graph: ((graph, [list(part) * 2 for part in _thirds(graph)]), {}), graphs=("path", "directed")),
]

CASES: dict[str, list[Case]] = {
    "asyn_lpa_communities": [_seeded(), _seeded(weight="weight"), _seeded(weight="cost")],
    "fast_label_propagation_communities": [_seeded(), _seeded(weight="weight"), _seeded(weight="cost")],
    "label_propagation_communities": [call()],
    "asyn_fluidc": [
        *(call(k, seed=3) for k in (1, 2, 4, 30)),
        call(3, max_iter=2, seed=1),
        call(0),
        call(2.5),
        call(1, max_iter=0),
    ],
    "modularity": [
        _of_thirds(),
        _of_thirds(weight=None, resolution=0.5),
        _of_thirds(weight="cost"),
        Case(lambda graph: ((graph, (frozenset(part) for part in _thirds(graph))), {})),
        *_NO_PARTITIONS,
    ],
    "intra_community_edges": [_of_thirds(), _TUPLES, Case(lambda graph: ((graph, [set(graph), list(graph)[:5]]), {}))],
    "inter_community_edges": [_of_thirds(), _TUPLES, *_NO_PARTITIONS],
    "partition_quality": [_of_thirds(), Case(lambda graph: ((graph, [{u} for u in graph]), {})), *_NO_PARTITIONS],
}

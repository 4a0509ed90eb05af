"""Calls of Louvain's and Leiden's methods."""

from __future__ import annotations

from typing import Any

import networkx as nx

from tests.gpu_pregel.networkx.comparison import Case, call


def _check_partition(graph: nx.Graph, ours: Any, theirs: Any) -> None:
    assert theirs is None, "NetworkX has an implementation now: compare with it"
    assert type(ours) is list
    assert all(type(community) is set for community in ours)
    assert nx.community.is_partition(graph, ours)
    if graph.number_of_edges():
        alone = [{node} for node in graph]
        assert nx.community.modularity(graph, ours) >= nx.community.modularity(graph, alone)
        assert all(nx.is_connected(graph.subgraph(community)) for community in ours)


def _check_partitions(graph: nx.Graph, ours: Any, theirs: Any) -> None:
    assert ours
    for partition in ours:
        _check_partition(graph, partition, theirs)


def _seeded(**options: Any) -> Case:
    return Case(lambda graph: ((graph,), {"seed": 5, **options}))


def _leiden(check: Any, **options: Any) -> Case:
    return Case(lambda graph: None if graph.is_directed() else ((graph,), {"seed": 5, **options}), check=check)


CASES: dict[str, list[Case]] = {
    "louvain_communities": [
        _seeded(),
        _seeded(weight=None, resolution=1.7),
        _seeded(weight="cost", threshold=0.05, resolution=0.6),
        _seeded(max_level=1),
        call(max_level=0),
    ],
    "louvain_partitions": [_seeded(), _seeded(threshold=-1e-9, resolution=2)],
    "leiden_communities": [_leiden(_check_partition), _leiden(_check_partition, weight=None, max_level=1)],
    "leiden_partitions": [_leiden(_check_partitions)],
}

"""Calls of shortest paths and of the measures that follow from distances."""

from __future__ import annotations

from typing import Any

import networkx as nx

from tests.gpu_pregel.networkx.comparison import Case, call


def _from_first(**options: Any) -> Case:
    return Case(lambda graph: ((graph, next(iter(graph))), options) if len(graph) else None)


def _from_last(graph: nx.Graph) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    return ((graph, list(graph)[-1]), {}) if len(graph) else None


CASES: dict[str, list[Case]] = {
    "single_source_shortest_path_length": [
        _from_first(),
        Case(_from_last),
        _from_first(cutoff=2),
        _from_first(cutoff=0),
        _from_first(cutoff=-1),
        _from_first(cutoff=1.5),
        call("absent"),
    ],
}

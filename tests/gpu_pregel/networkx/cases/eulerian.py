"""Calls of Eulerian graphs."""

from __future__ import annotations

import networkx as nx

from tests.gpu_pregel.networkx.comparison import Case, call

_CIRCUITS = [
    Case(lambda graph: ((nx.complete_graph(5),), {}), graphs=("empty",)),
    Case(lambda graph: ((nx.MultiDiGraph([(1, 2), (2, 1), (1, 2), (2, 1)]),), {}), graphs=("empty",)),
]
_FROM_ENDS = [
    Case(lambda graph, place=place: ((graph, list(graph)[place]), {}) if len(graph) else None) for place in (0, -1)
]
_PATHS = [
    Case(lambda graph, source=source: ((nx.DiGraph([(1, 2), (2, 3), (3, 4)]), source), {}), graphs=("empty",))
    for source in (1, 4, None)
]

CASES: dict[str, list[Case]] = {
    "is_eulerian": [call(), *_CIRCUITS],
    "has_eulerian_path": [call(), *_FROM_ENDS, *_CIRCUITS, *_PATHS, call("absent")],
    "is_semieulerian": [call(), *_CIRCUITS],
}

"""Calls of Eulerian graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import networkx as nx

from tests.gpu_pregel.networkx.comparison import Case, call


def _made(make: Callable[[], Any], *extra: Any) -> Case:
    """Return a call on another graph, which is made anew."""
    return Case(lambda _: ((make(), *extra), {}), graphs=("empty",))


def _from(place: int) -> Case:
    return Case(lambda graph: ((graph, list(graph)[place]), {}) if len(graph) else None)


def _directed_path() -> Any:
    return nx.path_graph(4, create_using=nx.DiGraph)


_CIRCUITS = [
    _made(lambda: nx.complete_graph(5)),
    _made(lambda: nx.MultiDiGraph([(1, 2), (2, 1), (1, 2), (2, 1)])),
]
_PATHS = [_from(0), _from(-1), *(_made(_directed_path, source) for source in (0, 3, None))]

CASES: dict[str, list[Case]] = {
    "is_eulerian": [call(), *_CIRCUITS],
    "has_eulerian_path": [call(), *_CIRCUITS, *_PATHS, call("absent")],
    "is_semieulerian": [call(), *_CIRCUITS],
}

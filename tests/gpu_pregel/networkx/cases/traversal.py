"""Calls of breadth-first and depth-first search."""

from __future__ import annotations

from typing import Any

from tests.gpu_pregel.networkx.comparison import Arguments, Case, call

_LARGE = ("karate", "random", "loops", "multigraph", "directed", "dense directed", "directed multigraph", "grid")


def _from_first(*extra: Any, graphs: tuple[str, ...] = (), **options: Any) -> Case:
    return Case(lambda graph: ((graph, next(iter(graph)), *extra), options) if len(graph) else None, graphs=graphs)


def _from_last(graph: Any) -> Arguments | None:
    return ((graph, list(graph)[-1]), {}) if len(graph) else None


def _from_some(graph: Any) -> Arguments | None:
    return ((graph, list(graph)[::5]), {}) if len(graph) else None


_BREADTH = [
    _from_first(),
    Case(_from_last),
    _from_first(depth_limit=1),
    _from_first(depth_limit=0, graphs=_LARGE),
    _from_first(sort_neighbors=sorted, graphs=("karate", "directed")),
    call("absent"),
]
_DEPTH = [call(), Case(_from_last), _from_first(3), call(depth_limit=2), _from_first(0, graphs=_LARGE), call("absent")]
_SEVERAL = [Case(_from_last), Case(_from_some), call([]), call(["absent"])]
_EDGES = [
    call(),
    Case(_from_last),
    Case(_from_some),
    call("absent"),
    call(10**9),
    call([[]]),
    _from_first(orientation="original"),
    _from_first(orientation="ignore", graphs=("directed", "karate")),
]

CASES: dict[str, list[Case]] = {
    "bfs_edges": [*_BREADTH, _from_first(reverse=True)],
    "generic_bfs_edges": [_from_first(), _from_first(depth_limit=1.5, graphs=_LARGE), call("absent"), call([1])],
    "bfs_tree": [*_BREADTH, _from_first(reverse=True)],
    "bfs_predecessors": _BREADTH,
    "bfs_successors": _BREADTH,
    "bfs_layers": _SEVERAL,
    "bfs_labeled_edges": _SEVERAL,
    "edge_bfs": _EDGES,
    "edge_dfs": _EDGES,
    "descendants_at_distance": [_from_first(0), _from_first(2), _from_first(1.5), _from_first(-1), call("absent", 1)],
    "dfs_edges": [*_DEPTH, _from_first(sort_neighbors=sorted, graphs=("karate", "directed"))],
    "dfs_tree": _DEPTH,
    "dfs_predecessors": _DEPTH,
    "dfs_successors": _DEPTH,
    "dfs_preorder_nodes": _DEPTH,
    "dfs_postorder_nodes": _DEPTH,
    "dfs_labeled_edges": _DEPTH,
}

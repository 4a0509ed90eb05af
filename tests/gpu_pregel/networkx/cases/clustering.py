"""Calls of triangles, squares and clustering."""

from __future__ import annotations

from typing import Any

from tests.gpu_pregel.networkx.comparison import Case, call


def _of_nodes(chosen: slice | int, **options: Any) -> Case:
    """Return the case that passes a node or a list of nodes."""
    return Case(lambda graph: ((graph, list(graph)[chosen]), options) if len(graph) else None)


_NODES = [_of_nodes(0), _of_nodes(slice(1, 3)), call(["absent"]), call("absent"), call(7.5)]

CASES: dict[str, list[Case]] = {
    "triangles": [call(), *_NODES, _of_nodes(slice(None, None, -2))],
    "clustering": [
        call(),
        *_NODES,
        call(weight="weight"),
        call(weight="cost"),
        _of_nodes(slice(1, 3), weight="weight"),
        _of_nodes(slice(None, None, -2), weight="cost"),
    ],
    "average_clustering": [call(), call(count_zeros=False), call(weight="weight"), _of_nodes(slice(4)), _of_nodes(0)],
    "transitivity": [call()],
    "square_clustering": [call(), *_NODES],
    "generalized_degree": [call(), *_NODES],
}

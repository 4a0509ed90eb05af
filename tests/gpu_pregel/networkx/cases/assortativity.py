"""Calls of degrees of neighbours, reciprocity and rich clubs."""

from __future__ import annotations

from typing import Any

from tests.gpu_pregel.networkx.comparison import Case, call


def _of_nodes(chosen: slice | int, **options: Any) -> Case:
    """Return the case that passes a node or a list of nodes."""
    return Case(lambda graph: ((graph,), {"nodes": list(graph)[chosen], **options}) if len(graph) else None)


_NODES = [_of_nodes(0), _of_nodes(slice(1, 4)), call(nodes=["absent"]), call(nodes=7.5)]
_DIRECTIONS = [call(source="in", target="out"), call(source="out", target="in+out", weight="weight"), call(source="up")]

CASES: dict[str, list[Case]] = {
    "average_neighbor_degree": [
        call(),
        call(weight="weight"),
        call(source="in+out", target="in", weight="cost"),
        call(target="down"),
        *_DIRECTIONS,
        *_NODES,
    ],
    "average_degree_connectivity": [
        call(),
        call(weight="weight"),
        call(source="in", target="in", weight="weight"),
        call(target="down"),
        *_DIRECTIONS,
        *_NODES,
        _of_nodes(slice(5), weight="cost"),
    ],
    "overall_reciprocity": [call()],
    "reciprocity": [call(), *_NODES],
    "rich_club_coefficient": [call(normalized=False)],
    "s_metric": [call()],
}

"""Calls of measures that follow from distances."""

from __future__ import annotations

from typing import Any

import networkx as nx

from tests.gpu_pregel.networkx.cases.nodes import at
from tests.gpu_pregel.networkx.cases.weighted_paths import negative
from tests.gpu_pregel.networkx.comparison import Case, call

_WEIGHTED = [call(weight="weight"), call(weight="cost"), negative(weight="weight")]


def _several(graph: nx.Graph) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return (graph, [*list(graph)[:2], "absent"]), {}


def _two_parts(_: nx.Graph) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return a graph of which the error tells the name."""
    return (nx.Graph([(0, 1), (2, 3)], name="two parts"),), {}


_BOUNDS = [call(), *_WEIGHTED, call(usebounds=True), call(usebounds=True, weight="cost")]

CASES: dict[str, list[Case]] = {
    "barycenter": [call(), *_WEIGHTED, Case(_two_parts, graphs=("empty",))],
    "center": _BOUNDS,
    "diameter": _BOUNDS,
    "eccentricity": [
        call(),
        *_WEIGHTED,
        at(0),
        at(-1, weight="weight"),
        Case(_several),
        call("absent"),
        call(1.25),
        call([[]]),
    ],
    "harmonic_diameter": [call(), *_WEIGHTED],
    "periphery": _BOUNDS,
    "radius": _BOUNDS,
}

"""Calls of colourings, independent sets and dominating sets."""

from __future__ import annotations

import random
from typing import Any

import networkx as nx

from tests.gpu_pregel.networkx.comparison import Arguments, Case, call


def _random_order(graph: nx.Graph) -> Arguments:
    # This strategy draws from the global generator.
    random.seed(7)
    return (graph, "random_sequential"), {}


def _independent(*nodes: Any) -> Case:
    return Case(lambda graph: ((graph, [*nodes, *list(graph)[-1:]]), {"seed": 2}))


CASES: dict[str, list[Case]] = {
    "greedy_color": [
        call(),
        Case(_random_order),
        call("DSATUR"),
        call(strategy="saturation_largest_first"),
        call("connected_sequential"),
        call("smallest_last"),
        call("no such strategy"),
        call(interchange=True),
    ],
    "maximal_independent_set": [
        call(seed=1),
        call(seed=1, nodes=[]),
        _independent(),
        _independent("absent"),
        Case(lambda graph: ((graph, list(graph)), {})),
    ],
    "is_dominating_set": [
        Case(lambda graph: ((graph, list(graph)[::2]), {})),
        Case(lambda graph: ((graph, [*list(graph)[1:], "absent"]), {})),
        call([]),
    ],
    "connected_dominating_set": [call()],
}

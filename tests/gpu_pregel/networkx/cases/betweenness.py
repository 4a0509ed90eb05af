"""Calls of centralities by the number of shortest paths through nodes and edges."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from tests.gpu_pregel.networkx.comparison import Case, call


def _between(**options: Any) -> Case:
    """Return the case of paths from every second node to every third one."""
    return Case(lambda graph: ((graph, list(graph)[::2], [*list(graph)[::3], "absent"]), options))


def _of_states(**options: Any) -> Case:
    return Case(lambda graph: ((graph,), {"states": {u: 0.1 + i % 4 for i, u in enumerate(graph)}, **options}))


# NumPy's older generators make an array of the nodes.
_BY_NUMPY = Case(
    lambda graph: ((graph, 4), {"seed": np.random.RandomState(3)}), graphs=("karate", "directed", "tree", "grid")
)

CASES: dict[str, list[Case]] = {
    "betweenness_centrality": [
        call(),
        call(normalized=False),
        call(endpoints=True),
        call(normalized=False, endpoints=True),
        call(weight="weight"),
        call(k=3, seed=1),
        call(k=3, seed=1, normalized=False, weight="cost"),
        call(k=1, seed=2),
        call(k=0, seed=2),
        call(k=0, seed=2, endpoints=True),
        call(k=1000, seed=2),
        Case(lambda graph: ((graph, min(len(graph), 5)), {"seed": random.Random(3), "endpoints": True})),
        Case(lambda graph: ((graph, 4), {"seed": np.random.default_rng(3)}), graphs=("karate", "random", "directed")),
        _BY_NUMPY,
    ],
    "edge_betweenness_centrality": [
        call(),
        call(normalized=False),
        call(weight="weight"),
        call(k=2, seed=1, weight="cost"),
        call(k=1, seed=1, normalized=False),
        call(k=0, seed=1),
        call(k=1000, seed=1),
        _BY_NUMPY,
    ],
    "betweenness_centrality_subset": [
        _between(),
        _between(normalized=True),
        _between(weight="weight"),
        Case(lambda graph: ((graph, list(graph) * 25, list(graph)[:9]), {}), graphs=("karate", "directed")),
        call(["absent"], []),
        call([], []),
    ],
    "edge_betweenness_centrality_subset": [
        _between(),
        _between(normalized=True, weight="weight"),
        call([], []),
    ],
    "percolation_centrality": [call(), _of_states(), _of_states(weight="weight"), call(attribute="size")],
    "newman_betweenness_centrality": [
        call(),
        call(normalized=False, cutoff=2),
        call(cutoff=0),
        call(weight="weight"),
        call(weight="cost", cutoff=4),
        call(v=3),
        call(v="absent"),
    ],
}

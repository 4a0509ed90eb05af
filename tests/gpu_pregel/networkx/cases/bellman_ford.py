"""Calls of shortest paths by weights that may be negative."""

from __future__ import annotations

import random
from typing import Any

import networkx as nx

from tests.gpu_pregel.networkx.cases.nodes import between, from_first, from_last
from tests.gpu_pregel.networkx.comparison import Arguments, Case, call


def lowered(*places: int, cycle: bool, seed: int = 0, graphs: tuple[str, ...] = (), **options: Any) -> Case:
    """Return the case that passes nodes of a graph with negative edges, which form a negative cycle or none.

    Without one, each edge gets the difference of two potentials, so that all cycles keep their lengths.
    """

    def arguments(graph: nx.Graph) -> Arguments | None:
        source = random.Random(seed)
        nodes = list(graph)
        levels = {u: source.randint(0, 12) for u in nodes}
        for u, v, data in graph.edges(data=True):
            if cycle:
                data["weight"] = source.choice([5, 7, 9, -6])
            else:
                data["weight"] = source.randint(0, 3) + levels[v] - levels[u]
        return (graph, *(nodes[place] for place in places)), options

    directed = ("directed", "dense directed", "acyclic", "directed cycle", "directed multigraph")
    return Case(arguments, graphs=graphs or ((*directed, "multigraph", "random") if cycle else directed))


def _rounded(*nodes: int) -> Case:
    """Return the case that passes nodes of a graph with a cycle of length 0, which rounding makes negative once."""
    edges = [(8, 7, 0.1), (9, 3, -0.30000000000000004), (0, 3, 0.2), (3, 8, 0.2), (8, 0, -0.4), (7, 9, 0.0)]

    def arguments(_: nx.Graph) -> Arguments:
        graph = nx.DiGraph()
        graph.add_weighted_edges_from(edges)
        return (graph, *nodes), {}

    return Case(arguments, graphs=("empty",))


_NEGATIVE = [lowered(0, cycle=False), lowered(-1, cycle=False, seed=1), lowered(0, cycle=True)]
_FROM_NODE = [from_first(), from_last(), from_first(weight="cost"), from_first(weight=None), call("absent"), *_NEGATIVE]
_PAIRS = [
    *(between(i, k) for i, k in ((0, -1), (3, 3))),
    between(1, -1, weight=None),
    call("absent", "missing"),
    from_first(target="missing"),
    lowered(0, -1, cycle=False),
    lowered(0, -1, cycle=True),
    _rounded(0, 9),
]
_ALL = [call(weight="cost"), lowered(cycle=False), lowered(cycle=True)]

CASES: dict[str, list[Case]] = {
    "all_pairs_bellman_ford_path": _ALL,
    "all_pairs_bellman_ford_path_length": _ALL,
    "bellman_ford_path": _PAIRS,
    "bellman_ford_path_length": _PAIRS,
    "bellman_ford_predecessor_and_distance": [
        *_FROM_NODE,
        *(lowered(0, cycle=cycle, seed=2, heuristic=True) for cycle in (False, True)),
    ],
    "find_negative_cycle": [from_first(), call("absent"), *(lowered(0, cycle=True, seed=seed) for seed in range(6))],
    "johnson": _ALL,
    "negative_edge_cycle": [
        *_ALL,
        *(lowered(cycle=cycle, seed=3, heuristic=heuristic) for cycle in (True, False) for heuristic in (True, False)),
    ],
    "single_source_bellman_ford": [*_FROM_NODE, *_PAIRS],
    "single_source_bellman_ford_path": [*_FROM_NODE, _rounded(0)],
    "single_source_bellman_ford_path_length": _FROM_NODE,
}

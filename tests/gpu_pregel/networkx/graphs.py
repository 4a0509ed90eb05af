"""Graphs on which every function of the backend is compared with NetworkX: all kinds of graphs, nodes and weights."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import networkx as nx


def _weighted(graph: Any, *, integers: bool, seed: int = 1, missing: float = 0.0) -> Any:
    source = random.Random(seed)
    for *_, data in graph.edges(data=True):
        if source.random() >= missing:
            data["weight"] = source.randint(1, 9) if integers else source.uniform(0.5, 4.0)
            data["cost"] = source.randint(1, 5)
    return graph


def _shuffled(graph: Any, name: Callable[[int], Any] = lambda i: i, *, seed: int = 2) -> Any:
    """Return the graph with renamed nodes and with nodes and edges in random order, on which results depend."""
    source = random.Random(seed)
    nodes, edges = list(graph.nodes), list(graph.edges)
    source.shuffle(nodes)
    source.shuffle(edges)
    result = graph.__class__()
    result.add_nodes_from((name(u), {"color": "red" if u % 3 else "blue", "size": u}) for u in nodes)
    result.add_edges_from(tuple(map(name, edge[:2])) for edge in edges)
    return result


def _with_loops(graph: Any) -> Any:
    for u in list(graph)[:3]:
        graph.add_edge(u, u)
    return graph


def _view(graph: Any) -> Any:
    return graph.subgraph([u for i, u in enumerate(graph) if i % 4])


def _multi(graph: Any) -> Any:
    source = random.Random(3)
    for u, v in list(graph.edges())[::3]:
        for _ in range(source.randint(1, 2)):
            graph.add_edge(u, v)
    return graph


def _flow_of_days() -> Any:
    """Return a directed acyclic graph whose nodes are of several types."""
    return nx.DiGraph([("mon", 2), (2, (3, "c")), ("mon", (3, "c")), (frozenset("f"), 2), ((3, "c"), 5.5), ("x", "y")])


GRAPHS: dict[str, Callable[[], Any]] = {
    "empty": nx.Graph,
    "empty directed": nx.DiGraph,
    "one node": lambda: nx.empty_graph(1),
    "isolated": lambda: nx.empty_graph(["b", "a", "c"]),
    "loop": lambda: nx.Graph([(0, 0)]),
    "edge": lambda: nx.Graph([("a", "b")]),
    "path": lambda: nx.path_graph(7),
    "cycle": lambda: _shuffled(nx.cycle_graph(9), lambda i: i * 10),
    "complete": lambda: _weighted(nx.complete_graph(6), integers=True),
    "star": lambda: _shuffled(nx.star_graph(6), lambda i: f"s{i}"),
    "karate": nx.karate_club_graph,
    "tree": lambda: _weighted(_shuffled(nx.balanced_tree(2, 4), str), integers=False),
    "grid": lambda: _weighted(nx.grid_2d_graph(4, 6), integers=True),
    "random": lambda: _shuffled(nx.gnp_random_graph(40, 0.12, seed=5)),
    "sparse": lambda: _weighted(_shuffled(nx.gnm_random_graph(50, 45, seed=6), lambda i: (i, "n")), integers=False),
    "loops": lambda: _weighted(_with_loops(_shuffled(nx.gnp_random_graph(25, 0.15, seed=7))), integers=False),
    "some weights": lambda: _weighted(_shuffled(nx.gnp_random_graph(25, 0.2, seed=8)), integers=True, missing=0.4),
    "mixed weights": lambda: _weighted(_shuffled(nx.gnp_random_graph(25, 0.2, seed=8)), integers=False, missing=0.4),
    "view": lambda: _view(_weighted(_shuffled(nx.gnp_random_graph(40, 0.12, seed=9)), integers=True)),
    "bipartite": lambda: _shuffled(nx.bipartite.random_graph(9, 12, 0.3, seed=10)),
    "multigraph": lambda: _weighted(
        _multi(nx.MultiGraph(_shuffled(nx.gnp_random_graph(20, 0.2, seed=11)))), integers=True
    ),
    "directed": lambda: _weighted(
        _shuffled(nx.gnp_random_graph(30, 0.1, seed=12, directed=True), lambda i: f"v{i}"), integers=False
    ),
    "dense directed": lambda: _weighted(
        _with_loops(_shuffled(nx.gnp_random_graph(18, 0.35, seed=13, directed=True))), integers=True
    ),
    "acyclic": lambda: _weighted(
        _shuffled(nx.DiGraph((u, v) for u, v in nx.gnp_random_graph(25, 0.15, seed=14).edges if u < v)), integers=True
    ),
    "mixed nodes": _flow_of_days,
    "directed cycle": lambda: _shuffled(nx.cycle_graph(8, create_using=nx.DiGraph)),
    "arborescence": lambda: nx.balanced_tree(3, 2, create_using=nx.DiGraph),
    "directed view": lambda: _view(_shuffled(nx.gnp_random_graph(40, 0.08, seed=15, directed=True))),
    "directed multigraph": lambda: _weighted(
        _multi(nx.MultiDiGraph(_shuffled(nx.gnp_random_graph(18, 0.15, seed=16, directed=True)))), integers=False
    ),
}
"""Makes each graph anew; nodes have the attributes color and size where they are shuffled, edges weight and cost."""

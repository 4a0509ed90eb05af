"""Spanning trees and forests by the algorithms of Kruskal and Prim."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

from gpu_pregel.kernels.networkx.forests_cpu import grow_tree, join_trees
from gpu_pregel.networkx.graph import Array, BackendGraph
from gpu_pregel.networkx.results import add_new_edges, with_nodes_of


def minimum_spanning_edges(
    G: BackendGraph,
    algorithm: str = "kruskal",
    weight: str | None = "weight",
    keys: bool = True,
    data: bool = True,
    ignore_nan: bool = False,
) -> Iterator[Any]:
    """Return an iterator over the edges of a spanning forest of the smallest weight."""
    return _spanning_edges(G, algorithm, weight, data, minimum=True)


def maximum_spanning_edges(
    G: BackendGraph,
    algorithm: str = "kruskal",
    weight: str | None = "weight",
    keys: bool = True,
    data: bool = True,
    ignore_nan: bool = False,
) -> Iterator[Any]:
    """Return an iterator over the edges of a spanning forest of the largest weight."""
    return _spanning_edges(G, algorithm, weight, data, minimum=False)


def minimum_spanning_tree(
    G: BackendGraph, weight: str | None = "weight", algorithm: str = "kruskal", ignore_nan: bool = False
) -> Any:
    """Return a spanning forest of the smallest weight as a graph."""
    return _spanning_tree(G, weight, algorithm, minimum=True)


def maximum_spanning_tree(
    G: BackendGraph, weight: str | None = "weight", algorithm: str = "kruskal", ignore_nan: bool = False
) -> Any:
    """Return a spanning forest of the largest weight as a graph."""
    return _spanning_tree(G, weight, algorithm, minimum=False)


def kruskal_mst_edges(
    G: BackendGraph,
    minimum: bool,
    weight: str | None = "weight",
    keys: bool = True,
    data: bool = True,
    ignore_nan: bool = False,
    partition: str | None = None,
) -> Iterator[Any]:
    """Return an iterator over the edges of a spanning forest in the order of their weights."""
    return _iterate(G, _lightest_first(G, weight, minimum=bool(minimum)), data)


def prim_mst_edges(
    G: BackendGraph,
    minimum: bool,
    weight: str | None = "weight",
    keys: bool = True,
    data: bool = True,
    ignore_nan: bool = False,
) -> Iterator[Any]:
    """Return an iterator over the edges of a spanning forest in the order in which its trees grow."""
    return _iterate(G, _from_one_node(G, weight, minimum=bool(minimum)), data)


def _spanning_edges(G: BackendGraph, algorithm: str, weight: str | None, data: bool, *, minimum: bool) -> Iterator[Any]:
    if algorithm not in ("kruskal", "prim"):
        raise ValueError(f"{algorithm} is not a valid choice for an algorithm.")
    search = _lightest_first if algorithm == "kruskal" else _from_one_node
    return _iterate(G, search(G, weight, minimum=minimum), data)


def _spanning_tree(G: BackendGraph, weight: str | None, algorithm: str, *, minimum: bool) -> Any:
    if G.is_directed():
        raise nx.NetworkXNotImplemented("not implemented for directed type")
    edges = _spanning_edges(G, algorithm, weight, data=True, minimum=minimum)
    tree = with_nodes_of(G)
    add_new_edges(tree, edges)
    return tree


def _iterate(G: BackendGraph, chosen: Array, data: bool) -> Iterator[Any]:
    """Iterate over stored edges, with their attributes if ``data``."""
    topology = G.topology
    ends = G.nodes_at(topology.sources[chosen]), G.nodes_at(topology.neighbors[chosen])
    if not data:
        return zip(*ends, strict=True)
    attributes = G.edge_data()
    return zip(*ends, [attributes[e] for e in chosen.tolist()], strict=True)


def _lightest_first(G: BackendGraph, weight: str | None, *, minimum: bool) -> Array:
    """Return the stored edges of a forest by Kruskal's algorithm."""
    topology, n = G.topology, len(G)
    # NetworkX lists an undirected edge with its first node.
    once = np.arange(topology.m) if topology.directed else np.flatnonzero(topology.sources <= topology.neighbors)
    values = G.edge_values(weight, mixed=True)
    if values is not None:
        keys = values[once] if minimum else -values[once]
        once = once[np.argsort(keys, kind="stable")]
    chosen = np.empty(n, np.int64)
    count = join_trees(once, topology.sources, topology.neighbors, np.arange(n), chosen)
    found: Array = chosen[:count]
    return found


def _from_one_node(G: BackendGraph, weight: str | None, *, minimum: bool) -> Array:
    """Return the stored edges of a forest by Prim's algorithm."""
    topology, n = G.topology, len(G)
    values = G.edge_values(weight, mixed=True)
    weights = np.ones(topology.m) if values is None else values.astype(np.float64)
    rows = topology.indptr, topology.neighbors, weights if minimum else -weights
    reached, chosen = np.zeros(n, bool), np.empty(n, np.int64)
    heap = np.empty(topology.m), np.empty(topology.m, np.int64), np.empty(topology.m, np.int64)
    count = 0
    # NetworkX begins each tree at any node of a set, whose order changes if nodes are taken from it at once.
    left = set(topology.nodes)
    while left:
        start = topology.numbers[left.pop()]
        before = count
        count = grow_tree(*rows, start, len(left), reached, chosen, count, *heap)
        for node in G.nodes_at(topology.neighbors[chosen[before:count]]):
            left.remove(node)
    found: Array = chosen[:count]
    return found

"""Colourings, independent sets and dominating sets."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable
from typing import Any

import networkx as nx
import numpy as np

from gpu_pregel.algorithms.connected_components import connected_components
from gpu_pregel.kernels.networkx.searches_cpu import breadth_first
from gpu_pregel.kernels.networkx.sets_cpu import (
    color_by_saturation,
    color_in_order,
    dominate_connected,
    draw_independent,
)
from gpu_pregel.networkx.graph import Array, BackendGraph
from gpu_pregel.networkx.groups import adjacent, membership
from gpu_pregel.networkx.random_states import check_generator, drawing

_ENTRY = 16
_SMALL = 8


class OrderedNodes:
    """A set from which nodes are removed, with its order as long as CPython does not build its table anew.

    It does when more than a quarter of the table are entries of removed nodes, at the end of an update.

    Attributes
    ----------
    nodes : set
        In the order in which NetworkX's set has them.
    spare : int
        The table is built anew when more than ``spare`` nodes have been removed.
    """

    def __init__(self, nodes: Iterable[Any], excluded: set[Any]) -> None:
        everything = set(nodes)
        removed = 0
        if len(everything) >> 2 > len(excluded):
            # CPython then copies the set and removes the others from the copy.
            self.nodes = everything.copy()
            quarter = _slots(self.nodes) - 1 >> 2
            self.nodes.difference_update(excluded)
            removed = len(everything) - len(self.nodes)
            removed = 0 if removed > quarter else removed
        else:
            self.nodes = everything.difference(excluded)
        self.spare = (_slots(self.nodes) - 1 >> 2) - removed

    def remove(self, gone: list[Any]) -> None:
        """Remove nodes: all that are left, or more than ``spare``."""
        self.nodes.difference_update(gone)
        self.spare = _slots(self.nodes) - 1 >> 2


def _slots(nodes: set[Any]) -> int:
    """Return the number of entries of a set's table, of which the first few are part of the object."""
    return (sys.getsizeof(nodes) - sys.getsizeof(set())) // _ENTRY or _SMALL


def greedy_color(G: BackendGraph, strategy: Any = "largest_first", interchange: bool = False) -> dict[Any, int]:
    """Return the colours in the order in which nodes get them."""
    n = len(G)
    if n == 0:
        return {}
    colors = np.full(n, -1)
    if strategy in ("DSATUR", "saturation_largest_first"):
        order = _by_saturation(G, colors)
    else:
        order = _order(G, strategy)
        color_in_order(*G.topology.distinct, order, colors, np.full(n + 1, -1))
    return G.values_at(order, colors[order])


def maximal_independent_set(G: BackendGraph, nodes: Iterable[Any] | None = None, seed: Any = None) -> list[Any]:
    """Return a random maximal independent set that contains the given nodes."""
    check_generator(seed)
    chosen = {seed.choice(G.topology.nodes)} if not nodes else set(nodes)
    if not chosen.issubset(G):
        raise nx.NetworkXUnfeasible(f"{chosen} is not a subset of the nodes of G")
    given = membership(G, chosen)
    taken = adjacent(G, given)
    if (taken & given).any():
        raise nx.NetworkXUnfeasible(f"{chosen} is not an independent set of G")
    excluded = set(G.nodes_at(np.flatnonzero(taken | given)))
    drawn = list(chosen)
    available = OrderedNodes(G.topology.nodes, excluded)
    with drawing(seed) as state:
        while available.nodes:
            drawn += _draw(G, available, state)
    return drawn


def _draw(G: BackendGraph, available: OrderedNodes, state: Array) -> list[Any]:
    """Draw nodes that are not adjacent for as long as the order of the available ones stays the same."""
    n, numbers = len(G), G.topology.numbers
    order = np.array([numbers[node] for node in available.nodes], np.int64)
    places, tree = np.full(n, -1), np.empty(len(order) + 1, np.int64)
    places[order] = np.arange(len(order))
    drawn, gone = np.empty(len(order), np.int64), np.empty(len(order), np.int64)
    rows = G.topology.indptr, G.topology.neighbors
    taken, removed = draw_independent(*rows, order, places, tree, available.spare, state, drawn, gone)
    available.remove(G.nodes_at(gone[:removed]))
    return G.nodes_at(drawn[:taken])


def is_dominating_set(G: BackendGraph, nbunch: Iterable[Any]) -> bool:
    """Tell whether each node is among these nodes or next to one."""
    # Objects that cannot be nodes, such as lists, are ignored.
    chosen = membership(G, (node for node in nbunch if node in G))
    return bool((chosen | adjacent(G, chosen)).all())


def connected_dominating_set(G: BackendGraph) -> set[Any]:
    """Return a connected dominating set."""
    n, topology = len(G), G.topology
    if n == 0:
        return set()
    if connected_components(G.engine()).count != 1:
        raise nx.NetworkXError("G must be a connected graph")
    if n == 1:
        return set(topology.nodes)
    indptr, neighbors = topology.distinct
    heap = np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64)
    left, unseen, chosen = topology.total_degrees.copy(), np.ones(n, bool), np.empty(n, np.int64)
    count = dominate_connected(indptr, neighbors, int(np.argmax(left)), left, unseen, chosen, *heap)
    return set(G.nodes_at(chosen[:count]))


def _order(G: BackendGraph, strategy: str) -> Array:
    """Return the vertices in the order in which they are coloured."""
    if strategy == "largest_first":
        return np.argsort(-G.topology.total_degrees, kind="stable")
    if strategy == "random_sequential":
        shuffled = list(range(len(G)))
        random.shuffle(shuffled)
        return np.array(shuffled)
    if G.is_directed():
        raise nx.NetworkXNotImplemented("not implemented for directed type")
    return _by_searches(G)


def _by_searches(G: BackendGraph) -> Array:
    """Return the vertices of each component in the order of a breadth-first search from any of its nodes."""
    n, numbers, rows = len(G), G.topology.numbers, G.topology.distinct
    found, order = np.empty(n, np.uint32), np.empty(n, np.uint32)
    parents, depths, other_depths = np.empty(n, np.uint32), np.full(n, -1), np.full(n, -1)
    begin = 0
    for start in range(n):
        if depths[start] >= 0:
            continue
        found[begin], depths[start] = start, 0
        count = breadth_first(*rows, np.inf, 1, found[begin:], depths, parents)
        # NetworkX takes the first node of the set of those that it found in this order.
        first = numbers[next(iter(set(G.nodes_at(found[begin : begin + count]))))]
        order[begin], other_depths[first] = first, 0
        begin += breadth_first(*rows, np.inf, 1, order[begin:], other_depths, parents)
    return order.astype(np.int64)


def _by_saturation(G: BackendGraph, colors: Array) -> Array:
    """Colour the graph; return the vertices in the order in which they were coloured."""
    indptr, neighbors = G.topology.distinct
    n = len(colors)
    sizes = np.bincount(neighbors, minlength=n)
    places = np.cumsum(sizes) - sizes
    capacity = n + len(neighbors)
    heap = np.empty(capacity), np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    order = np.empty(n, np.int64)
    color_by_saturation(
        *(indptr, neighbors, G.topology.total_degrees, places, places.copy(), np.empty(len(neighbors), np.int64)),
        *(colors, np.full(n + 1, -1), order, *heap),
    )
    return order

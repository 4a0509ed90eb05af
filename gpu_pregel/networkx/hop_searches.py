"""Breadth-first searches in NetworkX's order, and the paths of the trees that searches find."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np

from gpu_pregel.kernels.networkx.searches_cpu import (
    breadth_first,
    breadth_first_from_each,
    collect_predecessors,
    find_hops,
    meet,
)
from gpu_pregel.networkx.garbage import can_pause
from gpu_pregel.networkx.graph import Array, BackendGraph
from gpu_pregel.networkx.rows import Rows, rows
from gpu_pregel.networkx.searches import BreadthFirst, limit_of, search_rows

_BATCH = 1 << 14
"""Searches from each vertex are made until they have found this many vertices in all."""


def search(edges: Rows, source: int, cutoff: float | None) -> BreadthFirst:
    """Search from a vertex along edges; none is followed from vertices ``cutoff`` steps away."""
    return search_rows(*edges, np.array([source], np.uint32), cutoff)


class HopSearch:
    """Searches on one graph that find the number of hops alone, and reuse their arrays."""

    def __init__(self, graph: BackendGraph, edges: Rows, cutoff: float | None = None) -> None:
        n = len(graph)
        self._edges, self._is_symmetric = edges, not graph.is_directed()
        self._limit = limit_of(cutoff)
        self._found, self._order, self._depths = (
            np.zeros(n, np.uint8),
            np.empty(n + 1, np.uint32),
            np.empty(n, np.int64),
        )

    def run(self, source: int) -> tuple[Array, Array]:
        """Return the vertices that are found and the number of hops to each, int64, until the next search.

        The vertices are uint32[found], in the order in which they are found.
        """
        arrays = (self._found, self._order, self._depths)
        count, _ = find_hops(*self._edges, source, self._limit, self._is_symmetric, *arrays)
        order = self._order[:count]
        self._found[order] = 0
        return order, self._depths[:count]


class PredecessorSearch:
    """Searches on one graph that find all predecessors on shortest paths, and reuse their arrays."""

    def __init__(self, graph: BackendGraph, edges: Rows, cutoff: float | None = None) -> None:
        n = len(graph)
        self._graph, self._edges, self._limit = graph, edges, limit_of(cutoff)
        self._order, self._parents = np.empty((2, n), np.uint32)
        self._depths, self._places = np.full(n, -1, np.int64), np.empty(n, np.int64)
        self._predecessors = np.empty(len(edges.neighbors), np.uint32)
        self._found = self._order[:0]

    def run(self, source: int) -> None:
        """Search from a vertex."""
        self._depths[self._found] = -1
        self._order[0], self._depths[source] = source, 0
        count = breadth_first(*self._edges, self._limit, 1, self._order, self._depths, self._parents)
        self._found = self._order[:count]

    def hops(self) -> dict[Any, int]:
        """Return the number of hops to each node that the last search has found."""
        return self._graph.values_at(self._found, self._depths[self._found])

    def lists(self) -> dict[Any, list[Any]]:
        """Return the predecessors of each node, in the order of the search."""
        starts = np.zeros(len(self._found) + 1, np.int64)
        results = (self._places, starts, self._predecessors)
        collect_predecessors(*self._edges, self._limit, self._found, self._depths, *results)
        return node_lists(self._graph, self._found, starts, self._predecessors)


def paths_from_each(
    graph: BackendGraph, edges: Rows, cutoff: float | None
) -> Iterator[tuple[Any, dict[Any, list[Any]]]]:
    """Yield each node, and a path from it to each node that a search finds."""
    n = len(graph)
    order, parents = np.empty(n + _BATCH, np.uint32), np.empty(n + _BATCH, np.int64)
    ends, depths = np.empty(n, np.int64), np.full(n, -1, np.int64)
    first = 0
    while first < n:
        count = breadth_first_from_each(*edges, limit_of(cutoff), first, _BATCH, order, parents, ends, depths)
        begin, size = 0, ends[count - 1]
        nodes, places = graph.nodes_at(order[:size]), parents[:size].tolist()
        for end in ends[:count].tolist():
            yield nodes[begin], paths_by_place(nodes[begin:end], places[begin + 1 : end])
            begin = end
        first += count


def tree_paths(
    graph: BackendGraph, order: Array, parents: Array, roots: int = 1, *, reverse: bool = False
) -> dict[Any, Any]:
    """Return the path to each vertex of ``order``, whose first ones are roots; reversed, from it to its root."""
    places = np.empty(len(graph), np.int64)
    places[order] = np.arange(len(order))
    return paths_by_place(graph.nodes_at(order), places[parents[order[roots:]]].tolist(), roots, reverse=reverse)


def paths_by_place(
    nodes: Sequence[Any], parents: Sequence[int], roots: int = 1, *, reverse: bool = False
) -> dict[Any, Any]:
    """Return the path to each of distinct nodes, whose first ones are roots; the others have the places of parents."""
    pausing = can_pause()
    try:
        if pausing:
            gc.disable()
        paths = [[node] for node in nodes[:roots]]
        for node, place in zip(nodes[roots:], parents, strict=True):
            paths.append([node, *paths[place]] if reverse else [*paths[place], node])
        return dict(zip(nodes, paths, strict=True))
    finally:
        if pausing:
            gc.enable()


def chain(links: Array, vertex: int) -> list[int]:
    """Follow links from a vertex until one is negative."""
    found = []
    while vertex >= 0:
        found.append(vertex)
        vertex = int(links[vertex])
    return found


def path_between(graph: BackendGraph, source: Any, target: Any) -> list[Any]:
    """Return the path that NetworkX's search from both ends finds."""
    if source == target:
        return [source]
    n = len(graph)
    fringes, links = np.empty((2, n), np.uint32), np.zeros((2, n), np.int64)
    fringes[:, 0] = graph.topology.numbers[source], graph.topology.numbers[target]
    meeting = int(meet(*rows(graph), *rows(graph, reverse=True), fringes, links)) - 1
    if meeting < 0:
        raise nx.NetworkXNoPath(f"No path between {source} and {target}.")
    there, back = (_trail(side, meeting) for side in links)
    return meeting_path(graph, [*reversed(there), *back[1:]], meeting)


def meeting_path(graph: BackendGraph, vertices: list[int], meeting: int) -> list[Any]:
    """Return the nodes of a path; a target where searches from both ends meet has been found as the graph's node."""
    path = graph.nodes_at(np.array(vertices))
    if vertices[-1] == meeting:
        path[-1] = graph.topology.nodes[meeting]
    return path


def _trail(links: Array, vertex: int) -> list[int]:
    """Follow links, which are one more than vertices, until one is its own."""
    found = [vertex]
    while (above := int(links[found[-1]]) - 1) != found[-1]:
        found.append(above)
    return found


def node_lists(graph: BackendGraph, order: Array, starts: Array, members: Array) -> dict[Any, Any]:
    """Return the rows of the vertices of ``order`` as lists of nodes, by their nodes."""
    bounds, pausing = starts.tolist(), can_pause()
    try:
        if pausing:
            gc.disable()
        nodes = graph.nodes_at(members[: bounds[-1]])
        lists = [nodes[begin:end] for begin, end in pairwise(bounds)]
        return dict(zip(graph.nodes_at(order), lists, strict=True))
    finally:
        if pausing:
            gc.enable()


_END = object()


def paths_by_predecessors(source: Any, target: Any, before: dict[Any, list[Any]]) -> Iterator[list[Any]]:
    """Yield all paths from a source by depth-first search from the target; no path passes a node twice."""
    if target not in before:
        raise nx.NetworkXNoPath(f"Target {target} cannot be reached from given sources")
    way, on_way, branches = [target], {target}, [iter(before[target])]
    while way:
        # A source with predecessors, by edges of weight 0, is yielded each time that the search comes back to it.
        if way[-1] == source:
            yield way[::-1]
        node = next(branches[-1], _END)
        if node is _END:
            branches.pop()
            on_way.discard(way.pop())
        elif node not in on_way:
            way.append(node)
            on_way.add(node)
            branches.append(iter(before[node]))


def paths_to_each(source: Any, before: dict[Any, list[Any]]) -> Iterator[tuple[Any, list[list[Any]]]]:
    """Yield each node with lists of predecessors, and all paths to it, from those to its predecessors where known."""
    known: dict[Any, list[tuple[Any, ...]]] = {}
    for node, predecessors in before.items():
        if node == source and not predecessors:
            known[node] = [(node,)]
        elif predecessors and all(other in known for other in predecessors):
            known[node] = [(*path, node) for other in predecessors for path in known[other]]
        else:
            # A predecessor comes later, or edges of weight 0 form a cycle.
            yield node, list(paths_by_predecessors(source, node, before))
            continue
        yield node, list(map(list, known[node]))

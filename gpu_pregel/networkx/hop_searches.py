"""Breadth-first searches in NetworkX's order, and the paths of the trees that searches find."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

from gpu_pregel.kernels.networkx.hops_cpu import find_hops
from gpu_pregel.kernels.networkx.paths_cpu import collect_predecessors, meet
from gpu_pregel.networkx.garbage import collector_paused
from gpu_pregel.networkx.graph import BackendGraph
from gpu_pregel.networkx.rows import Rows, rows
from gpu_pregel.networkx.searches import BreadthFirst, search_rows

Array = np.ndarray[Any, Any]


def search(edges: Rows, source: int, cutoff: float | None) -> BreadthFirst:
    """Search from a vertex along edges; none is followed from vertices ``cutoff`` steps away."""
    return search_rows(*edges, np.array([source], np.uint32), cutoff)


def hops(graph: BackendGraph, edges: Rows, source: int, cutoff: float | None) -> tuple[Array, Array]:
    """Return the vertices that a search finds, uint32[found], and the number of hops to each, int64[found]."""
    n = len(graph)
    found, order, depths = np.zeros(n, np.uint8), np.empty(n + 1, np.uint32), np.empty(n, np.int64)
    limit = np.inf if cutoff is None else float(cutoff)
    count, _ = find_hops(*edges, source, limit, not graph.is_directed(), found, order, depths)
    return order[:count], depths[:count]


def tree_paths(
    graph: BackendGraph, order: Array, parents: Array, roots: int = 1, *, reverse: bool = False
) -> dict[Any, Any]:
    """Return the path to each vertex of ``order``, whose first ones are roots; reversed, from it to its root."""
    places = np.empty(len(graph), np.int64)
    places[order] = np.arange(len(order))
    parent_places = places[parents[order[roots:]]].tolist()
    nodes = graph.nodes_at(order)
    steps = zip(nodes[roots:], parent_places, strict=True)
    with collector_paused():
        paths = [[node] for node in nodes[:roots]]
        for node, place in steps:
            paths.append([node, *paths[place]] if reverse else [*paths[place], node])
        return dict(zip(nodes, paths, strict=True))


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
        return [target]
    n, nodes = len(graph), graph.topology.nodes
    fringes, links = np.empty((2, n), np.uint32), np.zeros((2, n), np.int64)
    fringes[:, 0] = graph.topology.numbers[source], graph.topology.numbers[target]
    meeting = int(meet(*rows(graph), *rows(graph, reverse=True), fringes, links)) - 1
    if meeting < 0:
        raise nx.NetworkXNoPath(f"No path between {source} and {target}.")
    there, back = (_trail(side, meeting) for side in links)
    return [nodes[v] for v in [*reversed(there), *back[1:]]]


def _trail(links: Array, vertex: int) -> list[int]:
    """Follow links, which are one more than vertices, until one is its own."""
    found = [vertex]
    while (above := int(links[found[-1]]) - 1) != found[-1]:
        found.append(above)
    return found


def predecessor_lists(graph: BackendGraph, edges: Rows, found: BreadthFirst, cutoff: float) -> dict[Any, Any]:
    """Return the predecessors of each vertex on shortest paths, as lists of nodes in the order of the search."""
    starts, predecessors = np.zeros(len(graph) + 1, np.int64), np.empty(len(edges.neighbors), np.uint32)
    collect_predecessors(edges.indptr, edges.neighbors, cutoff, found.order, found.depths, starts, predecessors)
    return node_lists(graph, found.order, starts, predecessors[: starts[-1]])


def node_lists(graph: BackendGraph, order: Array, starts: Array, members: Array) -> dict[Any, Any]:
    """Return the rows of vertices as lists of nodes, by the nodes of ``order``."""
    begins, ends = starts[order].tolist(), starts[order.astype(np.int64) + 1].tolist()
    with collector_paused():
        nodes = graph.nodes_at(members)
        lists = [nodes[begin:end] for begin, end in zip(begins, ends, strict=True)]
        return dict(zip(graph.nodes_at(order), lists, strict=True))

"""The Bellman-Ford algorithm in NetworkX's order, and its results as NetworkX returns them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np

from gpu_pregel.kernels.networkx.bellman_ford_cpu import COUNT, FULL, NO_CYCLE, bellman_ford, copy_lists
from gpu_pregel.networkx.garbage import collector_paused
from gpu_pregel.networkx.graph import BackendGraph
from gpu_pregel.networkx.hop_searches import tree_paths
from gpu_pregel.networkx.predecessor_paths import paths_by_predecessors
from gpu_pregel.networkx.rows import WeightedRows

Array = np.ndarray[Any, Any]


class BellmanFord:
    """A search from one or several vertices; ``cycle`` is a vertex near a negative cycle, or NO_CYCLE."""

    def __init__(self, edges: WeightedRows, sources: Sequence[int], *, heuristic: bool = True) -> None:
        self._edges = edges
        self._sources = np.array(sources, np.int64)
        capacity = len(edges.neighbors) + len(sources)
        while not self._run(capacity, heuristic):
            capacity *= 2

    def _run(self, capacity: int, heuristic: bool) -> bool:
        """Search; return whether there were enough entries for predecessors."""
        n = len(self._edges.indptr) - 1
        self.distances, order = np.full(n, np.inf), np.empty(n, np.uint32)
        self._heads, tails = np.full(n, -1), np.empty(n, np.int64)
        self._vertices, self._links = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
        state = np.array([0, -1, 0])
        edges = (self._edges.indptr, self._edges.neighbors, self._edges.weights)
        lists = (self._heads, tails, self._vertices, self._links)
        self.cycle = int(bellman_ford(*edges, heuristic, self._sources, self.distances, order, *lists, state))
        self.order = order[: state[COUNT]]
        return self.cycle != FULL

    def check(self) -> None:
        """Raise NetworkX's error if there is a negative cycle."""
        if self.cycle != NO_CYCLE:
            raise nx.NetworkXUnbounded("Negative cycle detected.")

    def reached(self, vertex: int | None) -> bool:
        """Return whether a vertex has been found."""
        return vertex is not None and bool(self.distances[vertex] < np.inf)

    def lengths(self, graph: BackendGraph) -> dict[Any, Any]:
        """Return the distance of each node; that of sources is the integer 0."""
        return self._edges.lengths(graph, self.order, self.distances, len(self._sources))

    def length_to(self, vertex: int) -> Any:
        """Return the distance of a vertex that is not a source."""
        return self._edges.number(self.distances[vertex])

    def predecessors(self, graph: BackendGraph) -> dict[Any, list[Any]]:
        """Return all predecessors of each node on shortest paths."""
        starts, members = np.empty(len(self.order) + 1, np.int64), np.empty(len(self._vertices), np.uint32)
        copy_lists(self.order, self._heads, self._vertices, self._links, starts, members)
        nodes, bounds = graph.nodes_at(members[: starts[-1]]), starts.tolist()
        with collector_paused():
            lists = [nodes[begin:end] for begin, end in pairwise(bounds)]
            return dict(zip(graph.nodes_at(self.order), lists, strict=True))

    def _parents(self) -> Array:
        """Return the first predecessor of each vertex; a source or a vertex that is not found is its own."""
        parents = np.arange(len(self._heads))
        found = self._heads >= 0
        found[self._sources] = False
        parents[found] = self._vertices[self._heads[found]]
        return parents

    def paths(self, graph: BackendGraph) -> dict[Any, list[Any]]:
        """Return a path to each node from the only source."""
        parents = self._parents()
        # A vertex may have been found before its parent: go by the number of edges.
        depths, above = (parents != np.arange(len(parents))).astype(np.int64), parents
        for _ in range(len(parents).bit_length()):
            depths += depths[above]
            above = above[above]
        if np.any(parents[above] != above):
            return self._searched_paths(graph, self.order)
        by_depth = self.order[np.argsort(depths[self.order], kind="stable")]
        paths = tree_paths(graph, by_depth, parents, len(self._sources))
        return {node: paths[node] for node in graph.nodes_at(self.order)}

    def path_to(self, graph: BackendGraph, vertex: int) -> list[Any]:
        """Return the path to a vertex from the only source."""
        parents = self._parents()
        vertices = [vertex]
        while parents[vertices[-1]] != vertices[-1]:
            vertices.append(int(parents[vertices[-1]]))
            if len(vertices) > len(parents):
                return self._searched_paths(graph, np.array([vertex]))[graph.topology.nodes[vertex]]
        return [graph.topology.nodes[v] for v in reversed(vertices)]

    def _searched_paths(self, graph: BackendGraph, targets: Array) -> dict[Any, list[Any]]:
        """Return paths that NetworkX finds where first predecessors form a cycle, as rounding errors let them."""
        lists = self.predecessors(graph)
        source = graph.topology.nodes[int(self._sources[0])]
        return {node: next(paths_by_predecessors(source, node, lists)) for node in graph.nodes_at(targets)}


def has_negative_loop(edges: WeightedRows) -> bool:
    """Return whether a self-loop has negative weight."""
    owners = np.repeat(np.arange(len(edges.indptr) - 1), np.diff(edges.indptr))
    return bool(np.any((edges.neighbors == owners) & (edges.weights < 0)))

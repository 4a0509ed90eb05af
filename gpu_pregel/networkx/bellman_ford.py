"""The Bellman-Ford algorithm in NetworkX's order, and its results as NetworkX returns them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import networkx as nx
import numpy as np

from gpu_pregel.kernels.networkx.bellman_ford_cpu import COUNT, FULL, NO_CYCLE, bellman_ford, copy_lists, place_parents
from gpu_pregel.networkx.graph import BackendGraph
from gpu_pregel.networkx.hop_searches import node_lists, paths_by_place
from gpu_pregel.networkx.predecessor_paths import paths_by_predecessors
from gpu_pregel.networkx.rows import WeightedRows

Array = np.ndarray[Any, Any]


class BellmanFord:
    """Searches on one graph, which reuse their arrays; the latest one's results are read from them.

    ``cycle`` is a vertex near a negative cycle, or NO_CYCLE.
    """

    def __init__(self, edges: WeightedRows, *, heuristic: bool = True) -> None:
        n = len(edges.indptr) - 1
        self._edges, self._heuristic = edges, heuristic
        self.distances, self._order = np.full(n, np.inf), np.empty(n, np.uint32)
        self._heads, self._tails = np.full(n, -1), np.empty(n, np.int64)
        self._places = np.empty(n, np.int64)
        # The queue, and what is known of the vertices in it.
        queue, queued, times = np.empty(n + 1, np.int64), np.zeros(n, np.bool_), np.zeros(n, np.int64)
        self._scratch = (queue, queued, times, np.full(n, -1), np.full((n, 2), -1), np.zeros(3, np.int64))
        self._reserve(len(edges.neighbors))

    def _reserve(self, capacity: int) -> None:
        """Make room for ``capacity`` predecessors."""
        self._vertices, self._links = np.empty(capacity, np.int64), np.empty(capacity, np.int64)

    def run(self, sources: Sequence[int]) -> None:
        """Search from one or several vertices."""
        self._sources = np.array(sources, np.int64)
        edges = (self._edges.indptr, self._edges.neighbors, self._edges.weights)
        found = (self.distances, self._order, self._heads, self._tails)
        while True:
            lists = (self._vertices, self._links)
            self.cycle = int(bellman_ford(*edges, self._heuristic, self._sources, *found, *lists, *self._scratch))
            if self.cycle != FULL:
                break
            self._reserve(2 * len(self._vertices) + 1)
        self.order = self._order[: self._scratch[-1][COUNT]]

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
        return node_lists(graph, self.order, starts, members)

    def paths(self, graph: BackendGraph) -> dict[Any, list[Any]]:
        """Return a path to each node from the only source."""
        order, roots, parents = self.order, len(self._sources), np.empty(len(self.order), np.int64)
        if place_parents(order, roots, self._heads, self._vertices, self._places, parents):
            return paths_by_place(graph.nodes_at(order), parents[roots:].tolist(), roots)
        # A vertex may have been found before its parent: go by the number of edges.
        depths, above = (parents != np.arange(len(parents))).astype(np.int64), parents
        for _ in range(len(parents).bit_length()):
            depths += depths[above]
            above = above[above]
        if np.any(parents[above] != above):
            return self._searched_paths(graph, order)
        by_depth = np.argsort(depths, kind="stable")
        ranks = np.empty(len(order), np.int64)
        ranks[by_depth] = np.arange(len(order))
        above = ranks[parents[by_depth[roots:]]]
        paths = paths_by_place(graph.nodes_at(order[by_depth]), above.tolist(), roots)
        return {node: paths[node] for node in graph.nodes_at(order)}

    def path_to(self, graph: BackendGraph, vertex: int) -> list[Any]:
        """Return the path to a vertex from the only source."""
        vertices, source = [vertex], int(self._sources[0])
        while vertices[-1] != source:
            vertices.append(int(self._vertices[self._heads[vertices[-1]]]))
            if len(vertices) > len(self.order):
                return self._searched_paths(graph, np.array([vertex]))[graph.topology.nodes[vertex]]
        return graph.nodes_at(np.array(vertices[::-1]))

    def _searched_paths(self, graph: BackendGraph, targets: Array) -> dict[Any, list[Any]]:
        """Return paths that NetworkX finds where first predecessors form a cycle, as rounding errors let them."""
        if graph.is_renamed:
            raise NotImplementedError("the source may be found again as the graph's own node")
        lists = self.predecessors(graph)
        (source,) = graph.nodes_at(self._sources)
        return {node: next(paths_by_predecessors(source, node, lists)) for node in graph.nodes_at(targets)}


def has_negative_loop(edges: WeightedRows) -> bool:
    """Return whether a self-loop has negative weight."""
    owners = np.repeat(np.arange(len(edges.indptr) - 1), np.diff(edges.indptr))
    return bool(np.any((edges.neighbors == owners) & (edges.weights < 0)))

"""Shortest paths by weights that may be negative: the Bellman-Ford algorithm, and negative cycles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import networkx as nx
import numpy as np

from gpu_pregel.kernels.networkx.bellman_ford_cpu import COUNT, FULL, NO_CYCLE, bellman_ford, copy_lists, place_parents
from gpu_pregel.networkx.dijkstra import searches_from_each
from gpu_pregel.networkx.graph import Array, BackendGraph
from gpu_pregel.networkx.hop_searches import node_lists, paths_by_place, paths_by_predecessors
from gpu_pregel.networkx.rows import WeightedRows, bucket_count, weighted_rows


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


def _search(G: BackendGraph, source: Any, weight: Any) -> BellmanFord:
    """Search from a node; raise an error if there is a negative cycle."""
    if source not in G.topology.numbers:
        raise nx.NodeNotFound(f"Source {source} not in G")
    search = BellmanFord(weighted_rows(G, weight))
    search.run([G.topology.numbers[source]])
    search.check()
    return search


def single_source_bellman_ford(
    G: BackendGraph, source: Any, target: Any = None, weight: Any = "weight"
) -> tuple[Any, Any]:
    """Return distances and paths from a node, to all nodes or to one."""
    if source == target:
        if source not in G:
            raise nx.NodeNotFound(f"Node {source} is not found in the graph")
        return 0, [source]
    search = _search(G, source, weight)
    if target is None:
        return search.lengths(G), search.paths(G)
    end = G.topology.numbers.get(target)
    if end is None or not search.reached(end):
        raise nx.NetworkXNoPath(f"Target {target} cannot be reached from given sources")
    return search.length_to(end), search.path_to(G, end)


def single_source_bellman_ford_path(G: BackendGraph, source: Any, weight: Any = "weight") -> dict[Any, list[Any]]:
    """Return a path from a node to each node."""
    paths: dict[Any, list[Any]] = single_source_bellman_ford(G, source, None, weight)[1]
    return paths


def single_source_bellman_ford_path_length(G: BackendGraph, source: Any, weight: Any = "weight") -> dict[Any, Any]:
    """Return the distance of each node from one."""
    return _search(G, source, weight).lengths(G)


def bellman_ford_path(G: BackendGraph, source: Any, target: Any, weight: Any = "weight") -> list[Any]:
    """Return a path between two nodes."""
    path: list[Any] = single_source_bellman_ford(G, source, target, weight)[1]
    return path


def bellman_ford_path_length(G: BackendGraph, source: Any, target: Any, weight: Any = "weight") -> Any:
    """Return the distance between two nodes."""
    if source == target:
        if source not in G:
            raise nx.NodeNotFound(f"Node {source} not found in graph")
        return 0
    search = _search(G, source, weight)
    end = G.topology.numbers.get(target)
    if end is None or not search.reached(end):
        raise nx.NetworkXNoPath(f"node {target} not reachable from {source}")
    return search.length_to(end)


def bellman_ford_predecessor_and_distance(
    G: BackendGraph, source: Any, target: Any = None, weight: Any = "weight", heuristic: bool = False
) -> tuple[dict[Any, list[Any]], dict[Any, Any]]:
    """Return all predecessors of each node on shortest paths, and its distance."""
    del target  # NetworkX searches everywhere, too
    if source not in G:
        raise nx.NodeNotFound(f"Node {source} is not found in the graph")
    edges = weighted_rows(G, weight)
    if has_negative_loop(edges):
        raise nx.NetworkXUnbounded("Negative cycle detected.")
    if len(G) == 1:
        return {source: []}, {source: 0}
    search = BellmanFord(edges, heuristic=bool(heuristic))
    search.run([G.topology.numbers[source]])
    search.check()
    return search.predecessors(G), search.lengths(G)


def predecessors_from(G: BackendGraph, weight: Any) -> Callable[[Any], dict[Any, list[Any]]]:
    """Return a function from a node to the predecessors of each node on shortest paths from it; it keeps arrays."""
    edges = weighted_rows(G, weight)
    search, has_loop = BellmanFord(edges, heuristic=False), has_negative_loop(edges)

    def lists(source: Any) -> dict[Any, list[Any]]:
        if source not in G:
            raise nx.NodeNotFound(f"Node {source} is not found in the graph")
        if has_loop:
            raise nx.NetworkXUnbounded("Negative cycle detected.")
        if len(G) == 1:
            return {source: []}
        search.run([G.topology.numbers[source]])
        search.check()
        return search.predecessors(G)

    return lists


def _from_each(G: BackendGraph, weight: Any, result: Callable[[BellmanFord], Any]) -> Iterable[tuple[Any, Any]]:
    edges = weighted_rows(G, weight)

    def results() -> Iterator[tuple[Any, Any]]:
        search = BellmanFord(edges)
        for v, node in enumerate(G):
            search.run([v])
            search.check()
            yield node, result(search)

    return results()


def all_pairs_bellman_ford_path_length(G: BackendGraph, weight: Any = "weight") -> Iterable[tuple[Any, dict[Any, Any]]]:
    """Yield each node and the distances from it."""
    return _from_each(G, weight, lambda search: search.lengths(G))


def all_pairs_bellman_ford_path(G: BackendGraph, weight: Any = "weight") -> Iterable[tuple[Any, dict[Any, list[Any]]]]:
    """Yield each node and a path from it to each node."""
    return _from_each(G, weight, lambda search: search.paths(G))


def negative_edge_cycle(G: BackendGraph, weight: Any = "weight", heuristic: bool = True) -> bool:
    """Tell whether there is a cycle of negative length."""
    edges = weighted_rows(G, weight)
    n, m = len(G), len(edges.neighbors)
    if m == 0:
        return False
    # A new node has edges of weight 1 to all nodes; in an undirected graph they are the last of their rows, too.
    everyone = np.arange(n, dtype=np.uint32)
    indptr, neighbors, weights = edges.indptr, edges.neighbors, edges.weights
    if not G.is_directed():
        neighbors, weights = np.insert(neighbors, indptr[1:], np.uint32(n)), np.insert(weights, indptr[1:], 1.0)
        indptr = indptr + np.arange(n + 1)
        m += n
    extended = WeightedRows(
        np.append(indptr, m + n), np.append(neighbors, everyone), np.append(weights, np.ones(n)), edges.integers
    )
    if has_negative_loop(extended):
        return True
    search = BellmanFord(extended, heuristic=bool(heuristic))
    search.run([n])
    return search.cycle != NO_CYCLE


def find_negative_cycle(G: BackendGraph, source: Any, weight: Any = "weight") -> list[Any]:
    """Return the nodes of a negative cycle that can be reached from a node, the first one twice."""
    if source not in G.topology.numbers:
        raise nx.NodeNotFound(f"Source {source} not in G")
    search = BellmanFord(weighted_rows(G, weight))
    search.run([G.topology.numbers[source]])
    if search.cycle == NO_CYCLE:
        raise nx.NetworkXError("No negative cycles detected.")
    start = G.topology.nodes[search.cycle]
    lists = search.predecessors(G)
    # A depth-first search backwards along the lists, each from its end, returns to where it began.
    way, open_lists, seen = [start], [list(lists[start])], {start}
    while way:
        before = open_lists[-1]
        if start in before:
            return [start, *reversed(way)]
        if not before:
            way.pop()
            open_lists.pop()
        elif (node := before.pop()) not in seen:
            way.append(node)
            open_lists.append(list(lists[node]))
            seen.add(node)
    raise NotImplementedError("the search has lost the negative cycle that it noticed")


def johnson(G: BackendGraph, weight: Any = "weight") -> dict[Any, dict[Any, list[Any]]]:
    """Return a path from each node to each node."""
    edges = weighted_rows(G, weight)
    search = BellmanFord(edges)
    search.run(range(len(G)))
    search.check()
    ends = np.repeat(search.distances, np.diff(edges.indptr))
    weights = edges.weights + ends - search.distances[edges.neighbors]
    changed = edges._replace(weights=weights, buckets=bucket_count(weights) if edges.integers else 0)
    return {node: found.paths() for node, found in searches_from_each(G, changed)}

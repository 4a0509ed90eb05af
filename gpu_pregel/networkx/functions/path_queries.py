"""Shortest paths with or without weights, by the method that is asked for."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import networkx as nx

from gpu_pregel.networkx.all_pairs import all_figures, check_connected, has_negative_weight
from gpu_pregel.networkx.dijkstra import Dijkstra, lengths_from, paths_from, weighted_path_between
from gpu_pregel.networkx.functions import bellman_ford, shortest_paths, weighted_paths
from gpu_pregel.networkx.functions.bellman_ford import BellmanFord
from gpu_pregel.networkx.garbage import can_pause
from gpu_pregel.networkx.graph import BackendGraph
from gpu_pregel.networkx.hop_searches import (
    HopSearch,
    PredecessorSearch,
    paths_by_predecessors,
    paths_to_each,
    search,
    tree_paths,
)
from gpu_pregel.networkx.rows import rows, weighted_rows

UNWEIGHTED, DIJKSTRA, BELLMAN_FORD = "unweighted", "dijkstra", "bellman-ford"


def _method(weight: Any, method: str) -> str:
    """Return the method, which decides only if there are weights."""
    if method not in (DIJKSTRA, BELLMAN_FORD):
        raise ValueError(f"method not supported: {method}")
    return UNWEIGHTED if weight is None else method


def has_path(G: BackendGraph, source: Any, target: Any) -> bool:
    """Tell whether there is a path between two nodes."""
    try:
        shortest_path(G, source, target)
    except nx.NetworkXNoPath:
        return False
    return True


def shortest_path(
    G: BackendGraph, source: Any = None, target: Any = None, weight: Any = None, method: str = "dijkstra"
) -> Any:
    """Return a path, those from a source or to a target by node, or an iterator over nodes and their paths."""
    method = _method(weight, method)
    if source is None and target is None:
        if method == UNWEIGHTED:
            return shortest_paths.all_pairs_shortest_path(G)
        if method == DIJKSTRA:
            return weighted_paths.all_pairs_dijkstra_path(G, weight=weight)
        return bellman_ford.all_pairs_bellman_ford_path(G, weight=weight)
    if source is None:
        return _paths_to(G, target, weight, method)
    if target is None:
        if method == UNWEIGHTED:
            return shortest_paths.single_source_shortest_path(G, source)
        if method == DIJKSTRA:
            return weighted_paths.single_source_dijkstra_path(G, source, weight=weight)
        return bellman_ford.single_source_bellman_ford_path(G, source, weight=weight)
    if method == UNWEIGHTED:
        return shortest_paths.bidirectional_shortest_path(G, source, target)
    if method == DIJKSTRA:
        return weighted_path_between(G, source, target, weight, mixed=True)[1]
    return bellman_ford.bellman_ford_path(G, source, target, weight)


def _target_number(G: BackendGraph, target: Any, message: str) -> int:
    """Return the vertex of a target from which paths are followed backwards."""
    if target not in G:
        raise nx.NodeNotFound(message)
    return G.topology.numbers[target]


def _paths_to(G: BackendGraph, target: Any, weight: Any, method: str) -> dict[Any, list[Any]]:
    """Return a path from each node to a target, by searches of the reversed graph."""
    if method == UNWEIGHTED:
        end = _target_number(G, target, f"Source {target} not in G")
        found = search(rows(G, reverse=True), end, None)
        return tree_paths(G, found.order, found.parents, reverse=True)
    edges = weighted_rows(G, weight, reverse=True, mixed=True)
    if method == DIJKSTRA:
        end = _target_number(G, target, f"Node {target} not found in graph")
        paths = paths_from(G, edges, [end])
    else:
        end = _target_number(G, target, f"Source {target} not in G")
        found_by_weight = BellmanFord(edges)
        found_by_weight.run([end])
        found_by_weight.check()
        paths = found_by_weight.paths(G)
    pausing = can_pause()
    try:
        if pausing:
            gc.disable()
        return {node: path[::-1] for node, path in paths.items()}
    finally:
        if pausing:
            gc.enable()


def shortest_path_length(
    G: BackendGraph, source: Any = None, target: Any = None, weight: Any = None, method: str = "dijkstra"
) -> Any:
    """Return a distance, those from a source or to a target by node, or an iterator over all nodes and theirs."""
    method = _method(weight, method)
    if source is None and target is None:
        if method == UNWEIGHTED:
            return shortest_paths.all_pairs_shortest_path_length(G)
        if method == DIJKSTRA:
            return weighted_paths.all_pairs_dijkstra_path_length(G, weight=weight)
        return bellman_ford.all_pairs_bellman_ford_path_length(G, weight=weight)
    if source is None:
        return _lengths_to(G, target, weight, method)
    if target is None:
        if method == UNWEIGHTED:
            return shortest_paths.single_source_shortest_path_length(G, source)
        if method == DIJKSTRA:
            return weighted_paths.single_source_dijkstra_path_length(G, source, weight=weight)
        return bellman_ford.single_source_bellman_ford_path_length(G, source, weight=weight)
    if method == UNWEIGHTED:
        return len(shortest_paths.bidirectional_shortest_path(G, source, target)) - 1
    if method == DIJKSTRA:
        return weighted_paths.dijkstra_path_length(G, source, target, weight)
    return bellman_ford.bellman_ford_path_length(G, source, target, weight)


def _lengths_to(G: BackendGraph, target: Any, weight: Any, method: str) -> dict[Any, Any]:
    """Return the distance from each node to a target, by searches of the reversed graph."""
    if method == UNWEIGHTED:
        end = _target_number(G, target, f"Source {target} is not in G")
        return G.values_at(*HopSearch(G, rows(G, reverse=True)).run(end))
    edges = weighted_rows(G, weight, reverse=True, mixed=method == DIJKSTRA)
    if method == DIJKSTRA:
        return lengths_from(G, edges, _target_number(G, target, f"Node {target} not found in graph"))
    found_by_weight = BellmanFord(edges)
    found_by_weight.run([_target_number(G, target, f"Source {target} not in G")])
    found_by_weight.check()
    return found_by_weight.lengths(G)


def average_shortest_path_length(G: BackendGraph, weight: Any = None, method: str | None = None) -> Any:
    """Return the mean distance of all ordered pairs of nodes."""
    if method is None:
        method = UNWEIGHTED if weight is None else DIJKSTRA
    if method not in (UNWEIGHTED, DIJKSTRA, BELLMAN_FORD, "floyd-warshall", "floyd-warshall-numpy"):
        raise ValueError(f"method not supported: {method}")
    n = len(G)
    if n == 0:
        raise nx.NetworkXPointlessConcept("the null graph has no paths, thus there is no average shortest path length")
    if n == 1:
        return 0
    check_connected(G)
    total: Any
    if method == UNWEIGHTED:
        total = sum(all_figures(G).distances)
    elif method == BELLMAN_FORD and has_negative_weight(G, weight):
        lengths = bellman_ford.all_pairs_bellman_ford_path_length(G, weight)
        total = sum(sum(distances.values()) for _, distances in lengths)
    elif method != DIJKSTRA and has_negative_weight(G, weight):
        raise NotImplementedError("an edge's weight is negative")
    else:
        figures = all_figures(G, weight)
        figures.check()
        total = sum(figures.distances)
    # A matrix's sum is one of Python's numbers there.
    return (float(total) if method == "floyd-warshall-numpy" else total) / (n * (n - 1))


def _predecessors_from(G: BackendGraph, weight: Any, method: str) -> Callable[[Any], dict[Any, list[Any]]]:
    """Return a function from a node to the predecessors of each node on shortest paths from it; it keeps arrays."""
    if weight is None or method == UNWEIGHTED:
        by_hops = PredecessorSearch(G, rows(G))

        def lists_by_hops(source: Any) -> dict[Any, list[Any]]:
            if source not in G:
                raise nx.NodeNotFound(f"Source {source} not in G")
            by_hops.run(G.topology.numbers[source])
            return by_hops.lists()

        return lists_by_hops
    if method == DIJKSTRA:
        by_weight = Dijkstra(G, weighted_rows(G, weight, mixed=True))

        def lists_by_weight(source: Any) -> dict[Any, list[Any]]:
            if source not in G:
                raise nx.NodeNotFound(f"Node {source} is not found in the graph")
            by_weight.run([G.topology.numbers[source]])
            return by_weight.predecessors()

        return lists_by_weight
    if method == BELLMAN_FORD:
        return bellman_ford.predecessors_from(G, weight)
    raise ValueError(f"method not supported: {method}")


def all_shortest_paths(
    G: BackendGraph, source: Any, target: Any, weight: Any = None, method: str = "dijkstra"
) -> Iterable[list[Any]]:
    """Yield all shortest paths between two nodes."""
    return paths_by_predecessors(source, target, _predecessors_from(G, weight, method)(source))


def _all_paths_from(G: BackendGraph, source: Any, weight: Any, method: str) -> Iterator[tuple[Any, list[list[Any]]]]:
    yield from paths_to_each(source, _predecessors_from(G, weight, method)(source))


def single_source_all_shortest_paths(
    G: BackendGraph, source: Any, weight: Any = None, method: str = "dijkstra"
) -> Iterable[tuple[Any, list[list[Any]]]]:
    """Yield each node that can be reached from a source, and all shortest paths to it."""
    # Weights that are refused must be so before the iteration begins.
    weighted_rows(G, weight)
    return _all_paths_from(G, source, weight, method)


def all_pairs_all_shortest_paths(
    G: BackendGraph, weight: Any = None, method: str = "dijkstra"
) -> Iterable[tuple[Any, dict[Any, list[list[Any]]]]]:
    """Yield each node, and all shortest paths from it by node."""
    weighted_rows(G, weight)

    def results() -> Iterator[tuple[Any, dict[Any, list[list[Any]]]]]:
        # NetworkX checks the method with the first node.
        predecessors = _predecessors_from(G, weight, method) if len(G) else None
        for node in G:
            assert predecessors is not None
            pausing = can_pause()
            try:
                if pausing:
                    gc.disable()
                paths = dict(paths_to_each(node, predecessors(node)))
            finally:
                if pausing:
                    gc.enable()
            yield node, paths

    return results()

"""Shortest paths by weight: Dijkstra's algorithm."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import networkx as nx

from gpu_pregel.networkx.dijkstra import NONE, Dijkstra, Found, paths_from, searches_from_each, weighted_path_between
from gpu_pregel.networkx.graph import BackendGraph
from gpu_pregel.networkx.rows import weighted_rows


def source_vertices(G: BackendGraph, sources: Any) -> list[int]:
    """Return the vertices of sources, of which there must be one, and all in the graph."""
    if not sources:
        raise ValueError("sources must not be empty")
    for node in sources:
        if node not in G:
            raise nx.NodeNotFound(f"Node {node} not found in graph")
    return [G.topology.numbers[node] for node in dict.fromkeys(sources)]


def multi_source_dijkstra(
    G: BackendGraph, sources: Any, target: Any = None, cutoff: float | None = None, weight: Any = "weight"
) -> tuple[Any, Any]:
    """Return distances and paths from the nearest source, to all nodes or to one."""
    vertices = source_vertices(G, sources)
    if target in sources:
        return 0, [target]
    search = Dijkstra(G, weighted_rows(G, weight, mixed=True), cutoff)
    end = NONE if target is None else G.topology.numbers.get(target, NONE)
    search.run(vertices, end)
    if target is None:
        return search.lengths(), search.paths()
    if not search.reached(end):
        raise nx.NetworkXNoPath(f"No path to {target}.")
    return search.length_to(end), search.path_to(end)


def multi_source_dijkstra_path(
    G: BackendGraph, sources: Any, cutoff: float | None = None, weight: Any = "weight"
) -> dict[Any, list[Any]]:
    """Return a path to each node from its nearest source."""
    vertices = source_vertices(G, sources)
    return paths_from(G, weighted_rows(G, weight, mixed=True), vertices, cutoff)


def multi_source_dijkstra_path_length(
    G: BackendGraph, sources: Any, cutoff: float | None = None, weight: Any = "weight"
) -> dict[Any, Any]:
    """Return the distance of each node from its nearest source."""
    vertices = source_vertices(G, sources)
    search = Dijkstra(G, weighted_rows(G, weight, mixed=True), cutoff)
    search.run(vertices)
    return search.lengths()


def single_source_dijkstra(
    G: BackendGraph, source: Any, target: Any = None, cutoff: float | None = None, weight: Any = "weight"
) -> tuple[Any, Any]:
    """Return distances and paths from a node, to all nodes or to one."""
    return multi_source_dijkstra(G, {source}, target, cutoff, weight)


def single_source_dijkstra_path(
    G: BackendGraph, source: Any, cutoff: float | None = None, weight: Any = "weight"
) -> dict[Any, list[Any]]:
    """Return a path from a node to each node."""
    return multi_source_dijkstra_path(G, {source}, cutoff, weight)


def single_source_dijkstra_path_length(
    G: BackendGraph, source: Any, cutoff: float | None = None, weight: Any = "weight"
) -> dict[Any, Any]:
    """Return the distance of each node from one."""
    return multi_source_dijkstra_path_length(G, {source}, cutoff, weight)


def dijkstra_path(G: BackendGraph, source: Any, target: Any, weight: Any = "weight") -> list[Any]:
    """Return a path between two nodes."""
    path: list[Any] = single_source_dijkstra(G, source, target, None, weight)[1]
    return path


def dijkstra_path_length(G: BackendGraph, source: Any, target: Any, weight: Any = "weight") -> Any:
    """Return the distance between two nodes."""
    if source not in G:
        raise nx.NodeNotFound(f"Node {source} not found in graph")
    if source == target:
        return 0
    search = Dijkstra(G, weighted_rows(G, weight, mixed=True))
    end = G.topology.numbers.get(target, NONE)
    search.run([G.topology.numbers[source]], end)
    if not search.reached(end):
        raise nx.NetworkXNoPath(f"Node {target} not reachable from {source}")
    return search.length_to(end)


def bidirectional_dijkstra(G: BackendGraph, source: Any, target: Any, weight: Any = "weight") -> tuple[Any, list[Any]]:
    """Return the length and the nodes of a path between two nodes, from searches of both ends."""
    return weighted_path_between(G, source, target, weight)


def dijkstra_predecessor_and_distance(
    G: BackendGraph, source: Any, cutoff: float | None = None, weight: Any = "weight"
) -> tuple[dict[Any, list[Any]], dict[Any, Any]]:
    """Return all predecessors of each node on shortest paths, and its distance."""
    if source not in G:
        raise nx.NodeNotFound(f"Node {source} is not found in the graph")
    search = Dijkstra(G, weighted_rows(G, weight, mixed=True), cutoff)
    search.run([G.topology.numbers[source]])
    return search.predecessors(), search.lengths()


def _from_each(
    G: BackendGraph, weight: Any, cutoff: float | None, result: Callable[[Found], Any]
) -> Iterator[tuple[Any, Any]]:
    for node, found in searches_from_each(G, weighted_rows(G, weight, mixed=True), cutoff):
        yield node, result(found)


def all_pairs_dijkstra(
    G: BackendGraph, cutoff: float | None = None, weight: Any = "weight"
) -> Iterable[tuple[Any, tuple[dict[Any, Any], dict[Any, list[Any]]]]]:
    """Yield each node, and the distances and paths from it."""
    return _from_each(G, weight, cutoff, lambda found: (found.lengths(), found.paths()))


def all_pairs_dijkstra_path_length(
    G: BackendGraph, cutoff: float | None = None, weight: Any = "weight"
) -> Iterable[tuple[Any, dict[Any, Any]]]:
    """Yield each node and the distances from it."""
    return _from_each(G, weight, cutoff, Found.lengths)


def all_pairs_dijkstra_path(
    G: BackendGraph, cutoff: float | None = None, weight: Any = "weight"
) -> Iterable[tuple[Any, dict[Any, list[Any]]]]:
    """Yield each node and a path from it to each node."""
    return _from_each(G, weight, cutoff, Found.paths)

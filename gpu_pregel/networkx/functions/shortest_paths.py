"""Shortest paths by the number of edges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx

from gpu_pregel.networkx.graph import BackendGraph
from gpu_pregel.networkx.hop_searches import (
    HopSearch,
    PredecessorSearch,
    path_between,
    paths_from_each,
    search,
    tree_paths,
)
from gpu_pregel.networkx.rows import Rows, rows


def _require(G: BackendGraph, node: Any, role: str) -> int:
    """Return the vertex of a node that must be in the graph."""
    if node not in G:
        raise nx.NodeNotFound(f"{role} {node} is not in G")
    return G.topology.numbers[node]


def _lengths(G: BackendGraph, edges: Rows, source: int, cutoff: float | None) -> dict[Any, int]:
    return G.values_at(*HopSearch(G, edges, cutoff).run(source))


def single_source_shortest_path_length(G: BackendGraph, source: Any, cutoff: float | None = None) -> dict[Any, int]:
    """Return the hops to each node within the cutoff, in the order in which they are found."""
    return _lengths(G, rows(G), _require(G, source, "Source"), cutoff)


def single_target_shortest_path_length(G: BackendGraph, target: Any, cutoff: float | None = None) -> dict[Any, int]:
    """Return the hops from each node within the cutoff, in the order in which they are found."""
    return _lengths(G, rows(G, reverse=True), _require(G, target, "Target"), cutoff)


def all_pairs_shortest_path_length(
    G: BackendGraph, cutoff: float | None = None
) -> Iterator[tuple[Any, dict[Any, int]]]:
    """Yield each node and the hops from it to each node."""
    each = HopSearch(G, rows(G), cutoff)
    for v, node in enumerate(G):
        yield node, G.values_at(*each.run(v))


def single_source_shortest_path(G: BackendGraph, source: Any, cutoff: float | None = None) -> dict[Any, list[Any]]:
    """Return a path to each node within the cutoff, in the order in which they are found."""
    if source not in G:
        raise nx.NodeNotFound(f"Source {source} not in G")
    found = search(rows(G), G.topology.numbers[source], cutoff)
    return tree_paths(G, found.order, found.parents)


def single_target_shortest_path(G: BackendGraph, target: Any, cutoff: float | None = None) -> dict[Any, list[Any]]:
    """Return a path from each node within the cutoff, in the order in which they are found."""
    if target not in G:
        raise nx.NodeNotFound(f"Target {target} not in G")
    found = search(rows(G, reverse=True), G.topology.numbers[target], cutoff)
    return tree_paths(G, found.order, found.parents, reverse=True)


def all_pairs_shortest_path(G: BackendGraph, cutoff: float | None = None) -> Iterator[tuple[Any, dict[Any, list[Any]]]]:
    """Yield each node and a path from it to each node."""
    yield from paths_from_each(G, rows(G), cutoff)


def bidirectional_shortest_path(G: BackendGraph, source: Any, target: Any) -> list[Any]:
    """Return the path that searches from both ends find."""
    _require(G, source, "Source")
    _require(G, target, "Target")
    return path_between(G, source, target)


def predecessor(
    G: BackendGraph,
    source: Any,
    target: Any = None,
    cutoff: float | None = None,
    return_seen: bool | None = None,
) -> Any:
    """Return all predecessors of each node on shortest paths, and with ``return_seen`` the hops to it."""
    if source not in G:
        raise nx.NodeNotFound(f"Source {source} not in G")
    # The first level is searched whatever the cutoff is.
    found = PredecessorSearch(G, rows(G), max(float(cutoff), 1.0) if cutoff else None)
    found.run(G.topology.numbers[source])
    depths = found.hops()
    if target is not None and target not in depths:
        return ([], -1) if return_seen else []
    lists = found.lists()
    if target is not None:
        return (lists[target], depths[target]) if return_seen else lists[target]
    return (lists, depths) if return_seen else lists

"""Breadth-first and depth-first search."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np

from gpu_pregel.kernels.networkx import depth_first_cpu
from gpu_pregel.networkx.graph import Array, BackendGraph
from gpu_pregel.networkx.results import digraph, pairs
from gpu_pregel.networkx.rows import edges_of_rows
from gpu_pregel.networkx.searches import (
    FORWARD,
    LIMITED,
    NONTREE,
    REVERSE,
    BreadthFirst,
    breadth_first,
    depth_first,
    starts_of,
    vertex_of,
)

Edges = Iterator[tuple[Any, Any]]
Sort = Callable[[Iterable[Any]], Iterable[Any]] | None

_BREADTH_LABELS = ("tree", "forward", "level", "reverse")
_DEPTH_LABELS = ("forward", "nontree", "reverse", "reverse-depth_limit")


def bfs_edges(
    G: BackendGraph,
    source: Any,
    reverse: bool = False,
    depth_limit: float | None = None,
    sort_neighbors: Sort = None,
) -> Edges:
    """Yield the edges by which a breadth-first search finds nodes."""
    yield from pairs(G, *_breadth_first_tree(G, source, depth_limit, reverse=reverse))


def generic_bfs_edges(G: BackendGraph, source: Any, neighbors: Any = None, depth_limit: float | None = None) -> Edges:
    """Yield the edges by which a breadth-first search finds nodes."""
    yield from pairs(G, *_breadth_first_tree(G, source, depth_limit))


def bfs_tree(
    G: BackendGraph,
    source: Any,
    reverse: bool = False,
    depth_limit: float | None = None,
    sort_neighbors: Sort = None,
) -> nx.DiGraph[Any]:
    """Return the tree of a breadth-first search."""
    if source is None:
        raise ValueError("None cannot be a node")
    parents, children = _breadth_first_tree(G, source, depth_limit, reverse=reverse)
    nodes = G.nodes_at(children)
    return digraph([source, *nodes], zip(G.nodes_at(parents), nodes, strict=True))


def bfs_predecessors(
    G: BackendGraph, source: Any, depth_limit: float | None = None, sort_neighbors: Sort = None
) -> Edges:
    """Yield each node that a breadth-first search finds, and the node before it."""
    parents, children = _breadth_first_tree(G, source, depth_limit)
    yield from pairs(G, children, parents)


def bfs_successors(
    G: BackendGraph, source: Any, depth_limit: float | None = None, sort_neighbors: Sort = None
) -> Iterator[tuple[Any, list[Any]]]:
    """Yield each node from which a breadth-first search finds others, and those."""
    parents, children = _breadth_first_tree(G, source, depth_limit)
    if len(parents) == 0:
        yield source, []
        return
    nodes = G.nodes_at(children)
    begins = np.flatnonzero(np.append(True, parents[1:] != parents[:-1]))
    ends = [*begins[1:].tolist(), len(nodes)]
    for node, begin, end in zip(G.nodes_at(parents[begins]), begins.tolist(), ends, strict=True):
        yield node, nodes[begin:end]


def bfs_layers(G: BackendGraph, sources: Any) -> Iterator[list[Any]]:
    """Yield the nodes at each distance from the sources."""
    # The order of the first layer is that of a set, as in NetworkX.
    nodes = list(set([sources] if sources in G else sources))
    for node in nodes:
        if node not in G:
            raise nx.NetworkXError(f"The node {node} is not in the graph.")
    found = breadth_first(G, [G.topology.numbers[node] for node in nodes])
    yield from _layers(G, found)


def descendants_at_distance(G: BackendGraph, source: Any, distance: Any) -> set[Any]:
    """Return the nodes at a distance from the source."""
    if source not in G:
        raise nx.NetworkXError(f"The node {source} is not in the graph.")
    found = breadth_first(G, [G.topology.numbers[source]], distance)
    return set(G.nodes_at(found.order[found.depths[found.order] == distance]))


def bfs_labeled_edges(G: BackendGraph, sources: Any) -> Iterator[tuple[Any, Any, str]]:
    """Yield the edges that a breadth-first search goes through, each with its kind."""
    nodes = list(dict.fromkeys([sources] if sources in G else sources))
    numbers = G.topology.numbers
    known = [numbers[node] for node in nodes if node in numbers]
    found = breadth_first(G, known)
    u, v = _edges_of(G, found.order)
    du, dv = found.depths[u], found.depths[v]
    places = np.empty(len(G), np.int64)
    places[found.order] = np.arange(len(found.order))
    is_tree = (du < dv) & (found.parents[v] == u)
    labels = np.select([is_tree, du < dv, du == dv], [0, 1, 2], 3)
    if not G.is_directed():
        # An edge to an earlier vertex has been reported there.
        reported = (labels == 3) | ((labels == 2) & (places[v] < places[u]))
        u, v, labels = u[~reported], v[~reported], labels[~reported]
    absent = next((i for i, node in enumerate(nodes) if node not in numbers), None)
    if absent is not None:
        # The search ends where it looks for the neighbours of such a node.
        before = places[u] < absent
        u, v, labels = u[before], v[before], labels[before]
    yield from zip(G.nodes_at(u), G.nodes_at(v), map(_BREADTH_LABELS.__getitem__, labels.tolist()), strict=True)
    if absent is not None:
        raise KeyError(nodes[absent])


def edge_bfs(G: BackendGraph, source: Any = None, orientation: str | None = None) -> Iterator[tuple[Any, ...]]:
    """Yield each edge as a breadth-first search goes through it first."""
    starts = starts_of(G, source)
    found = breadth_first(G, starts.tolist())
    u, v = _edges_of(G, found.order)
    if not G.is_directed():
        places = np.empty(len(G), np.int64)
        places[found.order] = np.arange(len(found.order))
        first = places[u] <= places[v]
        u, v = u[first], v[first]
    yield from _oriented(pairs(G, u, v), orientation)


def edge_dfs(G: BackendGraph, source: Any = None, orientation: str | None = None) -> Iterator[tuple[Any, ...]]:
    """Yield each edge as a depth-first search goes through it first."""
    topology = G.topology
    reverse = np.arange(topology.m) if G.is_directed() else topology.reverse_edges
    found = np.empty(topology.m, np.int64)
    arrays = (topology.indptr, topology.neighbors, reverse, starts_of(G, source), found)
    found = found[: depth_first_cpu.depth_first_edges(*arrays)]
    yield from _oriented(pairs(G, topology.sources[found], topology.neighbors[found]), orientation)


def _oriented(edges: Edges, orientation: str | None) -> Iterator[tuple[Any, ...]]:
    return edges if orientation is None else ((u, v, "forward") for u, v in edges)


def dfs_edges(
    G: BackendGraph, source: Any = None, depth_limit: float | None = None, *, sort_neighbors: Sort = None
) -> Edges:
    """Yield the edges by which a depth-first search finds nodes."""
    yield from pairs(G, *_depth_first_tree(G, source, depth_limit))


def dfs_tree(
    G: BackendGraph, source: Any = None, depth_limit: float | None = None, *, sort_neighbors: Sort = None
) -> nx.DiGraph[Any]:
    """Return the tree of a depth-first search, or the forest if no source is given."""
    parents, children = _depth_first_tree(G, source, depth_limit)
    nodes = G.nodes_at(children)
    known = G.topology.nodes if source is None else [source, *nodes]
    return digraph(known, zip(G.nodes_at(parents), nodes, strict=True))


def dfs_predecessors(
    G: BackendGraph, source: Any = None, depth_limit: float | None = None, *, sort_neighbors: Sort = None
) -> dict[Any, Any]:
    """Return the node from which a depth-first search finds each node."""
    parents, children = _depth_first_tree(G, source, depth_limit)
    return dict(pairs(G, children, parents))


def dfs_successors(
    G: BackendGraph, source: Any = None, depth_limit: float | None = None, *, sort_neighbors: Sort = None
) -> dict[Any, list[Any]]:
    """Return the nodes that a depth-first search finds from each node."""
    parents, children = _depth_first_tree(G, source, depth_limit)
    # Nodes are in the order in which the first of their successors is found.
    first = np.full(len(G), -1, np.int64)
    first[parents[::-1]] = np.arange(len(parents))[::-1]
    order = np.argsort(first[parents], kind="stable")
    parents, nodes = parents[order], G.nodes_at(children[order])
    begins = np.flatnonzero(np.append(True, parents[1:] != parents[:-1])[: len(parents)])
    rows = pairwise([*begins.tolist(), len(nodes)])
    return {node: nodes[begin:end] for node, (begin, end) in zip(G.nodes_at(parents[begins]), rows, strict=True)}


def dfs_preorder_nodes(
    G: BackendGraph, source: Any = None, depth_limit: float | None = None, *, sort_neighbors: Sort = None
) -> Iterator[Any]:
    """Yield the nodes as a depth-first search finds them."""
    if source is not None and source not in G:
        yield source  # as NetworkX does before it looks for neighbours
    yield from G.nodes_at(depth_first(G, _start(G, source), FORWARD, depth_limit).targets)


def dfs_postorder_nodes(
    G: BackendGraph, source: Any = None, depth_limit: float | None = None, *, sort_neighbors: Sort = None
) -> Iterator[Any]:
    """Yield the nodes as a depth-first search leaves them; not those at the depth limit, which it does not enter."""
    yield from G.nodes_at(depth_first(G, _start(G, source), REVERSE, depth_limit).targets)


def dfs_labeled_edges(
    G: BackendGraph, source: Any = None, depth_limit: float | None = None, *, sort_neighbors: Sort = None
) -> Iterator[tuple[Any, Any, str]]:
    """Yield the edges that a depth-first search goes through, each with its kind."""
    if source is not None and source not in G:
        yield source, source, "forward"  # as NetworkX does before it looks for neighbours
    events = depth_first(G, _start(G, source), FORWARD | NONTREE | REVERSE | LIMITED, depth_limit)
    labels = map(_DEPTH_LABELS.__getitem__, events.kinds.tolist())
    yield from zip(G.nodes_at(events.sources), G.nodes_at(events.targets), labels, strict=True)


def _breadth_first_tree(
    G: BackendGraph, source: Any, depth_limit: float | None, *, reverse: bool = False
) -> tuple[Array, Array]:
    """Return the parent of each vertex that is found, and these vertices."""
    found = breadth_first(G, [vertex_of(G, source)], depth_limit, reverse=reverse)
    children = found.order[1:]
    return found.parents[children], children


def _depth_first_tree(G: BackendGraph, source: Any, depth_limit: float | None) -> tuple[Array, Array]:
    """Return the parent of each vertex that is found but is no start, and these vertices."""
    events = depth_first(G, _start(G, source), FORWARD, depth_limit)
    found = events.sources != events.targets
    return events.sources[found], events.targets[found]


def _start(G: BackendGraph, source: Any) -> int | None:
    return None if source is None else vertex_of(G, source)


def _layers(G: BackendGraph, found: BreadthFirst) -> Iterator[list[Any]]:
    """Yield the nodes of each depth, as they are found."""
    nodes = G.nodes_at(found.order)
    ends = np.cumsum(np.bincount(found.depths[found.order])).tolist()
    for begin, end in zip([0, *ends], ends, strict=False):
        yield nodes[begin:end]


def _edges_of(G: BackendGraph, order: Array) -> tuple[Array, Array]:
    """Return the ends of the out-edges of vertices in this order, without parallel ones."""
    indptr, neighbors = G.topology.distinct
    return np.repeat(order, np.diff(indptr)[order]), neighbors[edges_of_rows(indptr, order)]

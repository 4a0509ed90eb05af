"""Eccentricities, and the nodes in the middle and on the border of a graph."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

from gpu_pregel.algorithms import diameter as diameters
from gpu_pregel.algorithms import eccentricity as eccentricities
from gpu_pregel.networkx.all_pairs import all_figures, is_connected
from gpu_pregel.networkx.dijkstra import Dijkstra
from gpu_pregel.networkx.graph import BackendGraph
from gpu_pregel.networkx.hop_searches import chain, search
from gpu_pregel.networkx.rows import rows, weighted_rows
from gpu_pregel.networkx.searches import FORWARD, REVERSE, depth_first


def _check_reached(G: BackendGraph, reached: int) -> None:
    """Raise NetworkX's error if a search did not reach all nodes."""
    if reached != len(G):
        reason = "digraph is not strongly connected" if G.is_directed() else "graph is not connected"
        raise nx.NetworkXError(f"Found infinite path length because the {reason}")


def _of_all(G: BackendGraph, weight: Any) -> dict[Any, Any]:
    """Return the eccentricity of each node."""
    if len(G) == 0:
        return {}
    if weight is None:
        _check_reached(G, len(G) if is_connected(G) else 0)
        return G.by_node(eccentricities.eccentricity(G.engine()).to_numpy())
    figures = all_figures(G, weight)
    for v in range(len(G)):
        # Each search of NetworkX may fail, or reach too little.
        figures.check(v + 1)
        _check_reached(G, int(figures.reached[v]))
    return dict(zip(G, figures.farthest, strict=True))


def _of_one(G: BackendGraph, v: int, weight: Any) -> Any:
    """Return the eccentricity of a vertex."""
    if weight is None:
        found = search(rows(G), v, None)
        _check_reached(G, len(found.order))
        return int(found.depths.max())
    by_weight = Dijkstra(G, weighted_rows(G, weight))
    by_weight.run([v])
    _check_reached(G, len(by_weight.order))
    return max(by_weight.values())


def _nodes_among(G: BackendGraph, nodes: Any) -> Iterator[Any]:
    """Yield those of several nodes that are in the graph."""
    try:
        iterator = iter(nodes)
    except TypeError:
        raise nx.NetworkXError(f"Node {nodes} is not in the graph.") from None
    for node in iterator:
        try:
            hash(node)
        except TypeError:
            raise nx.NetworkXError(f"Node {node} in sequence nbunch is not a valid node.") from None
        if node in G:
            yield node


def eccentricity(G: BackendGraph, v: Any = None, sp: Any = None, weight: Any = None) -> Any:
    """Return the largest distance from a node, from several, or from each."""
    if v is None:
        return _of_all(G, weight)
    numbers = G.topology.numbers
    if v in G:
        return _of_one(G, numbers[v], weight)
    return {node: _of_one(G, numbers[node], weight) for node in _nodes_among(G, v)}


def _bounds(G: BackendGraph, usebounds: bool) -> bool:
    """Return whether NetworkX would search for bounds."""
    return usebounds is True and not G.is_directed()


def _all(G: BackendGraph, usebounds: bool, weight: Any) -> dict[Any, Any]:
    """Return all eccentricities; raise the error of NetworkX's search for bounds where it would be used."""
    if _bounds(G, usebounds):
        if len(G) == 0:
            max(())  # its error is that of the search
        elif not is_connected(G):
            raise nx.NetworkXError("Cannot compute metric because graph is not connected.")
    return _of_all(G, weight)


def diameter(G: BackendGraph, e: Any = None, usebounds: bool = False, weight: Any = None) -> Any:
    """Return the largest distance between two nodes."""
    if weight is None and len(G) > 0 and not G.is_directed() and is_connected(G):
        return diameters.diameter(G.engine()).lower
    return max(_all(G, usebounds, weight).values())


def radius(G: BackendGraph, e: Any = None, usebounds: bool = False, weight: Any = None) -> Any:
    """Return the smallest eccentricity."""
    return min(_all(G, usebounds, weight).values())


def periphery(G: BackendGraph, e: Any = None, usebounds: bool = False, weight: Any = None) -> list[Any]:
    """Return the nodes of the largest eccentricity."""
    found = _all(G, usebounds, weight)
    largest = max(found.values())
    return [node for node, value in found.items() if value == largest]


def center(G: BackendGraph, e: Any = None, usebounds: bool = False, weight: Any = None) -> list[Any]:
    """Return the nodes of the smallest eccentricity."""
    if len(G) == 0 and weight is None and not G.is_directed() and not _bounds(G, usebounds):
        raise nx.NetworkXPointlessConcept("G has no nodes.")
    if weight is None and len(G) > 0 and is_tree(G):
        return tree_center(G)
    found = _all(G, usebounds, weight)
    smallest = min(found.values())
    return [node for node, value in found.items() if value == smallest]


def barycenter(G: BackendGraph, weight: Any = None, attr: Any = None, sp: Any = None) -> list[Any]:
    """Return the nodes of the smallest sum of distances to all nodes."""
    plain = weight is None and not G.is_directed()
    if len(G) == 0:
        if plain:
            raise nx.NetworkXPointlessConcept("G has no nodes.")
        return []
    if plain and is_tree(G):
        return tree_centroid(G)
    sums = _sums_by_hops(G) if weight is None else _sums_by_weight(G, weight)
    smallest = min(sums)
    return [node for node, total in zip(G, sums, strict=True) if total == smallest]


def _disconnected(G: BackendGraph) -> nx.NetworkXNoPath:
    """Return the error of a graph in which some distance is infinite."""
    return nx.NetworkXNoPath(f"Input graph {G} is disconnected, so every induced subgraph has infinite barycentricity.")


def _sums_by_hops(G: BackendGraph) -> list[int]:
    """Return the sum of the distances from each node."""
    if not is_connected(G):
        raise _disconnected(G)
    return all_figures(G).distances


def _sums_by_weight(G: BackendGraph, weight: Any) -> list[Any]:
    """Return the sum of the distances from each node, added up in NetworkX's order, as equal sums decide."""
    by_weight = Dijkstra(G, weighted_rows(G, weight))
    sums = []
    for v in range(len(G)):
        by_weight.run([v])
        if len(by_weight.order) < len(G):
            raise _disconnected(G)
        sums.append(sum(by_weight.values()))
    return sums


def harmonic_diameter(G: BackendGraph, sp: Any = None, *, weight: Any = None) -> float:
    """Return the harmonic mean of the distances of all pairs of nodes."""
    n = len(G)
    if n == 0:
        return math.nan
    figures = all_figures(G, weight)
    figures.check()
    total = np.sum(figures.inverses)
    if total != 0:
        mean = n * (n - 1) / total
        return mean if weight is not None and G.edge_column(weight).scalar else float(mean)
    return math.inf if n > 1 else math.nan


def is_tree(graph: BackendGraph) -> bool:
    """Return whether a graph with nodes is undirected and a tree."""
    return not graph.is_directed() and graph.number_of_edges() == len(graph) - 1 and is_connected(graph)


def tree_center(graph: BackendGraph) -> list[Any]:
    """Return the one or two nodes in the middle of the longest paths of a tree, in the order of the graph."""
    edges = rows(graph)
    end = int(search(edges, 0, None).order[-1])
    found = search(edges, end, None)
    parents = found.parents.astype(np.int64)
    parents[end] = -1
    path = chain(parents, int(found.order[-1]))
    return [graph.topology.nodes[v] for v in sorted({path[(len(path) - 1) // 2], path[len(path) // 2]})]


def tree_centroid(graph: BackendGraph) -> list[Any]:
    """Return the one or two nodes of a tree without which no part has more than half of the nodes.

    The sum of their distances to all nodes is the smallest. The one nearer to the first node is the first.
    """
    n, nodes = len(graph), graph.topology.nodes
    events = depth_first(graph, 0, FORWARD | REVERSE)
    is_forward = (1 << events.kinds) == FORWARD
    found = np.cumsum(is_forward)
    sizes, parents = np.empty(n, np.int64), np.empty(n, np.uint32)
    entered, left = events.targets[is_forward], events.targets[~is_forward]
    parents[entered] = events.sources[is_forward]
    sizes[entered] = 1 - found[is_forward]
    sizes[left] += found[~is_forward]
    v = int(np.argmin(np.where(2 * sizes >= n, sizes, n + 1)))
    return [nodes[v]] if 2 * sizes[v] > n else [nodes[int(parents[v])], nodes[v]]

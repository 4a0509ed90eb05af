"""Functions of bipartite graphs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import networkx as nx
import numpy as np

from gpu_pregel.algorithms.betweenness_centrality import betweenness_centrality
from gpu_pregel.algorithms.connected_components import connected_components
from gpu_pregel.algorithms.triangle_count import triangle_count
from gpu_pregel.kernels.networkx.bipartite_cpu import color_sides, count_squares, match_sides, mean_overlaps
from gpu_pregel.networkx.all_pairs import all_figures
from gpu_pregel.networkx.graph import Array, BackendGraph
from gpu_pregel.networkx.groups import membership

_VERTICES_PER_CALL = 1 << 12
_MODES = ("dot", "max", "min")
_ODD_CYCLE = "Graph is not bipartite."


def color(G: BackendGraph) -> dict[Any, int]:
    """Return the side of each node: 1 or 0, in the order in which a depth-first search finds them."""
    colors, order, odd = _sides(G)
    if odd >= 0:
        raise nx.NetworkXError(_ODD_CYCLE)
    isolates = np.flatnonzero(G.topology.total_degrees == 0)
    result: dict[Any, int] = G.values_at(order, colors[order])
    result.update(dict.fromkeys(G.nodes_at(isolates), 0))
    return result


def is_bipartite(G: BackendGraph) -> bool:
    """Tell whether no cycle is odd."""
    return _sides(G)[2] < 0


def sets(G: BackendGraph, top_nodes: Iterable[Any] | None = None) -> tuple[set[Any], set[Any]]:
    """Return the nodes of both sides of a connected graph."""
    if top_nodes is not None:
        top = set(top_nodes)
        return top, set(G.topology.nodes) - top
    if len(G) == 0:
        raise nx.NetworkXPointlessConcept("Connectivity is undefined for the null graph.")
    if connected_components(G.engine()).count != 1:
        raise nx.AmbiguousSolution("Disconnected graph: Ambiguous solution for bipartite sets.")
    colors = color(G)
    # The order of the sets, on which that of matchings depends, is that of NetworkX's.
    return {node for node, side in colors.items() if side}, {node for node, side in colors.items() if not side}


def is_bipartite_node_set(G: BackendGraph, nodes: Any) -> bool:
    """Tell whether nodes are one side of each component."""
    chosen = set(nodes)
    if len(chosen) < len(nodes):
        raise nx.AmbiguousSolution(
            "The input node set contains duplicates.\n"
            "This may lead to incorrect results when using it in bipartite algorithms.\n"
            "Consider using set(nodes) as the input"
        )
    if G.is_directed():
        raise nx.NetworkXNotImplemented("not implemented for directed type")
    colors, _, odd = _sides(G)
    labels = connected_components(G.engine()).to_numpy()
    agrees = membership(G, chosen) == (colors == 1)
    count = np.bincount(labels, minlength=len(G))
    agreeing = np.bincount(labels, agrees, len(G))
    mixed = (agreeing > 0) & (agreeing < count)
    # NetworkX looks at one component after the other, in the order of their first nodes.
    if odd >= 0 and not mixed[:odd].any():
        raise nx.NetworkXError(_ODD_CYCLE)
    return not mixed.any()


def bipartite_degree_centrality(G: BackendGraph, nodes: Iterable[Any]) -> dict[Any, float]:
    """Return the share of the other side that each node is adjacent to."""
    top = set(nodes)
    bottom = set(G.topology.nodes) - top
    numbers, degrees = G.topology.numbers, G.topology.total_degrees.tolist()
    share = 1.0 / len(bottom)
    result = {node: degrees[numbers[node]] * share for node in top if node in numbers}
    share = 1.0 / len(top)
    result.update({node: degrees[numbers[node]] * share for node in bottom})
    return result


def bipartite_betweenness_centrality(G: BackendGraph, nodes: Iterable[Any]) -> dict[Any, float]:
    """Return the betweenness of each node relative to the largest possible one of its side."""
    top = set(nodes)
    bottom = set(G.topology.nodes) - top
    largest = _largest_betweenness(len(top), len(bottom)), _largest_betweenness(len(bottom), len(top))
    scores = G.by_node(betweenness_centrality(G.engine(), normalized=False).to_numpy())
    for side, bound in zip((top, bottom), largest, strict=True):
        for node in side:
            scores[node] /= bound
    return scores


def bipartite_closeness_centrality(G: BackendGraph, nodes: Iterable[Any], normalized: bool = True) -> dict[Any, float]:
    """Return the closeness of each node relative to the smallest possible distances from its side."""
    top = set(nodes)
    bottom = set(G.topology.nodes) - top
    numbers, total = G.topology.numbers, len(G)
    for node in top:
        if node not in numbers:
            raise nx.NodeNotFound(f"Source {node} is not in G")
    figures = all_figures(G)
    others, distances = figures.reached - 1, np.array(figures.distances, np.int64)
    reached = distances > 0
    distances[~reached] = 1
    result: dict[Any, float] = {}
    for side, same, other in ((top, len(top), len(bottom)), (bottom, len(bottom), len(top))):
        vertices = np.array([numbers[node] for node in side], np.int64)
        values = (other + 2 * (same - 1)) / distances[vertices]
        if normalized:
            values *= others[vertices] / max(total - 1, 1)
        values[~reached[vertices]] = 0.0
        result.update(zip(side, values.tolist(), strict=True))
    return result


def latapy_clustering(G: BackendGraph, nodes: Iterable[Any] | None = None, mode: str = "dot") -> dict[Any, float]:
    """Return the mean overlap of the neighbours of each node with those of other nodes."""
    if not is_bipartite(G):
        raise nx.NetworkXError("Graph is not bipartite")
    if mode not in _MODES:
        raise nx.NetworkXError("Mode for bipartite clustering must be: dot, min or max")
    n, numbers = len(G), G.topology.numbers
    listed = G.topology.nodes if nodes is None else list(nodes)
    vertices = np.array([numbers[node] for node in listed], np.int64)
    scores, common, others = np.empty(len(vertices)), np.zeros(n, np.int64), np.empty(n, np.int64)
    for begin in range(0, len(vertices), _VERTICES_PER_CALL):
        part = slice(begin, begin + _VERTICES_PER_CALL)
        mean_overlaps(*G.topology.distinct, vertices[part], _MODES.index(mode), common, others, scores[part])
    return dict(zip(listed, scores.tolist(), strict=True))


def bipartite_average_clustering(G: BackendGraph, nodes: Any = None, mode: str = "dot") -> float:
    """Return the mean of the clustering coefficients of nodes."""
    if nodes is None:
        nodes = G.topology.nodes
    scores = latapy_clustering(G, nodes, mode)
    total: float = sum(scores[node] for node in nodes)
    return total / len(nodes)


def robins_alexander_clustering(G: BackendGraph) -> float:
    """Return the share of paths of three edges that are part of a square."""
    topology, n = G.topology, len(G)
    if n < 4 or G.number_of_edges() < 3:
        return 0
    degrees = topology.degrees - 1
    around = np.bincount(topology.sources, degrees[topology.neighbors], n).astype(np.int64)
    # A path around a triangle ends where it began, and is none.
    paths = int((degrees * around).sum()) - 6 * int(triangle_count(G.engine()).total)
    if paths == 0:
        return 0
    common, others = np.zeros(n, np.int64), np.empty(n, np.int64)
    rows = topology.indptr, topology.neighbors
    pairs = sum(
        count_squares(*rows, begin, min(begin + _VERTICES_PER_CALL, n), common, others)
        for begin in range(0, n, _VERTICES_PER_CALL)
    )
    return 4.0 * (int(pairs) / 4) / (paths / 2)


def hopcroft_karp_matching(G: BackendGraph, top_nodes: Iterable[Any] | None = None) -> dict[Any, Any]:
    """Return the mate of each node that a largest matching has."""
    left, right = sets(G, top_nodes)
    if None in left:
        raise NotImplementedError("None is no node, but stands in NetworkX's search for a node without a mate")
    n, (indptr, neighbors) = len(G), G.topology.distinct
    _check_sides(G, left, right)
    numbers, nodes = G.topology.numbers, G.topology.nodes
    vertices = np.array([numbers[node] for node in left], np.int64)
    mates, distances = np.full(n, n), np.full(n, -1)
    queue, cursors = np.empty(n, np.int64), np.empty(n, np.int64)
    while match_sides(indptr, neighbors, vertices, mates, distances, queue, cursors):
        pass
    found = mates.tolist()
    matched = ((node, found[numbers[node]]) for side in (left, right) for node in side)
    return {node: nodes[mate] for node, mate in matched if mate < n}


def _sides(G: BackendGraph) -> tuple[Array, Array, int]:
    """Return the side of each vertex, the order in which they were found, and where an odd cycle is or -1."""
    n, topology = len(G), G.topology
    colors, order, stack = np.full(n, -1), np.empty(n, np.int64), np.empty(n, np.int64)
    in_indptr, in_neighbors = topology.predecessors if topology.directed else topology.no_edges
    count, odd = color_sides(topology.indptr, topology.neighbors, in_indptr, in_neighbors, stack, colors, order)
    return colors, order[:count], odd


def _check_sides(G: BackendGraph, left: set[Any], right: set[Any]) -> None:
    """Raise KeyError for the first node of the left side that is not of the graph or has a neighbour on that side."""
    inside = membership(G, left)
    sources, targets = G.topology.sources, G.topology.neighbors
    if left <= G.topology.numbers.keys() and not (inside[sources] & inside[targets]).any():
        return
    for node in left:
        vertex = G.topology.numbers[node]
        row = targets[G.topology.indptr[vertex] : G.topology.indptr[vertex + 1]]
        for neighbor in G.nodes_at(row):
            if neighbor not in right:
                raise KeyError(neighbor)


def _largest_betweenness(same: int, other: int) -> float:
    """Return the largest betweenness of a node of a side (Borgatti, Halgin)."""
    quotient, remainder = divmod(same - 1, other)
    up = quotient + 1
    squares = other**2 * up**2
    return (squares + other * up * (2 * remainder - quotient - 1) - remainder * (2 * quotient - remainder + 3)) / 2.0

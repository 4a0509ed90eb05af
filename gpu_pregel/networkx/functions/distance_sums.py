"""Sums over the distances of all pairs of nodes: efficiency, the indices of chemistry, cells of nearest nodes."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

from gpu_pregel.host.devices.threads import parallel, thread_count
from gpu_pregel.host.graphs.networkx_adjacency import Adjacency
from gpu_pregel.kernels.networkx.distance_sums_cpu import hop_moments, local_efficiencies
from gpu_pregel.networkx.all_pairs import all_figures, is_connected
from gpu_pregel.networkx.dijkstra import Dijkstra
from gpu_pregel.networkx.functions.shortest_paths import bidirectional_shortest_path
from gpu_pregel.networkx.functions.weighted_paths import source_vertices
from gpu_pregel.networkx.graph import Array, BackendGraph
from gpu_pregel.networkx.rows import rows, weighted_rows
from gpu_pregel.networkx.topology import Topology

_CHUNK = 16


def efficiency(G: BackendGraph, u: Any, v: Any) -> float:
    """Return the inverse of the distance of two nodes."""
    try:
        return 1 / (len(bidirectional_shortest_path(G, u, v)) - 1)
    except nx.NetworkXNoPath:
        return 0


def global_efficiency(G: BackendGraph) -> float:
    """Return the mean of the inverse distances of all pairs of nodes."""
    n = len(G)
    return float(np.sum(all_figures(G).inverses)) / (n * (n - 1)) if n > 1 else 0


def local_efficiency(G: BackendGraph) -> float:
    """Return the mean of the efficiencies of the graphs of each node's neighbours."""
    found = np.zeros(len(G))
    parallel(local_efficiencies, len(G), _CHUNK, *rows(G), found, threads=thread_count(None))
    return float(sum(found.tolist()) / len(G))


def wiener_index(G: BackendGraph, weight: Any = None) -> Any:
    """Return the sum of the distances of all pairs of nodes."""
    if not is_connected(G):
        return float("inf")
    figures = all_figures(G, weight)
    figures.check()
    total = sum(figures.distances)
    return total if G.is_directed() else total / 2


def closeness_vitality(G: BackendGraph, node: Any = None, weight: Any = None, wiener_index: Any = None) -> Any:
    """Return by how much the sum of all distances falls without a node, or without each."""
    if wiener_index is None:
        wiener_index = _wiener_index(G, weight)
    if node is not None:
        return wiener_index - _wiener_index(_without(G, node, weight), weight)
    return {v: wiener_index - _wiener_index(_without(G, v, weight), weight) for v in G}


def _without(G: BackendGraph, node: Any, weight: Any) -> BackendGraph:
    """Return the graph without a node, with one attribute of the edges."""
    if node not in G:
        return G
    topology, gone = G.topology, G.topology.numbers[node]
    kept = (topology.sources != gone) & (topology.neighbors != gone)
    degrees = np.delete(np.bincount(topology.sources[kept], minlength=len(G)), gone)
    neighbors = topology.neighbors[kept]
    neighbors -= (neighbors > gone).astype(neighbors.dtype)
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(degrees)])
    nodes = [*topology.nodes[:gone], *topology.nodes[gone + 1 :]]
    column = None if weight is None else G.edge_column(weight)
    return BackendGraph._converted(
        Topology(Adjacency(nodes, indptr, neighbors), directed=G.is_directed(), multigraph=G.is_multigraph()),
        columns={} if column is None else {weight: column._replace(values=column.values[kept])},
        edge_data=None,
        node_data=None,
        attributes={},
    )


_wiener_index = wiener_index
"""The function, where an argument has its name."""


def hyper_wiener_index(G: BackendGraph, weight: Any = None) -> Any:
    """Return the sum of the distances and squared distances of all pairs of nodes."""
    if not is_connected(G):
        return float("inf")
    figures = all_figures(G, weight)
    figures.check()
    squares = sum(_moments(G)[:, 0].tolist()) if figures.squares is None else float(np.sum(figures.squares))
    return (sum(figures.distances) + squares) / 2


def _degrees(G: BackendGraph) -> Array:
    """Return the degrees, in which a self-loop counts twice."""
    topology = G.topology
    loops = np.bincount(topology.sources[topology.sources == topology.neighbors], minlength=len(G))
    return topology.degrees + loops


def _moments(G: BackendGraph) -> Array:
    """Return the sums of the squared distances from each vertex, and of distances times degrees; int64[n, 2]."""
    found = np.zeros((len(G), 2), np.int64)
    parallel(hop_moments, len(G), _CHUNK, *rows(G), _degrees(G), found, threads=thread_count(None))
    return found


def schultz_index(G: BackendGraph, weight: Any = None) -> Any:
    """Return the sum of the distances of all pairs of nodes times the sum of their degrees."""
    if not is_connected(G):
        return float("inf")
    _refuse_node_named_weight(G)
    figures = all_figures(G, weight)
    figures.check()
    # Each ordered pair has both degrees, and distances are the same in both directions.
    total = sum(d * total for d, total in zip(_degrees(G).tolist(), figures.distances, strict=True))
    return total if isinstance(total, float) else total / 1


def gutman_index(G: BackendGraph, weight: Any = None) -> Any:
    """Return the sum of the distances of all pairs of nodes times the product of their degrees."""
    if not is_connected(G):
        return float("inf")
    _refuse_node_named_weight(G)
    degrees = _degrees(G)
    sums: list[Any] = []
    if weight is None:
        sums = _moments(G)[:, 1].tolist()
    else:
        search = Dijkstra(G, weighted_rows(G, weight))
        for v in range(len(G)):
            search.run([v])
            lengths = search.values()
            sums.append(sum(d * length for d, length in zip(degrees[search.order].tolist(), lengths, strict=True)))
    return sum(d * total for d, total in zip(degrees.tolist(), sums, strict=True)) / 2


def _refuse_node_named_weight(G: BackendGraph) -> None:
    """Refuse a graph with a node of this name, whose degree NetworkX overwrites."""
    if "weight" in G:
        raise NotImplementedError("a node is named 'weight'")


def voronoi_cells(G: BackendGraph, center_nodes: Any, weight: Any = "weight") -> dict[Any, set[Any]]:
    """Return the nodes nearest to each of several, and under "unreachable" those that none reaches."""
    vertices = source_vertices(G, center_nodes)
    search = Dijkstra(G, weighted_rows(G, weight))
    search.run(vertices)
    roots = search.roots()
    cells: dict[Any, set[Any]] = {node: set() for node in G.nodes_at(np.array(vertices))}
    for node, root in zip(G.nodes_at(search.order), G.nodes_at(roots[search.order]), strict=True):
        cells[root].add(node)
    unreachable = set(G) - set(G.nodes_at(search.order))
    if unreachable:
        cells["unreachable"] = unreachable
    return cells

"""Degrees of neighbours, reciprocity and rich clubs."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

from gpu_pregel.networkx.degrees import degree_values, degrees, number_of_loops
from gpu_pregel.networkx.graph import Array, BackendGraph
from gpu_pregel.networkx.nodes import chosen_vertices

_KINDS = ("in", "out", "in+out")


def average_neighbor_degree(
    G: BackendGraph, source: str = "out", target: str = "out", nodes: Any = None, weight: Any = None
) -> dict[Any, float]:
    """Return the mean degree of each node's neighbours."""
    if G.is_directed():
        for name, kind in (("source", source), ("target", target)):
            if kind not in _KINDS:
                raise nx.NetworkXError(f"{name} argument {kind} must be 'in', 'out' or 'in+out'")
    elif source != "out" or target != "out":
        raise nx.NetworkXError("source and target arguments are only supported for directed graphs")
    if nodes in G:
        value = degree_values(G, source, weight)[G.topology.numbers[nodes]]
        raise TypeError(f"'{type(value).__name__}' object is not iterable")
    vertices = chosen_vertices(G, nodes)
    own, others = degrees(G, source, weight)[vertices], degrees(G, target)
    parts = ("out",) if not G.is_directed() else tuple(kind for kind in ("out", "in") if kind in source)
    sums = np.sum([_sums_over_neighbors(G, part, others, weight) for part in parts], axis=0)
    means = np.divide(sums[vertices], own, where=own != 0, out=np.zeros(len(vertices)))
    return G.values_at(vertices, means)


def average_degree_connectivity(
    G: BackendGraph, source: str = "in+out", target: str = "in+out", nodes: Any = None, weight: Any = None
) -> dict[int, float]:
    """Return the mean degree of the neighbours of all nodes of each degree."""
    if G.is_directed():
        for name, kind in (("source", source), ("target", target)):
            if kind not in _KINDS:
                raise nx.NetworkXError(f'{name} must be one of "in", "out", or "in+out"')
    elif source != "in+out" or target != "in+out":
        raise nx.NetworkXError("source and target arguments are only supported for directed graphs")
    vertices = chosen_vertices(G, nodes)
    keys = degrees(G, source)[vertices]
    # In-neighbours only count if in-edges alone are asked for.
    part = "in" if G.is_directed() and source == "in" else "out"
    sums = _sums_over_neighbors(G, part, degrees(G, target), weight)[vertices]
    norms = degrees(G, source, weight)[vertices]
    found, firsts, members = np.unique(keys, return_index=True, return_inverse=True)
    totals = np.bincount(members, sums, minlength=len(found))
    divisors = np.bincount(members, norms, minlength=len(found))
    order = np.argsort(firsts)
    result = {}
    for key, total, divisor in zip(*(a[order].tolist() for a in (found, totals, divisors)), strict=True):
        result[key] = total / divisor if divisor else 0
    return result


def _sums_over_neighbors(G: BackendGraph, part: str, values: Array, weight: Any) -> Array:
    """Return the weighted sums of integers over the neighbours of each node; parallel edges count once, with 1."""
    topology = G.topology
    edges = np.arange(topology.m) if part == "out" else topology.predecessor_edges
    own, others = topology.sources[edges], topology.neighbors[edges]
    if part == "in":
        own, others = others, own
    terms = values[others]
    if G.is_multigraph():
        repeated = (own[1:] == own[:-1]) & (others[1:] == others[:-1])
        terms[1:][repeated] = 0
    elif (column := G.edge_values(weight)) is not None:
        terms = terms * column[edges]
    return np.bincount(own, terms, minlength=len(G))


def overall_reciprocity(G: BackendGraph) -> float:
    """Return the share of edges that have an opposite edge."""
    if not G.topology.m:
        raise nx.NetworkXError("Not defined for empty graphs")
    if not G.is_directed():
        return 0.0
    mutual = int(np.count_nonzero(_opposites(G)[1])) - number_of_loops(G)
    return mutual / G.topology.m


def reciprocity(G: BackendGraph, nodes: Any = None) -> Any:
    """Return the share of each node's edges that have an opposite edge, or of all edges."""
    if nodes is None:
        return overall_reciprocity(G)
    vertices = chosen_vertices(G, nodes)
    if len(vertices) and not G.is_directed():
        raise AttributeError("'Graph' object has no attribute 'predecessors'")
    sources, opposite = _opposites(G)
    mutual = np.bincount(sources[opposite], minlength=len(G))[vertices]
    totals = degrees(G)[vertices]
    values = [2 * both / total if total else None for both, total in zip(mutual.tolist(), totals.tolist(), strict=True)]
    if nodes not in G:
        return dict(zip(G.nodes_at(vertices), values, strict=True))
    if values[0] is None:
        raise nx.NetworkXError("Not defined for isolated nodes.")
    return values[0]


def _opposites(G: BackendGraph) -> tuple[Array, Array]:
    """Return the source of each edge, and whether the opposite edge exists; a self-loop is its own."""
    graph, n = G.engine(), len(G)
    keys = []
    for rows in (graph.to_csr(), graph.csc):
        sources = np.repeat(np.arange(n), np.diff(rows.indptr))
        keys.append(sources * n + rows.indices)
    # Both lists are sorted.
    places = np.minimum(np.searchsorted(keys[1], keys[0]), len(keys[1]) - 1)
    return keys[0] // max(1, n), keys[1][places] == keys[0]


def rich_club_coefficient(
    G: BackendGraph, normalized: bool = True, Q: float = 100, seed: Any = None
) -> dict[int, float]:
    """Return the density of the subgraph of the nodes above each degree."""
    if number_of_loops(G):
        raise Exception("rich_club_coefficient is not implemented for graphs with self loops.")
    topology = G.topology
    if not topology.m:
        return {}
    counts = degrees(G)
    once = topology.sources < topology.neighbors
    lowest = np.minimum(counts[topology.sources[once]], counts[topology.neighbors[once]])
    highest = int(counts.max())
    nodes = len(G) - np.cumsum(np.bincount(counts, minlength=highest + 1))
    edges = len(lowest) - np.cumsum(np.bincount(lowest, minlength=highest + 1))
    return {
        degree: 2 * edge_count / (count * (count - 1))
        for degree, (count, edge_count) in enumerate(zip(nodes.tolist(), edges.tolist(), strict=True))
        if count > 1
    }


def s_metric(G: BackendGraph) -> float:
    """Return the sum over edges of the products of their ends' degrees."""
    topology, counts = G.topology, degrees(G)
    products = counts[topology.sources] * counts[topology.neighbors]
    if topology.directed:
        return float(products.sum())
    return float(products[topology.sources <= topology.neighbors].sum())

"""Centralities that follow from distances: closeness, harmonic, reaching."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

from gpu_pregel.algorithms._searches import DISTANCES, INVERSES, REACHED, Searches, inverse_unit
from gpu_pregel.host.devices.threads import parallel, thread_count
from gpu_pregel.kernels.networkx.path_sums_cpu import find_distances, sum_distances
from gpu_pregel.networkx.graph import Array, BackendGraph
from gpu_pregel.networkx.nodes import chosen_nodes
from gpu_pregel.networkx.rows import rows_by_length

_SOURCES = 4
"""Sources that a thread claims at a time."""


def closeness_centrality(G: BackendGraph, u: Any = None, distance: Any = None, wf_improved: bool = True) -> Any:
    """Return the inverse of the mean distance to a node, or to each node."""
    n = len(G)
    if u is not None and u not in G:
        missing = f"Source {u} is not in G" if distance is None else f"Node {u} not found in graph"
        raise nx.NodeNotFound(missing)
    vertices = None if u is None else np.array([G.topology.numbers[u]])
    if distance is None:
        figures = _hops(G, vertices)
        reached, totals = figures[:, REACHED].astype(float), figures[:, DISTANCES].astype(float)
    else:
        _, totals, _, reached = _lengths(G, distance, np.arange(n) if vertices is None else vertices).T
        reached = reached - 1.0
    scores = np.zeros(len(totals))
    others = (totals > 0) & (n > 1)
    scores[others] = reached[others] / totals[others]
    if wf_improved:
        scores[others] *= reached[others] / (n - 1)
    if _has_scalars(G, distance):
        values = [score if changed else 0.0 for score, changed in zip(scores, others.tolist(), strict=True)]
        return dict(zip(G, values, strict=True)) if u is None else values[0]
    return G.by_node(scores) if u is None else scores.tolist()[0]


def harmonic_centrality(
    G: BackendGraph, nbunch: Any = None, distance: Any = None, sources: Any = None
) -> dict[Any, float]:
    """Return the sum of the inverse distances from the sources to each node."""
    nodes = set(chosen_nodes(G, nbunch))
    begins = set(chosen_nodes(G, sources))
    numbers = G.topology.numbers
    ends = np.fromiter((numbers[node] for node in nodes), np.int64, len(nodes))
    chosen = np.zeros(len(G), np.bool_)
    chosen[[numbers[node] for node in begins]] = True
    if not len(ends) or not begins:
        return dict.fromkeys(nodes, 0)
    if distance is not None:
        counts, scores = _inverse_lengths(G, distance, ends, chosen)
    elif len(begins) == len(G) and len(nodes) < len(G):
        counts, scores = _inverse_hops(_hops(G, ends), len(G))
    else:
        figures = _hops(G, None if chosen.all() else np.flatnonzero(chosen), towards=False)
        counts, scores = _inverse_hops(figures[ends], int(chosen.sum()))
    values = zip(nodes, counts.tolist(), scores if _has_scalars(G, distance) else scores.tolist(), strict=True)
    return {node: score if count else 0 for node, count, score in values}


def _has_scalars(G: BackendGraph, weight: Any) -> bool:
    """Return whether sums of weights have a type of NumPy."""
    return weight is not None and G.edge_column(weight).scalar is not None


def _hops(G: BackendGraph, vertices: Array | None, *, towards: bool = True) -> Array:
    """Return the figures of vertices over all that reach them; if not ``towards``, of all over these as sources."""
    searches: Searches = G.run_of("closeness_centrality").execute()
    if vertices is None:
        return searches.run()
    return searches.run(vertices, transpose=True, by_source=True) if towards else searches.run(vertices)


def _inverse_hops(figures: Array, count: int) -> tuple[Array, Array]:
    return figures[:, REACHED], figures[:, INVERSES] / inverse_unit(count)


def _lengths(G: BackendGraph, weight: Any, vertices: Array, chosen: Array | None = None) -> Array:
    """Return float64[k, 4]: what ``sum_distances`` finds of the paths towards vertices, from the chosen ones or all."""
    _, back = rows_by_length(G, weight)
    figures = np.empty((len(vertices), 4))
    others = np.ones(len(G), np.bool_) if chosen is None else chosen
    threads = thread_count(None)
    parallel(sum_distances, len(vertices), _SOURCES, back, vertices, others, figures, threads=threads)
    return figures


def _inverse_lengths(G: BackendGraph, weight: Any, ends: Array, chosen: Array) -> tuple[Array, Array]:
    """Search from the fewer of both sides."""
    sources = np.flatnonzero(chosen)
    if len(sources) >= len(ends):
        figures = _lengths(G, weight, ends, chosen)
        return figures[:, 0], figures[:, 2]
    out, _ = rows_by_length(G, weight)
    counts, scores = np.zeros(len(G)), np.zeros(len(G))
    for source in sources:
        distances = np.full(len(G), np.inf)
        find_distances(out, True, np.array([source]), distances)
        reached = (distances < np.inf) & (distances != 0)
        counts += reached
        scores[reached] += 1 / distances[reached]
    return counts[ends], scores[ends]


def group_closeness_centrality(G: BackendGraph, S: Any, weight: Any = None) -> float:
    """Return the inverse of the mean distance between a group and the other nodes."""
    group = set(S)
    if not group:
        raise ValueError("sources must not be empty")
    for node in group:
        if node not in G:
            raise nx.NodeNotFound(f"Node {node} not found in graph")
    vertices = np.array([G.topology.numbers[node] for node in group])
    distances = np.full(len(G), np.inf)
    if _has_scalars(G, weight):
        raise NotImplementedError(f"the edges' {weight!r} are of a type of NumPy")
    _, back = rows_by_length(G, weight)
    find_distances(back, weight is not None, vertices, distances)
    total = float(distances[distances < np.inf].sum())
    return (len(G) - len(group)) / total if total else 0


def local_reaching_centrality(
    G: BackendGraph, v: Any, paths: Any = None, weight: Any = None, normalized: bool = True
) -> float:
    """Return the share of the other nodes that a node reaches; in an undirected graph near ones count more."""
    n, edges = len(G), G.number_of_edges()
    if edges > 0 and n == 1:
        raise nx.NetworkXError("local_reaching_centrality of a single node with self-loop not well-defined")
    if edges <= 0:
        raise nx.NetworkXError("Size of G must be positive")
    if v not in G:
        raise nx.NodeNotFound(f"Source {v} not in G")
    return float(_reaching(G, np.array([G.topology.numbers[v]]))[0])


def global_reaching_centrality(G: BackendGraph, weight: Any = None, normalized: bool = True) -> float:
    """Return the mean difference from the largest local reaching centrality."""
    n, edges = len(G), G.number_of_edges()
    if edges <= 0:
        raise nx.NetworkXError("Size of G must be positive")
    if n == 1:
        raise nx.NetworkXError("local_reaching_centrality of a single node with self-loop not well-defined")
    values = _reaching(G, np.arange(n))
    return float((values.max() - values).sum()) / (n - 1)


def _reaching(G: BackendGraph, vertices: Array) -> Array:
    searches: Searches = G.run_of("closeness_centrality").execute()
    figures = searches.run(vertices, by_source=True)
    reached = figures[:, REACHED] if G.is_directed() else figures[:, INVERSES] / inverse_unit(len(G))
    values: Array = reached / (len(G) - 1)
    return values

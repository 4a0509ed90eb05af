"""Matchings."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np

from gpu_pregel.kernels.networkx.sets_cpu import match_in_order
from gpu_pregel.networkx.graph import Array, BackendGraph


def maximal_matching(G: BackendGraph) -> set[tuple[Any, Any]]:
    """Return the matching that takes edges in the order of the graph."""
    mates = np.full(len(G), -1)
    match_in_order(G.topology.indptr, G.topology.neighbors, mates)
    first = np.flatnonzero(mates > np.arange(len(G)))
    return set(zip(G.nodes_at(first), G.nodes_at(mates[first]), strict=True))


def is_maximal_matching(G: BackendGraph, matching: Any) -> bool:
    """Tell whether edges are a matching to which none can be added."""
    if isinstance(matching, dict):
        matching = _pairs(matching)
    ends = _ends(G, matching)
    if ends is None:
        return False
    matched = np.zeros(len(G), bool)
    matched[ends] = True
    sources, targets = G.topology.sources, G.topology.neighbors
    return not (~matched[sources] & ~matched[targets] & (sources != targets)).any()


def _pairs(matching: dict[Any, Any]) -> set[tuple[Any, Any]]:
    """Return the edges of a matching as a dict, in which they may be in both directions."""
    edges: set[tuple[Any, Any]] = set()
    for u, v in matching.items():
        if (v, u) not in edges:
            if u == v:
                raise nx.NetworkXError(f"Selfloops cannot appear in matchings {(u, v)}")
            edges.add((u, v))
    return edges


def _ends(G: BackendGraph, matching: Any) -> Array | None:
    """Return the vertices of a matching, or None if it is none."""
    matching = list(matching)
    numbers = G.topology.numbers
    try:
        pairs = np.array([(numbers[u], numbers[v]) for u, v in matching], np.int64).reshape(-1, 2)
    except (KeyError, TypeError, ValueError):
        pairs = None
    if pairs is not None and _are_edges(G, *pairs.T):
        ends = pairs.ravel()
        return ends if len(np.unique(ends)) == len(ends) else None
    # Whether it is wrong or none depends on what comes first.
    known: set[Any] = set()
    for edge in matching:
        if len(edge) != 2:
            raise nx.NetworkXError(f"matching has non-2-tuple edge {edge}")
        u, v = edge
        if u not in G or v not in G:
            raise nx.NetworkXError(f"matching contains edge {edge} with node not in G")
        if u in known or v in known or not _are_edges(G, np.array([numbers[u]]), np.array([numbers[v]])):
            break
        known.update(edge)
    return None


def _are_edges(G: BackendGraph, sources: Array, targets: Array) -> bool:
    """Return whether all of these are edges, and none a self-loop."""
    graph, n = G.engine(), len(G)
    if len(sources) == 0:
        return True
    if G.topology.m == 0 or (sources == targets).any():
        return False
    keys = np.repeat(np.arange(n), np.diff(graph.indptr)) * n + graph.indices
    wanted = sources * n + targets
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return bool((keys[places] == wanted).all())

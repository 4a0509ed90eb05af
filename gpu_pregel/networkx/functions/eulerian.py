"""Eulerian graphs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

from gpu_pregel.kernels.networkx import cycles_cpu
from gpu_pregel.networkx.functions.components import is_connected, is_weakly_connected
from gpu_pregel.networkx.graph import Array, BackendGraph
from gpu_pregel.networkx.results import pairs


def is_eulerian(G: BackendGraph) -> bool:
    """Tell whether a circuit goes through every edge once."""
    topology = G.topology
    if G.is_directed():
        return np.array_equal(topology.in_degrees, topology.degrees) and is_connected(G)
    return not np.any(topology.total_degrees & 1) and is_connected(G)


def has_eulerian_path(G: BackendGraph, source: Any = None) -> bool:
    """Tell whether a path, from the source if it is given, goes through every edge once."""
    if is_eulerian(G):
        return True
    topology = G.topology
    if not G.is_directed():
        odd = topology.total_degrees & 1
        if source is not None and not odd[topology.numbers[source]]:
            return False
        return int(odd.sum()) == 2 and is_connected(G)
    surplus = topology.degrees - topology.in_degrees
    if source is not None and surplus[topology.numbers[source]] != 1:
        return False
    if np.abs(surplus).max() > 1:
        return False
    # There are as many ends as starts.
    return int(np.count_nonzero(surplus)) <= 2 and is_weakly_connected(G)


def is_semieulerian(G: BackendGraph) -> bool:
    """Tell whether there is an Eulerian path, but no circuit."""
    return has_eulerian_path(G) and not is_eulerian(G)


def eulerian_circuit(G: BackendGraph, source: Any = None, keys: bool = False) -> Iterator[tuple[Any, Any]]:
    """Yield the edges of a circuit through every edge."""
    if not is_eulerian(G):
        raise nx.NetworkXError("G is not Eulerian.")
    vertices = _circuit(G, 0 if source is None else G.topology.numbers[source])
    yield from pairs(G, vertices[:-1], vertices[1:])


def eulerian_path(G: BackendGraph, source: Any = None, keys: bool = False) -> Iterator[tuple[Any, Any]]:
    """Yield the edges of a path through every edge."""
    if not has_eulerian_path(G, source):
        raise nx.NetworkXError("Graph has no Eulerian paths.")
    start = 0 if source is None else G.topology.numbers[source]
    if G.is_directed():
        # The edges are followed backwards, from the end of the path if it is no circuit.
        surplus = G.topology.degrees - G.topology.in_degrees
        start = int(surplus.argmin()) if surplus.any() else start
        vertices = _circuit(G, start)
    else:
        odd = G.topology.total_degrees & 1
        vertices = _circuit(G, int(odd.argmax()) if source is None else start)[::-1]
    yield from pairs(G, vertices[:-1], vertices[1:])


def _circuit(G: BackendGraph, start: int) -> Array:
    """Return the vertices of a walk through every edge, in the reverse of the order in which it is found.

    Rows are those of the copies on which NetworkX works: of the reversed graph, or of one in which the neighbours that
    come before a vertex are first.
    """
    topology = G.topology
    sources, targets = topology.sources, topology.neighbors
    if G.is_directed():
        order = np.argsort(targets, kind="stable")
        targets = sources[order]
        indptr = np.append(0, np.cumsum(topology.in_degrees))
        reverse = np.arange(topology.m)
    else:
        order = np.lexsort((np.where(targets < sources, targets, topology.n), sources))
        indptr, targets = topology.indptr.copy(), targets[order]
        reverse = np.empty(topology.m, np.int64)
        reverse[np.lexsort((targets, sources))] = np.lexsort((sources, targets))
    walk = np.empty(topology.m + 1, np.uint32)
    return walk[: cycles_cpu.walk_edges(indptr, targets, reverse, start, walk)]

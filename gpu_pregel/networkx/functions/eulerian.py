"""Eulerian graphs."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.networkx.functions.components import is_connected, is_strongly_connected
from gpu_pregel.networkx.graph import BackendGraph


def is_eulerian(G: BackendGraph) -> bool:
    """Tell whether a circuit goes through every edge once."""
    topology = G.topology
    if G.is_directed():
        return np.array_equal(topology.in_degrees, topology.degrees) and is_strongly_connected(G)
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
    return int(np.count_nonzero(surplus)) <= 2 and is_connected(G)


def is_semieulerian(G: BackendGraph) -> bool:
    """Tell whether there is an Eulerian path, but no circuit."""
    return has_eulerian_path(G) and not is_eulerian(G)

"""Cycles."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np

from gpu_pregel.kernels.networkx import cycles_cpu
from gpu_pregel.networkx.graph import BackendGraph
from gpu_pregel.networkx.results import pairs
from gpu_pregel.networkx.searches import starts_of

_STARTS = 1 << 8
"""Number of vertices from which one kernel searches; between kernels, Ctrl-C is noticed."""


def cycle_basis(G: BackendGraph, root: Any = None) -> list[list[Any]]:
    """Return cycles of which every other cycle is a sum."""
    if len(G) == 0:
        return []
    start = -1 if root is None else G.topology.numbers[root]
    rows = G.engine()
    vertices, ends = cycles_cpu.cycle_basis(G.topology.indptr, G.topology.neighbors, rows.indptr, rows.indices, start)
    nodes = G.nodes_at(vertices)
    return [nodes[begin:end] for begin, end in pairwise([0, *ends.tolist()])]


def find_cycle(G: BackendGraph, source: Any = None, orientation: str | None = None) -> list[tuple[Any, ...]]:
    """Return the edges of the first cycle that a depth-first search finds."""
    topology = G.topology
    path = np.empty(topology.n, np.uint32)
    starts = starts_of(G, source)
    size = cycles_cpu.find_cycle(topology.indptr, topology.neighbors, starts, G.is_directed(), path)
    if size == 0:
        raise nx.NetworkXNoCycle("No cycle found.")
    edges = pairs(G, path[:size], np.roll(path[:size], -1))
    return list(edges) if orientation is None else [(u, v, "forward") for u, v in edges]


def girth(G: BackendGraph) -> float:
    """Return the length of the shortest cycle; infinity if there is none."""
    topology = G.topology
    if topology.loops.any():
        return 1
    shortest = none = topology.n + 1
    depths, parents = np.full(topology.n, -1, np.int64), np.empty(topology.n, np.uint32)
    queue = np.empty(topology.n, np.uint32)
    for first in range(0, topology.n, _STARTS):
        last = min(first + _STARTS, topology.n)
        shortest = cycles_cpu.shortest_cycle(
            topology.indptr, topology.neighbors, first, last, shortest, depths, parents, queue
        )
        # There are no parallel edges.
        if shortest == 3:
            break
    return math.inf if shortest == none else int(shortest)

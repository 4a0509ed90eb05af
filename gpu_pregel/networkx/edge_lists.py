"""Lists of edges in the order in which NetworkX goes through them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpu_pregel.networkx.graph import Array, BackendGraph


class Edges(NamedTuple):
    """Edges with weights; an undirected one is listed once, or in both directions."""

    sources: Array
    targets: Array
    weights: Array

    def select(self, chosen: Any) -> Edges:
        """Return the edges that an index chooses."""
        return Edges(*(column[chosen] for column in self))

    def without_loops(self) -> Edges:
        """Return the edges that join two vertices."""
        return self.select(self.sources != self.targets)


def edges_once(graph: BackendGraph, weight: str | None) -> Edges:
    """Return each edge once, with its weight as a float; without ``weight`` it is 1."""
    topology = graph.topology
    values = graph.edge_values(weight, mixed=True)
    weights = np.ones(topology.m) if values is None else values.astype(np.float64)
    edges = Edges(topology.sources, topology.neighbors, weights)
    return edges if topology.directed else edges.select(edges.sources <= edges.targets)


def merged(edges: Edges, n: int, *, both: bool) -> Edges:
    """Merge parallel edges, in the order of the first of each; weights are added in the order of the edges.

    If ``both``, edges in opposite directions are parallel.
    """
    sources, targets = edges.sources.astype(np.int64), edges.targets.astype(np.int64)
    keys = np.minimum(sources, targets) * n + np.maximum(sources, targets) if both else sources * n + targets
    _, first, number = np.unique(keys, return_index=True, return_inverse=True)
    totals = np.bincount(number, edges.weights, len(first))
    order = np.argsort(first)
    return Edges(edges.sources[first[order]], edges.targets[first[order]], totals[order])

"""Sets of nodes as labels of vertices, and back."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np

from gpu_pregel.networkx.graph import Array, BackendGraph


def node_sets(graph: BackendGraph, labels: Array, vertices: Array | None = None) -> list[set[Any]]:
    """Return the nodes of each label, in the order of the labels: those of all vertices, or of the given ones."""
    order = np.argsort(labels, kind="stable")
    bounds = [0, *(np.flatnonzero(np.diff(labels[order])) + 1).tolist(), len(order)]
    nodes = graph.nodes_at(order if vertices is None else vertices[order])
    return [set(nodes[begin:end]) for begin, end in pairwise(bounds) if begin < end]


def by_first_node(labels: Array) -> Array:
    """Number labels anew, in the order of the first vertex of each."""
    _, first, number = np.unique(labels, return_index=True, return_inverse=True)
    ranks = np.empty(len(first), np.int64)
    ranks[np.argsort(first)] = np.arange(len(first))
    renamed: Array = ranks[number]
    return renamed


def membership(graph: BackendGraph, nodes: Iterable[Any]) -> Array:
    """Return for each vertex whether its node is among these; those that are not of the graph are ignored."""
    numbers = graph.topology.numbers
    chosen = np.zeros(len(graph), bool)
    chosen[[numbers[node] for node in nodes if node in numbers]] = True
    return chosen


def adjacent(graph: BackendGraph, chosen: Array) -> Array:
    """Return for each vertex whether it has an in-edge from a chosen vertex."""
    reached = np.zeros(len(graph), bool)
    reached[graph.topology.neighbors[chosen[graph.topology.sources]]] = True
    return reached

"""Degrees as NetworkX counts them, by the number or the weights of edges; an undirected self-loop counts twice."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.networkx.graph import Array, BackendGraph


def degrees(graph: BackendGraph, kind: str = "in+out", weight: Any = None, *, scalars: bool = False) -> Array:
    """Return int64[n] or float64[n]: the degrees of the kind "in", "out" or "in+out", or any if undirected.

    Weights are added in NetworkX's order, so that sums are equal to the bit; ``scalars`` is that of ``edge_values``.
    """
    topology = graph.topology
    column = graph.edge_values(weight, scalars=scalars)
    if not topology.directed:
        loops = topology.sources == topology.neighbors
        twice = _sums(topology.sources[loops], None if column is None else column[loops], len(graph))
        return _sums(topology.sources, column, len(graph)) + twice
    parts = []
    if "out" in kind:
        parts.append(_sums(topology.sources, column, len(graph)))
    if "in" in kind.split("+"):
        order = topology.predecessor_edges
        parts.append(_sums(topology.neighbors[order], None if column is None else column[order], len(graph)))
    return sum(parts[1:], parts[0])


def degree_values(graph: BackendGraph, kind: str = "in+out", weight: Any = None) -> list[Any]:
    """Return degrees as Python numbers; without edges it is the integer 0, whatever the type of the weights."""
    values = degrees(graph, kind, weight)
    if values.dtype.kind == "i":
        return list(values.tolist())
    counts = degrees(graph, kind).tolist()
    return [value if count else 0 for value, count in zip(values.tolist(), counts, strict=True)]


def number_of_loops(graph: BackendGraph) -> int:
    """Return the number of self-loops."""
    return int(np.count_nonzero(graph.topology.sources == graph.topology.neighbors))


def _sums(vertices: Array, weights: Array | None, n: int) -> Array:
    if weights is None:
        return np.bincount(vertices, minlength=n)
    return np.bincount(vertices, weights, minlength=n).astype(weights.dtype)

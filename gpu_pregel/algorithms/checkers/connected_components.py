"""Checker of connected components: no edge joins two, each is connected, and its label is its smallest vertex."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.errors import VerificationError
from gpu_pregel.host.graphs.graph import Graph

Array = np.ndarray[Any, Any]

_EDGES_AT_ONCE = 1 << 24


def check_connected_components(graph: Graph, result: Any) -> None:
    """Raise ``VerificationError`` unless the labels are the connected components of ``graph``.

    The labels are correct if no edge joins two labels and a breadth-first search, in NumPy, from all vertices that are
    their own label reaches every vertex.

    Parameters
    ----------
    graph : Graph
    result : Components or integer array_like[n]
        The smallest vertex of each vertex's component.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> check_connected_components(gp.Graph.from_edgelist([0], [1], num_vertices=3), [0, 0, 2])
    """
    n = graph.num_vertices
    labels = np.asarray(result)
    if labels.shape != (n,):
        raise VerificationError(f"labels have shape {labels.shape}, not ({n},)")
    if n == 0:
        return
    _raise_if_any(
        labels > np.arange(n), "vertex {} has label {}, which is not the smallest vertex of its component", labels
    )
    _raise_if_any(labels[labels] != labels, "vertex {} has label {}, which itself has a different label", labels)

    # No edge joins two components.
    sources = np.repeat(np.arange(n, dtype=np.int64), np.diff(graph.indptr))
    for begin in range(0, graph.num_stored_edges, _EDGES_AT_ONCE):
        u, v = sources[begin : begin + _EDGES_AT_ONCE], graph.indices[begin : begin + _EDGES_AT_ONCE]
        broken = labels[u] != labels[v]
        if broken.any():
            e = int(broken.argmax())
            raise VerificationError(f"the edge {u[e]} to {v[e]} joins the labels {labels[u[e]]} and {labels[v[e]]}")
    del sources

    # Every vertex is reached from its label.
    adjacency = [graph.to_csr()] if not graph.is_directed else [graph.to_csr(), graph.to_scipy().tocsc()]
    frontier = np.flatnonzero(labels == np.arange(n))
    reached = np.zeros(n, bool)
    reached[frontier] = True
    while frontier.size:
        found = np.concatenate([_neighbors(matrix.indptr, matrix.indices, frontier) for matrix in adjacency])
        found = found[~reached[found]]
        reached[found] = True
        frontier = np.unique(found)
    _raise_if_any(~reached, "vertex {} is not connected to its label {}", labels)


def _neighbors(indptr: Array, indices: Array, frontier: Array) -> Array:
    """Return the concatenated rows of the vertices of the frontier."""
    begins = indptr[frontier].astype(np.int64)
    degrees = indptr[frontier + 1] - begins
    steps = np.arange(degrees.sum()) - np.repeat(np.cumsum(degrees) - degrees, degrees)
    neighbors: Array = indices[np.repeat(begins, degrees) + steps]
    return neighbors


def _raise_if_any(faulty: Array, message: str, labels: Array) -> None:
    if faulty.any():
        v = int(faulty.argmax())
        raise VerificationError(message.format(v, labels[v]))

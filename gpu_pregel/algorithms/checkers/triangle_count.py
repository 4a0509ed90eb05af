"""Checker of triangle counts: counts the edges among the neighbours of each vertex again, one vertex at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from gpu_pregel.errors import VerificationError
from gpu_pregel.host.graphs.graph import Graph

Array = np.ndarray[Any, Any]


def check_triangle_count(graph: Graph, result: Any) -> None:
    """Raise ``VerificationError`` unless ``result`` has the number of triangles at each vertex of ``graph``.

    Parameters
    ----------
    graph : Graph
    result : TriangleCounts or integer [n]

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> check_triangle_count(gp.Graph.from_edgelist([0, 0, 1], [1, 2, 2]), [1, 1, 1])
    """
    compare("triangles", result, count_links(graph)[0] // 2)


def count_links(graph: Graph) -> tuple[Array, Array]:
    """Return the number of stored edges among the neighbours of each vertex, and that of its neighbours, int64[n].

    Neighbours are the other ends of its edges in either direction; self-loops and repeated edges do not count.
    """
    n = graph.num_vertices
    ends = np.repeat(np.arange(n), np.diff(graph.indptr)), graph.indices.astype(np.int64)
    proper = ends[0] != ends[1]
    edges = scipy.sparse.csr_array((np.ones(proper.sum(), bool), (ends[0][proper], ends[1][proper])), shape=(n, n))
    neighbors = scipy.sparse.csr_array(edges + edges.T)
    links = np.zeros(n, np.int64)
    is_neighbor = np.zeros(n, bool)
    for v in range(n):
        around = neighbors.indices[neighbors.indptr[v] : neighbors.indptr[v + 1]]
        is_neighbor[around] = True
        links[v] = sum(is_neighbor[edges.indices[edges.indptr[u] : edges.indptr[u + 1]]].sum() for u in around)
        is_neighbor[around] = False
    return links, np.diff(neighbors.indptr).astype(np.int64)


def compare(what: str, result: Any, expected: Array, tolerance: float = 0.0) -> None:
    """Raise ``VerificationError`` unless the values of a result are the expected ones."""
    found = np.asarray(result)
    if found.shape != expected.shape:
        raise VerificationError(f"{what} have shape {found.shape}, not {expected.shape}")
    wrong = ~(np.abs(found - expected) <= tolerance)
    if wrong.any():
        v = int(wrong.argmax())
        raise VerificationError(f"vertex {v} has {what} {found[v]}, not {expected[v]}")

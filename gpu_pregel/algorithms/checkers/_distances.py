"""Breadth-first search in NumPy, and in SciPy where paths are long, for checkers of distances."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.host.graphs.csr import CSR
from gpu_pregel.host.graphs.graph import Graph

Array = np.ndarray[Any, Any]

_WORK = 1 << 26
"""Edges that the searches of a checker may read before it checks only a part of the vertices."""

_MOST_LEVELS = 16
"""After as many, a search starts again in SciPy, which needs no Python code per level."""


def hops_from(graph: Graph, sources: Array, limit: int | None = None, *, transpose: bool = False) -> Array:
    """Return the number of edges from the nearest source to each vertex, -1 where there is no path within ``limit``."""
    csr = graph.csc if transpose else graph.to_csr()
    hops = np.full(graph.num_vertices, -1)
    frontier = np.unique(sources)
    hops[frontier] = distance = 0
    while frontier.size and distance != limit:
        if distance == _MOST_LEVELS and limit is None and np.size(sources) == 1:
            return _hops_in_scipy(csr, int(sources[0]))
        distance += 1
        begins = csr.indptr[frontier]
        degrees = csr.indptr[frontier + 1] - begins
        steps = np.arange(degrees.sum()) - np.repeat(np.cumsum(degrees) - degrees, degrees)
        found = csr.indices[np.repeat(begins, degrees) + steps]
        frontier = np.unique(found[hops[found] < 0])
        hops[frontier] = distance
    return hops


def _hops_in_scipy(csr: CSR, source: int) -> Array:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order

    n = len(csr.indptr) - 1
    matrix = csr_array((np.ones(len(csr.indices)), csr.indices.astype(np.int32), csr.indptr), shape=(n, n))
    order, parents = breadth_first_order(matrix, source)
    # Each vertex adds up the steps to an ancestor, whose distance from the vertex doubles (pointer jumping).
    ancestors, steps = np.where(parents < 0, np.arange(n), parents), (parents >= 0).astype(np.int64)
    while (further := steps[ancestors]).any():
        steps += further
        ancestors = ancestors[ancestors]
    hops = np.full(n, -1)
    hops[order] = steps[order]
    return hops


def checked_vertices(graph: Graph) -> Array:
    """Return the vertices from which a checker searches: all, or an even sample of those of a large graph."""
    n = graph.num_vertices
    return np.arange(0, n, max(1, n * (n + graph.num_stored_edges) // _WORK))

"""Checker of shortest paths: no edge shortens a distance, and the predecessors form a tree with these distances."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.algorithms.checkers._edges import edge_parts, raise_if_any
from gpu_pregel.errors import VerificationError
from gpu_pregel.host.graphs.graph import Graph

Array = np.ndarray[Any, Any]


def check_sssp(graph: Graph, result: Any) -> None:
    """Raise ``VerificationError`` unless ``result`` has the shortest distances and predecessors that lead to a source.

    The distances are at most the right ones if no edge shortens one, and at least those if they are the lengths of the
    paths in a tree.

    Parameters
    ----------
    graph : Graph
    result : Distances

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> graph = gp.Graph.from_edgelist([0, 1, 0], [1, 2, 2], [1.0, 1.0, 3.0])
    >>> check_sssp(graph, gp.sssp(graph, 0))
    """
    n = graph.num_vertices
    distances = np.asarray(result)
    if distances.shape != (n,):
        raise VerificationError(f"distances have shape {distances.shape}, not ({n},)")
    is_float = distances.dtype.kind == "f"
    unreached = np.inf if is_float else np.iinfo(distances.dtype).max
    reached = distances != unreached
    is_source = np.zeros(n, bool)
    is_source[result.sources] = True
    raise_if_any(is_source & (distances != 0), "source {} has distance {}, not 0", distances)
    raise_if_any(~(distances >= 0), "vertex {} has distance {}, which is not a sum of weights", distances)
    before = np.asarray(result.predecessors)
    smallest, has_edge = np.full(n, n), is_source.copy()
    for u, v, weights in edge_parts(graph):
        begins, ends = distances[u], distances[v]
        used = reached[u] & np.isfinite(weights)
        with np.errstate(over="ignore"):
            lengths = np.where(used, begins, 0) + np.asarray(weights).astype(distances.dtype)
        wrong = used & (lengths < ends)
        if wrong.any():
            e = int(wrong.argmax())
            raise VerificationError(f"the edge {u[e]} to {v[e]} shortens the distance {ends[e]} to {lengths[e]}")
        tight = used & (lengths == ends)
        has_edge[v[tight & (before[v] == u)]] = True
        tight &= begins < ends
        np.minimum.at(smallest, v[tight], u[tight])
    raise_if_any(reached & ~has_edge, "vertex {} has predecessor {}, and no edge from there gives its distance", before)
    raise_if_any(~reached & (before != -1), "vertex {} has predecessor {} and was not reached", before)
    has_smallest = reached & ~is_source & (smallest < n)
    raise_if_any(has_smallest & (before != smallest), "vertex {} has predecessor {}, not the smallest one", before)
    _check_tree(before, is_source, reached)


def _check_tree(before: Array, is_source: Array, reached: Array) -> None:
    """Raise ``VerificationError`` unless every path that follows predecessors ends in a source."""
    n = len(before)
    raise_if_any(is_source & (before != np.arange(n)), "source {} has predecessor {}, not itself", before)
    ends = np.where(reached, before, np.arange(n))
    for _ in range(n.bit_length()):
        ends = ends[ends]
    raise_if_any(reached & ~is_source[ends], "the path to vertex {} with predecessor {} begins in no source", before)

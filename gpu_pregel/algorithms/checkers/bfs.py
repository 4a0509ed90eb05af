"""Checker of breadth-first search: no edge skips a level, and parents are the smallest of the level before."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.algorithms.checkers._edges import edge_parts, raise_if_any
from gpu_pregel.errors import VerificationError
from gpu_pregel.host.graphs.graph import Graph


def check_bfs(graph: Graph, result: Any) -> None:
    """Raise ``VerificationError`` unless ``result`` has the hops and the smallest parents.

    The hops are at most the right ones if every vertex reached has a parent one level before it, and at least those if
    no edge leads more than one level on.

    Parameters
    ----------
    graph : Graph
    result : Hops

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> graph = gp.grid(3)
    >>> check_bfs(graph, gp.bfs(graph, 0))
    """
    n = graph.num_vertices
    hops, parents = np.asarray(result), np.asarray(result._predecessors)
    for name, values in (("hops", hops), ("parents", parents)):
        if values.shape != (n,):
            raise VerificationError(f"{name} have shape {values.shape}, not ({n},)")
    limit = np.iinfo(np.int64).max if result.max_hops is None else result.max_hops
    is_source = np.zeros(n, bool)
    is_source[result.sources] = True
    raise_if_any((hops == 0) != is_source, "vertex {} has {} hops, and only a source has 0", hops)
    raise_if_any((hops < -1) | (hops > limit), "vertex {} has {} hops, which is outside of the limits", hops)
    smallest = np.full(n, n)
    for u, v, _ in edge_parts(graph):
        source_hops, hops_there = hops[u].astype(np.int64), hops[v]
        follows = (source_hops >= 0) & (source_hops < limit)
        wrong = follows & ((hops_there < 0) | (hops_there > source_hops + 1))
        if wrong.any():
            e = int(wrong.argmax())
            raise VerificationError(f"the edge {u[e]} to {v[e]} leads from {source_hops[e]} to {hops_there[e]} hops")
        is_parent = follows & (hops_there == source_hops + 1)
        np.minimum.at(smallest, v[is_parent], u[is_parent])
    expected = np.where(hops < 0, -1, np.where(is_source, np.arange(n), smallest))
    raise_if_any(parents != expected, "vertex {} has parent {}, which is not the smallest one before it", parents)

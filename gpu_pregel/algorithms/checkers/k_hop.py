"""Checker of neighbourhoods, by breadth-first search in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.algorithms.checkers._distances import hops_from
from gpu_pregel.errors import VerificationError
from gpu_pregel.host.graphs.graph import Graph


def check_k_hop(graph: Graph, result: Any) -> None:
    """Raise ``VerificationError`` unless ``result`` has the distances of up to k edges from the nearest source.

    Parameters
    ----------
    graph : Graph
    result : Neighborhood

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> graph = gp.grid(3)
    >>> check_k_hop(graph, gp.k_hop(graph, [0], 2))
    """
    hops = np.asarray(result)
    if hops.shape != (graph.num_vertices,):
        raise VerificationError(f"hops have shape {hops.shape}, not ({graph.num_vertices},)")
    expected = hops_from(graph, result.sources, result.k)
    if (wrong := hops != expected).any():
        v = int(wrong.argmax())
        raise VerificationError(f"vertex {v} is {expected[v]} hops from the sources, not {hops[v]}")

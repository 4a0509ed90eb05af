"""Checker of eccentricities, by breadth-first searches in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.algorithms.checkers._distances import checked_vertices, hops_from
from gpu_pregel.errors import VerificationError
from gpu_pregel.host.graphs.graph import Graph


def check_eccentricity(graph: Graph, result: Any) -> None:
    """Raise ``VerificationError`` unless ``result`` has the largest distance from each vertex.

    Of a large graph, an even sample of the vertices is checked.

    Parameters
    ----------
    graph : Graph
    result : Eccentricities or integer array_like[n]

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> check_eccentricity(gp.Graph.from_edgelist([0, 1], [1, 2]), [2, 1, 2])
    """
    values = np.asarray(result)
    if values.shape != (graph.num_vertices,):
        raise VerificationError(f"eccentricities have shape {values.shape}, not ({graph.num_vertices},)")
    for v in checked_vertices(graph):
        expected = hops_from(graph, np.array([v])).max()
        if values[v] != expected:
            raise VerificationError(f"vertex {v} has the eccentricity {values[v]}, not {expected}")

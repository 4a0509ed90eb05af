"""Checker of the diameter: two vertices are as far apart as its lower bound, and none farther than the upper one."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.algorithms.checkers._distances import checked_vertices, hops_from
from gpu_pregel.errors import VerificationError
from gpu_pregel.host.graphs.graph import Graph


def check_diameter(graph: Graph, result: Any) -> None:
    """Raise ``VerificationError`` unless the bounds hold, and are equal if the result says so.

    Of a large graph, the distances from an even sample of the vertices are compared with the upper bound.

    Parameters
    ----------
    graph : Graph
    result : Diameter

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> graph = gp.grid(3)
    >>> check_diameter(graph, gp.diameter(graph))
    """
    bounds = np.asarray(result)
    if bounds.shape != (2,):
        raise VerificationError(f"bounds have shape {bounds.shape}, not (2,)")
    lower, upper = bounds.tolist()
    if lower > upper or result.exact != (lower == upper):
        raise VerificationError(f"the bounds {lower} and {upper} do not fit exact={result.exact}")
    if graph.num_vertices == 0:
        if lower or len(result.pair):
            raise VerificationError(f"a graph without vertices has the diameter 0, not {lower}")
        return
    source, target = result.pair
    if not (min(result.pair) >= 0 and max(result.pair) < graph.num_vertices):
        raise VerificationError(f"{source} and {target} are not both vertices")
    if (found := int(hops_from(graph, result.pair[:1])[target])) != lower:
        raise VerificationError(f"vertices {source} and {target} are {found} edges apart, not {lower}")
    for v in checked_vertices(graph):
        if (farthest := int(hops_from(graph, np.array([v])).max())) > upper:
            raise VerificationError(f"some vertex is {farthest} edges from {v}, more than the upper bound {upper}")

"""Checker of maximal independent sets: no edge joins two members, and every other vertex has a member as neighbour."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.errors import VerificationError
from gpu_pregel.host.graphs.graph import Graph


def check_maximal_independent_set(graph: Graph, result: Any) -> None:
    """Raise ``VerificationError`` unless the result is a maximal independent set of ``graph``; ignores self-loops.

    Parameters
    ----------
    graph : Graph
    result : IndependentSet or bool array_like[n]

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> check_maximal_independent_set(gp.Graph.from_edgelist([0], [1], num_vertices=3), [True, False, True])
    """
    n = graph.num_vertices
    members = np.asarray(result)
    if members.shape != (n,) or members.dtype != bool:
        raise VerificationError(f"members are {members.dtype}{members.shape}, not bool({n},)")
    sources = np.repeat(np.arange(n, dtype=np.uint32), np.diff(graph.indptr))
    joined = np.flatnonzero(members[sources] & members[graph.indices] & (sources != graph.indices))
    if joined.size:
        e = joined[0]
        raise VerificationError(f"the vertices {sources[e]} and {graph.indices[e]} are neighbours in the set")
    covered = members.copy()
    covered[sources[members[graph.indices]]] = True
    if not covered.all():
        raise VerificationError(f"vertex {int((~covered).argmax())} can be added: no neighbour is in the set")

"""Checker of bipartite graphs, which colours each component by breadth-first search, vertex by vertex."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from gpu_pregel.errors import VerificationError
from gpu_pregel.host.graphs.graph import Graph

Array = np.ndarray[Any, Any]


def check_bipartite(graph: Graph, result: Any) -> None:
    """Raise ``VerificationError`` unless the sides are right, and there is an odd cycle if a component has none.

    Parameters
    ----------
    graph : Graph
    result : Bipartition

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> graph = gp.grid(3)
    >>> check_bipartite(graph, gp.bipartite(graph))
    """
    n = graph.num_vertices
    sides = np.asarray(result)
    if sides.shape != (n,):
        raise VerificationError(f"sides have shape {sides.shape}, not ({n},)")
    out, back = graph.to_csr(), graph.csc
    neighbors = [
        {*row.tolist(), *other.tolist()}
        for row, other in zip(
            np.split(out.indices, out.indptr[1:-1]) if n else [],
            np.split(back.indices, back.indptr[1:-1]) if n else [],
            strict=True,
        )
    ]
    expected = _sides(neighbors)
    for v, side in enumerate(expected):
        if sides[v] != side:
            raise VerificationError(f"vertex {v} is on side {sides[v]}, not {side}")
    if (result.cycle is not None) != (-1 in expected):
        raise VerificationError("there is an odd cycle if and only if a component is not bipartite")
    if result.cycle is not None:
        cycle = result.cycle.tolist()
        if len(cycle) % 2 == 0 or len(set(cycle)) != len(cycle):
            raise VerificationError(f"{cycle} is not an odd cycle")
        for u, v in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
            if v not in neighbors[u]:
                raise VerificationError(f"the odd cycle goes from {u} to {v}, which is no edge")


def _sides(neighbors: list[set[int]]) -> list[int]:
    """Return 0 or 1 for each vertex, -1 in components with an odd cycle."""
    sides = [-2] * len(neighbors)
    for root in range(len(neighbors)):
        if sides[root] != -2:
            continue
        sides[root], members, waiting, is_bipartite = 0, [root], deque([root]), True
        while waiting:
            u = waiting.popleft()
            for v in neighbors[u]:
                if sides[v] == -2:
                    sides[v] = 1 - sides[u]
                    members.append(v)
                    waiting.append(v)
                is_bipartite &= sides[v] != sides[u]
        for v in members if not is_bipartite else ():
            sides[v] = -1
    return sides

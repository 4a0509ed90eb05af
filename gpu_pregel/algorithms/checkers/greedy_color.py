"""Checker of greedy colourings: no edge joins a colour, and every vertex has neighbours of all smaller colours."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.errors import VerificationError
from gpu_pregel.host.graphs.graph import Graph


def check_greedy_color(graph: Graph, result: Any) -> None:
    """Raise ``VerificationError`` unless the colours are those of a greedy algorithm on ``graph``, in some order.

    Such an algorithm gives a vertex colour c only if it has neighbours of the colours 0 to c - 1. Ignores self-loops.

    Parameters
    ----------
    graph : Graph
    result : Coloring or integer array_like[n]

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> check_greedy_color(gp.Graph.from_edgelist([0, 1], [1, 2]), [0, 1, 0])
    """
    n = graph.num_vertices
    colors = np.asarray(result)
    if colors.shape != (n,) or colors.dtype.kind not in "iu":
        raise VerificationError(f"colors are {colors.dtype}{colors.shape}, not integers of shape ({n},)")
    colors = colors.astype(np.int64)
    if (colors < 0).any() or (colors > n).any():
        raise VerificationError(f"vertex {int(((colors < 0) | (colors > n)).argmax())} has no valid colour")
    sources = np.repeat(np.arange(n, dtype=np.int64), np.diff(graph.indptr))
    same = np.flatnonzero((colors[sources] == colors[graph.indices]) & (sources != graph.indices))
    if same.size:
        e = same[0]
        raise VerificationError(f"{sources[e]} and {graph.indices[e]} are neighbours of colour {colors[sources[e]]}")
    # The distinct smaller colours next to each vertex.
    smaller = colors[graph.indices] < colors[sources]
    pairs = np.unique(sources[smaller] * (n + 1) + colors[graph.indices[smaller]])
    found = np.bincount(pairs // (n + 1), minlength=n)
    if not np.array_equal(found, colors):
        v = int((found != colors).argmax())
        raise VerificationError(f"vertex {v} has colour {colors[v]}, but no neighbour has some smaller colour")

"""Greedy colourings in a given order or by saturation, as NetworkX finds them, on one thread."""

from __future__ import annotations

from typing import Any

from gpu_pregel.kernels.library.jit_cpu import inline, jit


@inline
def _first_free(u: Any, indptr: Any, neighbors: Any, colors: Any, marks: Any) -> Any:
    """Return the smallest colour that no neighbour has; ``marks`` has the last vertex for which each was taken."""
    for e in range(indptr[u], indptr[u + 1]):
        if colors[neighbors[e]] >= 0:
            marks[colors[neighbors[e]]] = u
    color = 0
    while marks[color] == u:
        color += 1
    return color


@jit
def color_in_order(indptr: Any, neighbors: Any, order: Any, colors: Any, marks: Any) -> None:
    """Give each vertex the smallest colour that no neighbour has yet; colours are -1 before."""
    for u in order:
        colors[u] = _first_free(u, indptr, neighbors, colors, marks)

"""Greedy colourings in a given order or by saturation, as NetworkX finds them, on one thread."""

from __future__ import annotations

from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.networkx.heaps_cpu import pop, push


@inline
def _first_free(u, indptr, neighbors, colors, marks):
    """Return the smallest colour that no neighbour has; ``marks`` has the last vertex for which each was taken."""
    for e in range(indptr[u], indptr[u + 1]):
        if colors[neighbors[e]] >= 0:
            marks[colors[neighbors[e]]] = u
    color = 0
    while marks[color] == u:
        color += 1
    return color


@jit
def color_in_order(indptr, neighbors, order, colors, marks):
    """Give each vertex the smallest colour that no neighbour has yet; colours are -1 before."""
    for u in order:
        colors[u] = _first_free(u, indptr, neighbors, colors, marks)


@jit
def color_by_saturation(
    indptr, neighbors, degrees, places, ends, seen, colors, marks, order,
    keys, tickets, items,
):  # fmt: skip
    """Colour the vertex next whose neighbours have most colours (DSATUR), then by degree, then by number.

    The colours that ``v`` has seen are ``seen[places[v]:ends[v]]``.
    """
    n = len(colors)
    scale = degrees.max() + 1.0
    size = 0
    for v in range(n):
        size = push(keys, tickets, items, size, -degrees[v] * 1.0, v, v)
    for i in range(n):
        size = pop(keys, tickets, items, size)
        while colors[items[size]] >= 0:
            size = pop(keys, tickets, items, size)
        u = items[size]
        colors[u] = _first_free(u, indptr, neighbors, colors, marks)
        order[i] = u
        for e in range(indptr[u], indptr[u + 1]):
            v = neighbors[e]
            if colors[v] >= 0:
                continue
            known = False
            for place in range(places[v], ends[v]):
                known = known or seen[place] == colors[u]
            if not known:
                seen[ends[v]] = colors[u]
                ends[v] += 1
                key = -((ends[v] - places[v]) * scale + degrees[v])
                size = push(keys, tickets, items, size, key, v, v)

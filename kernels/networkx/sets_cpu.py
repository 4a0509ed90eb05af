"""Colourings, matchings, independent sets and dominating sets, found one vertex after another on one thread."""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.networkx.heaps_cpu import pop, push
from gpu_pregel.kernels.networkx.random_cpu import next_below


@jit
def match_in_order(indptr, neighbors, mates):
    """Match each vertex with its first free neighbour of a larger number; ``mates`` is -1 where there is none."""
    for u in range(len(mates)):
        for e in range(indptr[u], indptr[u + 1]):
            if mates[u] >= 0:
                break
            v = neighbors[e]
            if v > u and mates[v] < 0:
                mates[u] = v
                mates[v] = u


@inline
def _change(tree, place, by):
    """Change the number of items at a place of a Fenwick tree."""
    place += 1
    while place < len(tree):
        tree[place] += by
        place += place & -place


@inline
def _find(tree, rank):
    """Return the place of the item with this rank in a Fenwick tree."""
    place = 0
    step = 1
    while 2 * step < len(tree):
        step *= 2
    while step > 0:
        if place + step < len(tree) and tree[place + step] <= rank:
            place += step
            rank -= tree[place]
        step //= 2
    return place


@jit
def draw_independent(indptr, neighbors, order, places, tree, limit, state, chosen, gone):
    """Draw vertices that are not adjacent until none is left, or more than ``limit`` are gone.

    ``order`` lists the vertices that can be drawn, and ``places`` has the place of each there, or -1. Return how many
    there are in ``chosen``, and in ``gone``: those and their neighbours.
    """
    tree[:] = 0
    for place in range(len(order)):
        _change(tree, place, 1)
    taken = 0
    removed = 0
    while removed < len(order) and removed <= limit:
        u = order[_find(tree, next_below(state, len(order) - removed))]
        chosen[taken] = u
        taken += 1
        for e in range(indptr[u] - 1, indptr[u + 1]):
            # The vertex itself goes first.
            v = u if e < indptr[u] else np.int64(neighbors[e])
            if places[v] >= 0:
                _change(tree, places[v], -1)
                places[v] = -1
                gone[removed] = v
                removed += 1
    return taken, removed


@jit
def dominate_connected(indptr, neighbors, first, left, unseen, chosen, keys, tickets, items):
    """Choose a connected dominating set, by the number of neighbours that are not seen; return its size.

    ``left`` is that number for each vertex, and ``unseen`` says which are not seen.
    """
    count = 0
    ticket = 1
    remaining = len(unseen) - 1
    size = push(keys, tickets, items, 0, -left[first] * 1.0, 0, first)
    unseen[first] = False
    for e in range(indptr[first], indptr[first + 1]):
        left[neighbors[e]] -= 1
    while remaining > 0:
        size = pop(keys, tickets, items, size)
        u = items[size]
        if -keys[size] > left[u]:
            size = push(keys, tickets, items, size, -left[u] * 1.0, tickets[size], u)
            continue
        for e in range(indptr[u], indptr[u + 1]):
            v = neighbors[e]
            if unseen[v]:
                unseen[v] = False
                remaining -= 1
                for f in range(indptr[v], indptr[v + 1]):
                    left[neighbors[f]] -= 1
                size = push(keys, tickets, items, size, -left[v] * 1.0, ticket, v)
                ticket += 1
        chosen[count] = u
        count += 1
    return count


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

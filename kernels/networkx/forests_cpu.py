"""Spanning forests whose edges come in NetworkX's order, on one thread."""

from __future__ import annotations

from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.networkx.heaps_cpu import pop, push


@inline
def _root(parents, v):
    while parents[v] != v:
        parents[v] = parents[parents[v]]
        v = parents[v]
    return v


@jit
def join_trees(order, sources, targets, parents, chosen):
    """Take each edge that joins two trees, in this order (Kruskal); return how many there are in ``chosen``."""
    count = 0
    for e in order:
        u = _root(parents, sources[e])
        v = _root(parents, targets[e])
        if u != v:
            parents[u] = v
            chosen[count] = e
            count += 1
    return count


@jit
def grow_tree(
    indptr, neighbors, weights, start, left, reached, chosen, count,
    keys, tickets, items,
):  # fmt: skip
    """Grow a tree by its lightest edge (Prim); return how many edges there are in ``chosen``.

    Of equal weights, the edge comes first that was found first. ``left`` is the number of vertices that no tree has
    reached: the search ends when there are none.
    """
    reached[start] = True
    size = 0
    ticket = 0
    u = start
    while True:
        for e in range(indptr[u], indptr[u + 1]):
            if not reached[neighbors[e]]:
                size = push(keys, tickets, items, size, weights[e], ticket, e)
                ticket += 1
        if left == 0:
            return count
        while size > 0:
            size = pop(keys, tickets, items, size)
            if not reached[neighbors[items[size]]]:
                break
        else:
            return count
        chosen[count] = items[size]
        count += 1
        left -= 1
        u = neighbors[items[size]]
        reached[u] = True

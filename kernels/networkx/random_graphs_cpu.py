"""Random graphs, drawn as NetworkX draws them, on one thread.

Kernels fill arrays of edges, and go on where they ended when they are called again.
"""

from __future__ import annotations

import math

import numpy as np

from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.networkx.random_cpu import next_below, next_float


@jit
def draw_pairs(n, share, directed, last, state, sources, targets, begin):
    """Take each pair of vertices with the same probability, row by row from ``begin``.

    Return the first row that is left, and the number of edges. It ends before row ``last``, or when there may not be
    room for another row.
    """
    count = 0
    u = begin
    while u < last and count + n <= len(sources):
        for v in range(0 if directed else u + 1, n):
            if v != u and next_float(state) < share:
                sources[count] = u
                targets[count] = v
                count += 1
        u += 1
    return u, count


@jit
def skip_pairs(n, scale, cursor, state, sources, targets):
    """Draw how many pairs of vertices come before the next edge; return the number of edges.

    ``cursor`` is the pair where it begins, and gets the one where it ended, of which the first is n when none is left.
    """
    v = cursor[0]
    w = cursor[1]
    count = 0
    while v < n and count < len(sources):
        w = w + 1 + np.int64(math.log(1.0 - next_float(state)) / scale)
        while w >= v and v < n:
            w -= v
            v += 1
        if v < n:
            sources[count] = v
            targets[count] = w
            count += 1
    cursor[0] = v
    cursor[1] = w
    return count


@inline
def _add_key(table, key):
    """Add a key to a hash table whose size is a power of two; return whether it is new. Free places are -1."""
    mask = len(table) - 1
    place = (key * 0x9E3779B97F4A7C1 >> 20) & mask
    while table[place] != -1:
        if table[place] == key:
            return False
        place = (place + 1) & mask
    table[place] = key
    return True


@jit
def draw_edges(n, directed, state, table, sources, targets):
    """Draw pairs of different vertices until there are as many distinct edges as places."""
    count = 0
    while count < len(sources):
        u = next_below(state, n)
        v = next_below(state, n)
        key = u * n + v if directed or u < v else v * n + u
        if u != v and _add_key(table, key):
            sources[count] = u
            targets[count] = v
            count += 1

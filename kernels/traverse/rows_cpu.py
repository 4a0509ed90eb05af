"""How CPU kernels find vertices and rows of a partition: by number, or through lists if it is not the whole graph.

Rows with many edges, those of hubs, are cut into pieces.
"""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.library.bits_cpu import bit, popcount
from gpu_pregel.kernels.library.jit_cpu import inline

HUB_EDGES = 1 << 16
"""Rows with more edges than this are pushed and pulled in pieces of this size, which several threads can share."""


@inline
def row_range(begins, ends, row):
    """The edges of a row; none for a hub, whose edges are read in pieces."""
    begin = begins[row]
    end = ends[row]
    if end - begin > HUB_EDGES:
        end = begin
    return begin, end


@inline
def local_number(v, origin):
    """The number of vertex ``v`` among those from ``origin`` on; ``v`` itself if ``origin`` is None."""
    if origin is None:
        return v
    return np.int64(v) - origin


@inline
def row_vertex(rows, i):
    """The vertex of row ``i``; ``i`` itself if there is no list."""
    if rows is None:
        return i
    return np.int64(rows[i])


@inline
def word_number(numbers, k):
    """The bitmap word at position ``k`` of a list; ``k`` itself if there is no list."""
    if numbers is None:
        return k
    return np.int64(numbers[k])


@inline
def row_number(firsts, k, words, u):
    """The row of vertex ``u``, a bit of ``words[k]``, whose lowest bit has row ``firsts[k]``; ``u`` without a list."""
    if firsts is None:
        return u
    return np.int64(firsts[k]) + popcount(words[k] & (bit(u) - np.uint64(1)))

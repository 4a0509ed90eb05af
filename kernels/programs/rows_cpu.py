"""How the threads of a CPU kernel find rows of edges: rows of hubs are cut into pieces."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.kernels.library.bits_cpu import bit, popcount
from gpu_pregel.kernels.library.jit_cpu import inline

HUB_EDGES = 1 << 16
"""Rows with more edges than this are pushed and pulled in pieces of this size, which several threads can share."""


@inline
def row_range(begins: Any, ends: Any, row: Any) -> Any:
    """The edges of a row; none for a hub, whose edges are read in pieces."""
    begin = begins[row]
    end = ends[row]
    if end - begin > HUB_EDGES:
        end = begin
    return begin, end


@inline
def local_number(v: Any, origin: Any) -> Any:
    """The position of vertex ``v`` in arrays that begin with vertex ``origin``; ``v`` itself if that is None."""
    if origin is None:
        return v
    return np.int64(v) - origin


@inline
def word_number(numbers: Any, k: Any) -> Any:
    """The number of the bitmap word at position ``k`` of a list; ``k`` itself if the list is None."""
    if numbers is None:
        return k
    return np.int64(numbers[k])


@inline
def row_number(firsts: Any, k: Any, words: Any, u: Any) -> Any:
    """The row of vertex ``u``, which has a bit in ``words[k]``; ``firsts[k]`` is the row of the word's lowest bit.

    If ``firsts`` is None, every vertex is its own row.
    """
    if firsts is None:
        return u
    return np.int64(firsts[k]) + popcount(words[k] & (bit(u) - np.uint64(1)))

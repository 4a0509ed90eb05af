"""Kernels that keep the stored edges of an undirected graph that lead forward, on CUDA.

An edge leads forward if its end has a higher degree than its beginning or, at equal degrees, a higher number. These
edges are marked by bits; the number of marked edges before each word of bits, a prefix sum, gives each its place.
"""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.library.bits_cuda import bit
from gpu_pregel.kernels.library.compiler_cuda import cuda, types
from gpu_pregel.kernels.library.jit_cuda import BLOCK, OFFSETS, WARP, device, kernel
from gpu_pregel.kernels.library.warps_cuda import ALL, lane_number
from gpu_pregel.kernels.traverse.rows_cuda import ITEMS, TILE, row_of, rows_of_tile

_VERTICES, _POSITIONS = types.uint32[::1], types.uint64[::1]


@device
def joins_another(indptr, indices, u, e):
    """Return whether edge e of the row of u is no self-loop, and the first one to its vertex in the sorted row."""
    v = indices[e]
    return v != u and (e == np.uint64(indptr[u]) or indices[e - np.uint64(1)] != v)


@device
def degree_of(indptr, v):
    """Return the number of stored edges of a vertex."""
    return np.uint64(indptr[v + np.uint32(1)]) - np.uint64(indptr[v])


@device
def _is_forward(indptr, u, v):
    """Return whether v has a higher degree than u or, at equal degrees, the higher number."""
    degree, other = degree_of(indptr, u), degree_of(indptr, v)
    return degree < other or (degree == other and u < v)


@kernel(OFFSETS, _VERTICES, _VERTICES, _VERTICES, items=TILE)
def mark_forward(indptr, indices, bits, sizes):
    """Set the bits of the edges that lead to a vertex of higher degree or, at equal degrees, of higher number.

    Rows are sorted; self-loops are not marked, and of repeated edges the first one is. ``sizes`` are the numbers of
    bits in the words of ``bits``. The work items are the edges and one more, for which there is always a word.
    """
    m = np.uint64(len(indices))
    e, low, high = rows_of_tile(indptr, m)
    for _ in range(ITEMS):
        is_forward = False
        if e < m:
            u, v = row_of(indptr, low, high, e), indices[e]
            if joins_another(indptr, indices, u, e):
                is_forward = _is_forward(indptr, u, v)
        word = np.uint32(cuda.ballot_sync(ALL, is_forward))
        if lane_number() == np.uint32(0) and e <= m:
            bits[e >> np.uint64(5)] = word
            sizes[e >> np.uint64(5)] = np.uint32(cuda.popc(word))
        e += np.uint64(WARP)


@device
def _place_of(bits, positions, e):
    """Return the number of marked edges before e, given that before each word."""
    below = np.uint32(bit(np.uint32(e)) - np.uint32(1))
    return positions[e >> np.uint64(5)] + np.uint64(cuda.popc(np.uint32(bits[e >> np.uint64(5)] & below)))


@kernel(_VERTICES, _VERTICES, _POSITIONS, _VERTICES)
def keep_forward(indices, bits, positions, heads):
    """Copy the ends of the marked edges."""
    e = np.uint64(cuda.blockIdx.x) * np.uint64(BLOCK) + np.uint64(cuda.threadIdx.x)
    if e < np.uint64(len(indices)) and bits[e >> np.uint64(5)] & bit(np.uint32(e)) != np.uint32(0):
        heads[_place_of(bits, positions, e)] = indices[e]


@kernel(OFFSETS, _VERTICES, _POSITIONS, OFFSETS)
def write_begins(indptr, bits, positions, begins):
    """Write where each forward row begins, and where the last one ends."""
    u = np.uint32(cuda.grid(1))
    if u < np.uint32(len(indptr)):
        begins[u] = _place_of(bits, positions, np.uint64(indptr[u]))

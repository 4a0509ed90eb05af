"""How the warps of a CUDA kernel read rows of edges.

A warp takes 32 rows, sums their lengths, and its lanes walk all their edges side by side, so that neighbouring lanes
read neighbouring edges whatever the degrees (load balancing by search: Davidson et al., IPDPS 2014). Rows with more
than ``HUB_EDGES`` edges are cut into pieces, each with its own warp, so that all blocks share a hub.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from gpu_pregel.kernels.library.bits_cuda import bit
from gpu_pregel.kernels.library.compiler_cuda import cuda
from gpu_pregel.kernels.library.jit_cuda import BLOCK, WARP, WARPS, device
from gpu_pregel.kernels.library.warps_cuda import ALL, lane_number

HUB_EDGES = 1024
"""Rows with more edges than this are pushed and pulled in pieces of this size."""
ITEMS = 8
"""Stored edges per thread of the kernels that look for the rows of edges."""
TILE = ITEMS * BLOCK


@device
def warp_number():
    """The number of this warp in the grid."""
    return np.uint32(np.uint32(cuda.blockIdx.x) * np.uint32(WARPS) + (np.uint32(cuda.threadIdx.x) >> np.uint32(5)))


@device
def lanes_of(start, upto, base):
    """Return the lanes that read edges ``start`` to ``upto`` when lane 0 reads edge ``base``, as a mask."""
    if upto <= base or start >= np.uint32(base + np.uint32(WARP)) or start == upto:
        return np.uint32(0)
    lanes = ALL
    if start > base:
        lanes = np.uint32(lanes << np.uint32(start - base))
    if upto < np.uint32(base + np.uint32(WARP)):
        lanes = np.uint32(lanes & np.uint32(bit(np.uint32(upto - base)) - np.uint32(1)))
    return lanes


@device
def row_of(indptr, low, high, e):
    """Return the row that has edge e, among the rows ``low`` to ``high``."""
    while low < high:
        middle = np.uint32(high - (np.uint32(high - low) >> np.uint32(1)))
        if np.uint64(indptr[middle]) <= e:
            low = middle
        else:
            high = np.uint32(middle - np.uint32(1))
    return low


@device
def rows_of_tile(indptr, m):
    """Return the first edge of this lane, and the rows of the first and the last edge of the block's tile."""
    last_row = np.uint32(np.uint32(len(indptr)) - np.uint32(2))
    first = np.uint64(cuda.blockIdx.x) * np.uint64(TILE)
    low, high = np.uint32(0), np.uint32(0)
    if first < m:
        low = row_of(indptr, np.uint32(0), last_row, first)
        high = row_of(indptr, low, last_row, min(np.uint64(first + np.uint64(TILE)), m) - np.uint64(1))
    warp = np.uint32(cuda.threadIdx.x) >> np.uint32(5)
    return first + np.uint64(warp * np.uint32(ITEMS * WARP) + lane_number()), low, high


@functools.cache
def make_ranges(offset: Any) -> tuple[Any, Any]:
    """``row_range(begins, ends, row)`` and ``piece_range(begins, ends, piece)``: first edge and number of edges.

    A hub's row has length 0, as its edges are read in pieces. ``offset`` is the type of edge positions.
    """

    @device
    def row_range(begins, ends, row):
        begin = offset(begins[row])
        end = offset(ends[row])
        length = np.uint32(0)
        if end - begin <= offset(HUB_EDGES):
            length = np.uint32(end - begin)
        return begin, length

    @device
    def piece_range(begins, ends, piece):
        begin = offset(begins[piece])
        return begin, np.uint32(offset(ends[piece]) - begin)

    return row_range, piece_range

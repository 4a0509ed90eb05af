"""Which rows of edges the warps of a CUDA kernel read: 32 each, or a piece of a hub.

Rows with more than ``HUB_EDGES`` edges are cut into pieces, each with its own warp, so that all blocks share a hub.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from gpu_pregel.kernels.library.bits_cuda import bit, get_bit, rank_in
from gpu_pregel.kernels.library.compiler_cuda import cuda
from gpu_pregel.kernels.library.jit_cuda import BLOCK, WARP, WARPS, device
from gpu_pregel.kernels.library.warps_cuda import ALL, lane_number, shuffle

HUB_EDGES = 1024
"""Rows with more edges than this are pushed and pulled in pieces of this size."""
WORDS_PER_WARP = 8
"""Words of a bitmap that a warp reads in one access: 32 bytes."""
ITEMS = 8
"""Stored edges per thread of the kernels that look for the rows of edges."""
TILE = ITEMS * BLOCK


@device
def warp_number():
    """The number of this warp in the grid."""
    return np.uint32(np.uint32(cuda.blockIdx.x) * np.uint32(WARPS) + (np.uint32(cuda.threadIdx.x) >> np.uint32(5)))


@device
def piece_of_warp(count):
    """Return whether this warp follows those of ``count`` rows, which have 32 each, and the piece of a hub that it has.

    Its number may be beyond the last piece.
    """
    row_warps = np.uint32(np.uint32(count + np.uint32(WARP - 1)) >> np.uint32(5))
    return warp_number() >= row_warps, np.uint32(warp_number() - row_warps)


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


@device
def _active_words(frontier, lists, k, words):
    """The word at position ``k`` of ``lists``, of ``words``, on each of the first ``WORDS_PER_WARP`` lanes.

    Returns its active sources, all its sources, its number and the row of the first source. In a whole graph every
    vertex is a source, so that row and number of a vertex are computed alike from its bit.
    """
    numbers, sources, firsts = lists
    word, among, number, row = np.uint32(0), np.uint32(0xFFFFFFFF), k, np.uint32(k * np.uint32(WARP))
    if lane_number() < np.uint32(WORDS_PER_WARP) and k < words:
        if len(numbers) > 0:
            number, among, row = numbers[k], sources[k], firsts[k]
        word = np.uint32(frontier[number] & among)
    return word, among, number, row


@device
def _active_hub(frontier, hub_rows, piece):
    """The hub of a piece, and 1 if it is active; 0 if there is no such piece."""
    u = np.uint32(0)
    busy = np.uint32(0)
    if piece < np.uint32(len(hub_rows)):
        u = hub_rows[piece]
        busy = np.uint32(get_bit(frontier, u))
    return u, busy


def make_push_words(offset: Any, push_rows: Any) -> Any:
    """``push_words(frontier, lists, rows, hubs, indices, state)``: push the rows of a bitmap's vertices.

    One warp takes ``WORDS_PER_WARP`` words; the warps after those have one piece of a hub each. ``lists`` has the
    numbers of the words with sources, the sources, and the row of each word's first one; the numbers are empty for a
    whole graph, in which a vertex is its own row. ``rows`` are begins and ends of rows; ``hubs`` the hub, the begin and
    the end of each piece. ``push_rows`` is that of ``walks_cuda``, and keeps nothing.
    """
    row_range, piece_range = make_ranges(offset)

    @device
    def push_words(frontier, lists, rows, hubs, indices, state):
        lane, warp = lane_number(), warp_number()
        words = np.uint32(len(lists[0])) if len(lists[0]) > 0 else np.uint32(len(frontier))
        first = np.uint32(warp * np.uint32(WORDS_PER_WARP))
        piece, u, word = np.uint32(0), np.uint32(0), np.uint32(0)
        among, number, first_row = np.uint32(0), np.uint32(0), np.uint32(0)
        if first < words:
            word, among, number, first_row = _active_words(frontier, lists, np.uint32(first + lane), words)
            busy = np.uint32(cuda.ballot_sync(ALL, word != np.uint32(0)))
        else:
            piece = np.uint32(warp - (words + np.uint32(WORDS_PER_WARP - 1)) // np.uint32(WORDS_PER_WARP))
            u, busy = _active_hub(frontier, hubs[0], piece)
        while busy != np.uint32(0):
            begin, length = offset(0), np.uint32(0)
            if first < words:
                owner = np.uint32(cuda.ffs(busy) - 1)
                u = np.uint32(shuffle(number, owner) * np.uint32(WARP) + lane)
                own_row = np.uint32(shuffle(first_row, owner) + rank_in(shuffle(among, owner), lane))
                if (shuffle(word, owner) >> lane) & np.uint32(1) != np.uint32(0):
                    begin, length = row_range(rows[0], rows[1], own_row)
            elif lane == np.uint32(0):
                begin, length = piece_range(hubs[1], hubs[2], piece)
            busy &= np.uint32(busy - np.uint32(1))
            push_rows(u, begin, length, indices, state, np.uint32(0))

    return push_words

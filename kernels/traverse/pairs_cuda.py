"""The kernels of ``intersect_rows`` on CUDA, and those that list the edges of a frontier.

A warp takes 32 pairs of rows. Its lanes walk the shorter row of each side by side, and search for every vertex in the
longer one. Where the shorter row is long, it is cut into pieces, each with a warp of its own, that go first.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_pregel.kernels.library.atomics_cuda import fetch_and_add
from gpu_pregel.kernels.library.bits_cuda import bit, get_bit, rank_in
from gpu_pregel.kernels.library.compiler_cuda import cuda, from_dtype, types
from gpu_pregel.kernels.library.jit_cuda import OFFSETS, WARP, WARPS, Kernel, device, kernel
from gpu_pregel.kernels.library.warps_cuda import ALL, lane_number, shuffle, sum_of_warp
from gpu_pregel.kernels.traverse.combining_cuda import Combining, make_combine_rows, make_combining
from gpu_pregel.kernels.traverse.edges_cuda import position_type, row_types
from gpu_pregel.kernels.traverse.fields import make_get, make_put, make_weight
from gpu_pregel.kernels.traverse.frontier_cuda import RowOutput
from gpu_pregel.kernels.traverse.rows_cuda import ITEMS, TILE, row_of, rows_of_tile, warp_number

PIECE = 256
"""If both rows of a pair have more edges than this, the shorter one is walked in pieces of this size."""
WRONG, PIECES = 0, 1
"""Positions in ``control``, int64: the pairs with a number that no vertex has, and the pieces of all pairs."""
_VERTICES, _CONTROL, _POSITIONS = types.uint32[::1], types.int64[::1], types.uint64[::1]


@dataclass(frozen=True)
class PairFunctions:
    """What the kernels that intersect rows are made from.

    Attributes
    ----------
    visit, finish : device function
    is_silent : bool
        Whether what ``visit`` returns is ignored.
    ends : tuple of dtypes
        Of the two arrays of vertices.
    combining : Combining
        Of what ``visit`` returns: its sum.
    arrays, offset, weight, output
        As of :class:`gpu_pregel.kernels.traverse.reduce_cuda.RowFunctions`.
    """

    visit: Any
    finish: Any
    is_silent: bool
    ends: tuple[np.dtype[Any], np.dtype[Any]]
    combining: Combining
    arrays: Any
    offset: np.dtype[Any]
    weight: np.dtype[Any] | None
    output: RowOutput

    @property
    def signature(self) -> tuple[Any, ...]:
        """The types of the arguments of both kernels, up to the output."""
        ends = (from_dtype(dtype)[::1] for dtype in self.ends)
        rows = row_types(self.offset, self.weight)
        return (*ends, types.uint32, _POSITIONS, *rows, self.arrays, self.combining.arrays)


@functools.cache
def make_measure(ends: tuple[np.dtype[Any], np.dtype[Any]]) -> Kernel:
    """Return the kernel that checks pairs, and writes the number of pieces of each; 0 for short rows."""

    @kernel(*(from_dtype(dtype)[::1] for dtype in ends), OFFSETS, _VERTICES, _CONTROL)
    def measure_pairs(first, second, indptr, sizes, control):
        i, n = np.uint32(cuda.grid(1)), np.int64(len(indptr)) - np.int64(1)
        size, is_wrong = np.int64(0), False
        if i < np.uint32(len(first)):
            u, v = np.int64(first[i]), np.int64(second[i])
            is_wrong = u < np.int64(0) or u >= n or v < np.int64(0) or v >= n
            if not is_wrong:
                length = np.int64(indptr[u + np.int64(1)]) - np.int64(indptr[u])
                length = min(length, np.int64(indptr[v + np.int64(1)]) - np.int64(indptr[v]))
                if length > np.int64(PIECE):
                    size = (length + np.int64(PIECE - 1)) // np.int64(PIECE)
            sizes[i] = np.uint32(size)
        wrong, size = np.uint32(cuda.ballot_sync(ALL, is_wrong)), sum_of_warp(size)
        if lane_number() == np.uint32(0):
            if wrong != np.uint32(0):
                fetch_and_add(control, WRONG, np.int64(cuda.popc(wrong)))
            if size > np.int64(0):
                fetch_and_add(control, PIECES, size)

    return measure_pairs


def make_intersect(functions: PairFunctions) -> tuple[Kernel, Kernel]:
    """Return the kernel over pieces, and the one over pairs, which follows it and finishes them."""
    return _make_pieces(functions), _make_pairs(functions)


@functools.cache
def _make_pair_of(position: Any) -> Any:
    """``pair_of(first, second, indptr, i)``: the rows of a pair.

    Returned are the first edge and the number of edges of the shorter row, the same of the other one, and whether the
    shorter one is that of the first vertex.
    """

    @device
    def pair_of(first, second, indptr, i):
        u, v = np.uint32(first[i]), np.uint32(second[i])
        begin, other = position(indptr[u]), position(indptr[v])
        length = position(position(indptr[np.uint32(u + np.uint32(1))]) - begin)
        size = position(position(indptr[np.uint32(v + np.uint32(1))]) - other)
        if length <= size:
            return begin, length, other, size, True
        return other, size, begin, length, False

    return pair_of


@functools.cache
def _make_find(position: Any) -> Any:
    """``find(indices, begin, size, vertex)``: the first position of a row with a vertex that is not smaller."""

    @device
    def find(indices, begin, size, vertex):
        while size > position(0):
            half = position(size >> position(1))
            if indices[position(begin + half)] < vertex:
                begin = position(position(begin + half) + position(1))
                size = position(position(size - half) - position(1))
            else:
                size = half
        return begin

    return find


def _make_combine(functions: PairFunctions) -> Any:
    """``combine(i, begin, length, other, size, is_first, first, second, indptr, indices, weights, arrays)``.

    The sum of what ``visit`` returns for the edges of each lane's shorter row, or a piece of it.
    """
    position, visit = position_type(functions.offset), functions.visit
    find, weight_of = _make_find(position), make_weight(device, functions.weight is not None)
    number, is_silent = from_dtype(functions.combining.message.dtypes[0]), functions.is_silent

    @device
    def call(i, u, v, w, one, other, arrays):
        if is_silent:
            visit(np.int64(i), u, v, np.int64(w), one, other, *arrays)
            return number(0)
        return number(visit(np.int64(i), u, v, np.int64(w), one, other, *arrays))

    @device
    def message_of(state, row, w, e):
        first, second, indptr, indices, weights, arrays = state
        i, other, size, is_first = row
        place = find(indices, other, size, w)
        if place == position(other + size) or indices[place] != w:
            return False, number(0)
        u, v = np.int64(first[i]), np.int64(second[i])
        walked, of_first, of_second = v, place, e
        if is_first:
            walked, of_first, of_second = u, e, place
        # Of repeated edges, the first one has been found in the other row.
        if e > position(indptr[walked]) and indices[position(e - position(1))] == w:
            return False, number(0)
        return True, call(i, u, v, w, weight_of(weights, of_first), weight_of(weights, of_second), arrays)

    combine_rows = make_combine_rows(functions.combining, message_of)

    @device
    def combine(i, begin, length, other, size, is_first, first, second, indptr, indices, weights, arrays):
        state, row = (first, second, indptr, indices, weights, arrays), (i, other, size, is_first)
        _, found = combine_rows(indices, state, row, begin, length, np.uint32(1))
        return found

    return combine


@device
def _pair_of_piece(firsts, piece):
    """Return the pair of a piece: the last one whose first piece is not after it."""
    low, high = np.uint32(0), np.uint32(len(firsts))
    while np.uint32(high - low) > np.uint32(1):
        middle = np.uint32(low + np.uint32(np.uint32(high - low) >> np.uint32(1)))
        if firsts[middle] <= np.uint64(piece):
            low = middle
        else:
            high = middle
    return low


def _make_pieces(functions: PairFunctions) -> Kernel:
    position, combine = position_type(functions.offset), _make_combine(functions)
    pair_of, put = _make_pair_of(position), make_put(device, functions.combining.message)

    @kernel(*functions.signature, relaxed=("arrays",), items=WARPS)
    def intersect_pieces(first, second, pieces, firsts, indptr, indices, weights, arrays, partials):
        piece, lane = warp_number(), lane_number()
        if piece < pieces:
            i = _pair_of_piece(firsts, piece)
            begin, length, other, size, is_first = pair_of(first, second, indptr, i)
            before = position(position(piece - np.uint32(firsts[i])) * position(PIECE))
            part = np.uint32(0)
            if lane == np.uint32(0):
                part = np.uint32(min(position(length - before), position(PIECE)))
            begin = position(begin + before)
            found = combine(i, begin, part, other, size, is_first, first, second, indptr, indices, weights, arrays)
            if lane == np.uint32(0):
                put(partials, piece, found)

    return intersect_pieces


def _make_pairs(functions: PairFunctions) -> Kernel:
    position, combine, combining = position_type(functions.offset), _make_combine(functions), functions.combining
    pair_of, get, identity = _make_pair_of(position), make_get(device, combining.message), combining.identity
    combined, up_to = make_combining(combining)
    function = functions.finish

    @device
    def finish(i, found, state):
        first, second, arrays = state
        return function(np.int64(i), np.int64(first[i]), np.int64(second[i]), found, *arrays)

    deliver = functions.output.make_deliver(finish)

    @device
    def combine_pieces(i, is_long, found, pieces, firsts, partials):
        """Combine the pieces of the lanes' long rows, one row after the other."""
        lane, waiting = lane_number(), np.uint32(cuda.ballot_sync(ALL, is_long))
        while waiting != np.uint32(0):
            owner = np.uint32(cuda.ffs(waiting) - 1)
            waiting = np.uint32(waiting & np.uint32(waiting - np.uint32(1)))
            pair, last, part = shuffle(i, owner), pieces, identity
            if np.uint32(pair + np.uint32(1)) < np.uint32(len(firsts)):
                last = np.uint32(firsts[np.uint32(pair + np.uint32(1))])
            piece = np.uint32(np.uint32(firsts[pair]) + lane)
            while piece < last:
                part = combined(part, get(partials, piece))
                piece = np.uint32(piece + np.uint32(WARP))
            part = shuffle(up_to(part, np.uint32(0)), WARP - 1)
            if lane == owner:
                found = part
        return found

    @kernel(*functions.signature, functions.output.kind, relaxed=("arrays",))
    def intersect_pairs(first, second, pieces, firsts, indptr, indices, weights, arrays, partials, out):
        i = np.uint32(cuda.grid(1))
        is_pair, is_long = i < np.uint32(len(first)), False
        begin, part, other, size, is_first = position(0), np.uint32(0), position(0), position(0), False
        if is_pair:
            begin, length, other, size, is_first = pair_of(first, second, indptr, i)
            is_long = length > position(PIECE)
            if not is_long:
                part = np.uint32(length)
        found = combine(i, begin, part, other, size, is_first, first, second, indptr, indices, weights, arrays)
        if pieces > np.uint32(0):
            found = combine_pieces(i, is_long, found, pieces, firsts, partials)
        deliver(is_pair, i, found, (first, second, arrays), out)

    return intersect_pairs


@device
def _has(words, v):
    """Return whether a vertex is in a bitmap; an empty one stands for all vertices."""
    return len(words) == 0 or get_bit(words, v)


@kernel(OFFSETS, _VERTICES, _VERTICES, types.boolean, _VERTICES, _VERTICES, _CONTROL, items=TILE)
def mark_edges(indptr, indices, words, once, bits, sizes, control):
    """Set the bits of the edges from the vertices of a bitmap; ``sizes`` are the numbers of bits in words.

    With ``once``, an edge between two of them is marked in the row of the vertex of lower number. The number of all
    marked edges is added to ``control``.
    """
    m = np.uint64(len(indices))
    e, low, high = rows_of_tile(indptr, m)
    marked = np.int64(0)
    for _ in range(ITEMS):
        is_marked = False
        if e < m:
            u, v = row_of(indptr, low, high, e), indices[e]
            is_marked = _has(words, u) and not (once and v < u and _has(words, v))
        word = np.uint32(cuda.ballot_sync(ALL, is_marked))
        if lane_number() == np.uint32(0) and e < m:
            bits[e >> np.uint64(5)] = word
            sizes[e >> np.uint64(5)] = np.uint32(cuda.popc(word))
        marked += np.int64(cuda.popc(word))
        e += np.uint64(WARP)
    if lane_number() == np.uint32(0) and marked > np.int64(0):
        fetch_and_add(control, 0, marked)


@kernel(OFFSETS, _VERTICES, _VERTICES, _POSITIONS, _VERTICES, _VERTICES, items=TILE)
def keep_edges(indptr, indices, bits, positions, first, second):
    """Copy the ends of the marked edges; ``positions`` are the numbers of bits before each word."""
    m = np.uint64(len(indices))
    e, low, high = rows_of_tile(indptr, m)
    for _ in range(ITEMS):
        if e < m:
            word, lane = bits[e >> np.uint64(5)], lane_number()
            if word & bit(lane) != np.uint32(0):
                place = positions[e >> np.uint64(5)] + np.uint64(rank_in(word, lane))
                first[place], second[place] = row_of(indptr, low, high, e), indices[e]
        e += np.uint64(WARP)

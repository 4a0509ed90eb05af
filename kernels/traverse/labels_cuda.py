"""The kernels of ``count_labels`` on CUDA.

Each row has a hash table of as many places as it has edges, in which the lanes that read them count its labels. The
tables of the 32 rows of a warp are in shared memory if they fit, else in global memory, where a table begins at the
position of its row. Hubs are counted and looked through in pieces.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_pregel.kernels.library.atomics_cuda import compare_and_swap, fetch_and_add
from gpu_pregel.kernels.library.compiler_cuda import cuda, from_dtype, types
from gpu_pregel.kernels.library.jit_cuda import WARP, WARPS, Kernel, device, kernel
from gpu_pregel.kernels.library.warps_cuda import lane_number, owner_of, shuffle, sum_up_to
from gpu_pregel.kernels.traverse.combining_cuda import Combining, make_combine_rows
from gpu_pregel.kernels.traverse.edges_cuda import make_sender, position_type, row_types
from gpu_pregel.kernels.traverse.fields import make_cast, make_put, make_weight
from gpu_pregel.kernels.traverse.frontier_cuda import RowOutput
from gpu_pregel.kernels.traverse.reduce_cuda import make_finish_hubs
from gpu_pregel.kernels.traverse.rows_cuda import piece_of_warp
from gpu_pregel.kernels.traverse.tables import EMPTY
from gpu_pregel.kernels.traverse.walks_cuda import make_push_rows

PLACES = 384
"""Places of the tables of a warp in shared memory."""
_PLACES_OF_BLOCK = WARPS * PLACES
_VERTICES, _SUMS = types.uint32[::1], types.int64[::1]
_FREE = np.uint32(EMPTY)


@device
def load_key(keys, place):
    """Return a key that lanes of the warp, or an earlier kernel, have written."""
    return keys[place]


@dataclass(frozen=True)
class LabelFunctions:
    """What the kernels that count labels are made from.

    Attributes
    ----------
    label, weigh, choose, finish : device function
        ``weigh`` is None if every edge counts 1.
    combining : Combining
        Of (score, -label, sum): the largest wins.
    arrays, weight, output
        As of :class:`gpu_pregel.kernels.traverse.reduce_cuda.RowFunctions`.
    """

    label: Any
    weigh: Any
    choose: Any
    finish: Any
    combining: Combining
    arrays: Any
    weight: np.dtype[Any] | None
    output: RowOutput


def make_count(functions: LabelFunctions) -> tuple[Kernel, Kernel, Kernel, Kernel]:
    """Return the kernels: clear tables of hubs, count and finish rows, look through tables of hubs, finish hubs.

    Where there are no hubs, only the second one is launched.
    """
    deliver = functions.output.make_deliver(_make_finish(functions))
    finish_hubs = make_finish_hubs(functions.combining, functions.arrays, functions.output, deliver)
    return _make_clear(functions), _make_rows(functions, deliver), _make_pieces(functions), finish_hubs


def _make_clear(functions: LabelFunctions) -> Kernel:
    sender, position = make_sender(functions.output.offset), position_type(functions.output.offset)
    offsets = from_dtype(functions.output.offset)[::1]

    @kernel(*(_VERTICES, types.uint32, _VERTICES, _VERTICES, types.uint32, types.uint32, offsets, _VERTICES, _SUMS))
    def clear_tables(queue, count, hubs, firsts, hub_count, pieces, indptr, keys, sums):
        _, begin, length, _ = sender(queue, count, hubs, firsts, hub_count, pieces, indptr)
        i, begin, length = lane_number(), shuffle(begin, 0), shuffle(length, 0)
        if piece_of_warp(count)[0]:
            while i < length:
                keys[begin + position(i)], sums[begin + position(i)] = _FREE, 0
                i = np.uint32(i + np.uint32(WARP))

    return clear_tables


def _make_insert(functions: LabelFunctions) -> Any:
    """``insert(keys, sums, v, begin, length, table, size, indices, weights, arrays)``: count the edges of rows.

    The table of a lane's row, of ``length`` edges, begins at ``table`` and has ``size`` places.
    """
    position = position_type(functions.output.offset)
    label_of, weigh = functions.label, functions.weigh
    weight_of, counts = make_weight(device, functions.weight is not None), functions.weigh is None

    @device
    def amount_of(v, u, weight, arrays):
        if counts:
            return np.int64(1)
        return np.int64(weigh(v, u, weight, *arrays))

    @device
    def count(row, v, e, state):
        keys, sums, weights, arrays = state
        own, first, places = np.int64(row[0]), row[1], row[2]
        u, weight = np.int64(v), weight_of(weights, e)
        label = np.int64(label_of(own, u, weight, *arrays))
        if label >= np.int64(0):
            key = np.uint32(label)
            slot = position(position(key) % position(places))
            seen = compare_and_swap(keys, first + slot, _FREE, key)
            while seen != _FREE and seen != key:
                slot = position(slot + position(1))
                if slot == position(places):
                    slot = position(0)
                seen = compare_and_swap(keys, first + slot, _FREE, key)
            fetch_and_add(sums, first + slot, amount_of(own, u, weight, arrays))
        return False

    push_rows = make_push_rows(position, count)

    @device
    def insert(keys, sums, v, begin, length, table, size, indices, weights, arrays):
        push_rows((v, table, size), begin, length, indices, (keys, sums, weights, arrays), np.uint32(0))

    return insert


def _make_best(functions: LabelFunctions) -> Any:
    """``best(keys, sums, v, table, length, arrays)``: the best (score, -label, sum) of each lane's table."""
    combining, choose = functions.combining, functions.choose
    cast, identity = make_cast(device, combining.message), combining.identity

    @device
    def message_of(state, v, key, place):
        sums, arrays = state
        if key == _FREE:
            return False, cast(identity)
        label, total = np.int64(key), sums[place]
        return True, cast((choose(np.int64(v), label, total, *arrays), -label, total))

    combine_rows = make_combine_rows(combining, message_of)

    @device
    def best(keys, sums, v, table, length, arrays):
        _, found = combine_rows(keys, (sums, arrays), v, table, length, np.uint32(1))
        return found

    return best


def _make_finish(functions: LabelFunctions) -> Any:
    """``finish(v, found, arrays)``: the user's, with the label of the best, or -1."""
    function = functions.finish

    @device
    def finish(v, found, arrays):
        label, total = -found[1], found[2]
        # Without a label, its place has the smallest number.
        if found[1] < -np.int64(EMPTY):
            label, total = np.int64(-1), np.int64(0)
        return function(np.int64(v), label, total, *arrays)

    return finish


def _make_rows(functions: LabelFunctions, deliver: Any) -> Kernel:
    position, sender = position_type(functions.output.offset), make_sender(functions.output.offset)
    insert, best = _make_insert(functions), _make_best(functions)
    cast, identity = make_cast(device, functions.combining.message), functions.combining.identity

    @device
    def count_and_find(keys, sums, v, begin, upto, length, table, indices, weights, arrays):
        """Clear the tables, count, and find the best label of each row."""
        total, place = shuffle(upto, 31), lane_number()
        before = position(table - position(upto - length))
        while place - lane_number() < total:
            i = position(shuffle(before, owner_of(place, upto)) + position(place))
            if place < total:
                keys[i], sums[i] = _FREE, 0
            place = np.uint32(place + np.uint32(WARP))
        cuda.syncwarp()
        insert(keys, sums, v, begin, length, table, length, indices, weights, arrays)
        cuda.syncwarp()
        return best(keys, sums, v, table, length, arrays)

    @kernel(
        *(_VERTICES, types.uint32, _VERTICES, _VERTICES, types.uint32, types.uint32),
        *row_types(functions.output.offset, functions.weight),
        *(functions.arrays, _VERTICES, _SUMS, functions.output.kind),
        relaxed=("arrays",),
    )
    def count_rows(queue, count, hubs, firsts, hub_count, pieces, indptr, indices, weights, arrays, keys, sums, out):
        shared_keys = cuda.shared.array(_PLACES_OF_BLOCK, types.uint32)
        shared_sums = cuda.shared.array(_PLACES_OF_BLOCK, types.int64)
        v, begin, length, is_row = sender(queue, count, hubs, firsts, hub_count, pieces, indptr)
        upto, found = sum_up_to(length), cast(identity)
        if piece_of_warp(count)[0]:
            table, size = position(0), position(1)
            if length > np.uint32(0):
                table = position(indptr[v])
                size = position(position(indptr[np.uint32(v + np.uint32(1))]) - table)
            insert(keys, sums, v, begin, length, table, size, indices, weights, arrays)
        elif shuffle(upto, 31) <= np.uint32(PLACES):
            own = np.uint32((np.uint32(cuda.threadIdx.x) >> np.uint32(5)) * np.uint32(PLACES))
            table = position(np.uint32(own + np.uint32(upto - length)))
            found = count_and_find(shared_keys, shared_sums, v, begin, upto, length, table, indices, weights, arrays)
        else:
            found = count_and_find(keys, sums, v, begin, upto, length, begin, indices, weights, arrays)
        deliver(is_row, v, found, arrays, out)

    return count_rows


def _make_pieces(functions: LabelFunctions) -> Kernel:
    sender, best = make_sender(functions.output.offset), _make_best(functions)
    put, offsets = make_put(device, functions.combining.message), from_dtype(functions.output.offset)[::1]

    @kernel(
        *(_VERTICES, types.uint32, _VERTICES, _VERTICES, types.uint32, types.uint32, offsets),
        *(functions.arrays, _VERTICES, _SUMS, functions.combining.arrays),
        relaxed=("arrays",),
    )
    def find_in_pieces(queue, count, hubs, firsts, hub_count, pieces, indptr, arrays, keys, sums, partials):
        v, begin, length, _ = sender(queue, count, hubs, firsts, hub_count, pieces, indptr)
        follows_rows, piece = piece_of_warp(count)
        if follows_rows and piece < pieces:
            found = best(keys, sums, v, begin, length, arrays)
            if lane_number() == np.uint32(0):
                put(partials, piece, found)

    return find_in_pieces

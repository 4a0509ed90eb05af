"""The push kernel of a vertex program on CUDA."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.kernels.library.bits_cuda import bit, get_bit
from gpu_pregel.kernels.library.compiler_cuda import cuda, types
from gpu_pregel.kernels.library.jit_cuda import WARP, Kernel, device, kernel
from gpu_pregel.kernels.library.loads_cuda import load_once
from gpu_pregel.kernels.library.warps_cuda import ALL, lane_number, owner_of, shuffle, sum_up_to
from gpu_pregel.kernels.programs.array_types_cuda import ArrayTypes
from gpu_pregel.kernels.programs.combine_cuda import make_deliver
from gpu_pregel.kernels.programs.figures_cuda import is_beyond_the_end
from gpu_pregel.kernels.programs.functions import Functions, make_context, make_send_along
from gpu_pregel.kernels.programs.receivers import make_is_receiver
from gpu_pregel.kernels.traverse.fields import make_cast, make_get, make_weight
from gpu_pregel.kernels.traverse.rows_cuda import make_ranges, warp_number

WORDS_PER_WARP = 8
"""Words of the frontier that a warp reads in one access: 32 bytes."""


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


def make_push(functions: Functions, arrays: ArrayTypes) -> Kernel:
    """Sparse side: every active source sends along its out-edges.

    One warp handles ``WORDS_PER_WARP`` words of the frontier; the warps after those handle one piece of a hub each.
    ``numbers`` lists the words that have sources, with the sources and the row of the first one; it is empty for a
    whole graph, in which a vertex is its own row.
    """
    send_rows, by_swapping = make_send_rows(functions, arrays, _ignore)
    row_range, piece_range = make_ranges(arrays.offset)
    offset = arrays.offset

    @kernel(
        *(arrays.vertices, arrays.vertices, arrays.vertices),
        *(arrays.offsets, arrays.offsets, arrays.vertices, arrays.offsets, arrays.offsets, arrays.vertices),
        *(arrays.weights, arrays.offsets, arrays.offsets, types.int64, types.int64, arrays.aggregates, arrays.values),
        *(arrays.vertices, arrays.receivers, arrays.inbox.types[0], arrays.vertices, arrays.control),
        racy=("inbox",) if by_swapping else (),
    )
    def push(
        numbers,
        sources,
        firsts,
        begins,
        ends,
        hub_rows,
        hub_begins,
        hub_ends,
        indices,
        weights,
        out_degrees,
        in_degrees,
        superstep,
        row,
        seen,
        values,
        frontier,
        receivers,
        inbox,
        touched,
        control,
    ):
        if is_beyond_the_end(control, row):
            return
        lists, state = (numbers, sources, firsts), (out_degrees, in_degrees, superstep, seen, values, receivers)
        lane, warp = lane_number(), warp_number()
        words = np.uint32(len(numbers)) if len(numbers) > 0 else np.uint32(len(frontier))
        first = np.uint32(warp * np.uint32(WORDS_PER_WARP))
        piece, u, word = np.uint32(0), np.uint32(0), np.uint32(0)
        among, number, first_row = np.uint32(0), np.uint32(0), np.uint32(0)
        if first < words:
            word, among, number, first_row = _active_words(frontier, lists, np.uint32(first + lane), words)
            busy = np.uint32(cuda.ballot_sync(ALL, word != np.uint32(0)))
        else:
            piece = np.uint32(warp - (words + np.uint32(WORDS_PER_WARP - 1)) // np.uint32(WORDS_PER_WARP))
            u, busy = _active_hub(frontier, hub_rows, piece)
        while busy != np.uint32(0):
            begin, length = offset(0), np.uint32(0)
            if first < words:
                owner = np.uint32(cuda.ffs(busy) - 1)
                u = np.uint32(shuffle(number, owner) * np.uint32(WARP) + lane)
                own_row = np.uint32(shuffle(first_row, owner) + _rank_of_lane(shuffle(among, owner)))
                if (shuffle(word, owner) >> lane) & np.uint32(1) != np.uint32(0):
                    begin, length = row_range(begins, ends, own_row)
            elif lane == np.uint32(0):
                begin, length = piece_range(hub_begins, hub_ends, piece)
            busy &= np.uint32(busy - np.uint32(1))
            send_rows(u, begin, length, indices, weights, state, inbox, (touched,))

    return push


@device
def _ignore(is_first, v, sink):
    """The bits of ``touched`` suffice."""


@device
def _rank_of_lane(bits):
    """The number of bits below this lane's."""
    return np.uint32(cuda.popc(np.uint32(bits & np.uint32(bit(lane_number()) - np.uint32(1)))))


def make_send_rows(functions: Functions, arrays: ArrayTypes, collect: Any) -> tuple[Any, bool]:
    """``send_rows(u, begin, length, indices, weights, state, inbox, sink)``: send along the rows of a warp's lanes.

    Each lane passes its own row; the warp shares the edges of all 32. ``sink`` is a tuple whose first item is
    ``touched``. All lanes call ``collect(is_first, v, sink)`` for their edges, which is told whether a message was v's
    first. Also returned: whether inboxes are written by swapping.
    """
    make = _make_send_messages if functions.per_edge else _make_send_signals
    return make(functions, arrays, collect)


def _make_send_signals(functions: Functions, arrays: ArrayTypes, collect: Any) -> tuple[Any, bool]:
    """``send_rows(…)`` with one message per source."""
    send, identity, offset = functions.send, functions.identity, arrays.offset
    get, cast = make_get(device, functions.value), make_cast(device, functions.message)
    context = make_context(device, functions.context)
    (deliver, by_swapping), is_receiver = make_deliver(functions), make_is_receiver(device, functions)

    @device
    def signal_of(u, state):
        out_degrees, in_degrees, superstep, seen, values, _ = state
        ctx = context(u, superstep, len(out_degrees), out_degrees[u], in_degrees[u], seen)
        return cast(send(get(values, u), ctx))

    @device
    def send_rows(u, begin, length, indices, weights, state, inbox, sink):
        upto = sum_up_to(length)
        total = shuffle(upto, 31)
        before = offset(begin - offset(upto - length))
        signal = identity
        if length > np.uint32(0):
            signal = signal_of(u, state)
        lane = lane_number()
        position = lane
        while position - lane < total:
            owner = owner_of(position, upto)
            e = offset(shuffle(before, owner) + offset(position))
            message = shuffle(signal, owner)
            is_first, v = False, np.uint32(0)
            if position < total:
                v = load_once(indices, e)
                if is_receiver(state[5], v, len(state[0])):
                    is_first = deliver(inbox, sink[0], v, message)
            collect(is_first, v, sink)
            position = np.uint32(position + np.uint32(WARP))

    return send_rows, by_swapping


def _make_send_messages(functions: Functions, arrays: ArrayTypes, collect: Any) -> tuple[Any, bool]:
    """``send_rows(…)`` with one message per edge."""
    send_along, offset = make_send_along(device, functions), arrays.offset
    get, cast = make_get(device, functions.value), make_cast(device, functions.message)
    context, weight_of = make_context(device, functions.context), make_weight(device, arrays.has_weights)
    (deliver, by_swapping), is_receiver = make_deliver(functions), make_is_receiver(device, functions)

    @device
    def message_along(u, v, weight, state):
        out_degrees, in_degrees, superstep, seen, values, _ = state
        ctx = context(u, superstep, len(out_degrees), out_degrees[u], in_degrees[u], seen)
        return cast(send_along(get(values, u), weight, v, ctx))

    @device
    def send_rows(u, begin, length, indices, weights, state, inbox, sink):
        upto = sum_up_to(length)
        total = shuffle(upto, 31)
        before = offset(begin - offset(upto - length))
        lane = lane_number()
        position = lane
        while position - lane < total:
            owner = owner_of(position, upto)
            e = offset(shuffle(before, owner) + offset(position))
            source = shuffle(u, owner)
            is_first, v = False, np.uint32(0)
            if position < total:
                v = load_once(indices, e)
                if is_receiver(state[5], v, len(state[0])):
                    is_first = deliver(inbox, sink[0], v, message_along(source, v, weight_of(weights, e), state))
            collect(is_first, v, sink)
            position = np.uint32(position + np.uint32(WARP))

    return send_rows, by_swapping

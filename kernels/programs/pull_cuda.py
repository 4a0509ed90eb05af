"""The pull kernel of a vertex program on CUDA, and the slot kernel for rows that were pulled in pieces."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.kernels.library.atomics_cuda import fetch_and_and, fetch_and_or
from gpu_pregel.kernels.library.bits_cuda import bit, bits_of_float, get_bit
from gpu_pregel.kernels.library.compiler_cuda import cuda, types
from gpu_pregel.kernels.library.jit_cuda import WARP, WARPS, Kernel, device, kernel
from gpu_pregel.kernels.library.warps_cuda import ALL, lane_number
from gpu_pregel.kernels.programs.apply import make_is_receiver
from gpu_pregel.kernels.programs.array_types_cuda import ArrayTypes
from gpu_pregel.kernels.programs.functions import Functions, make_context, make_send_along
from gpu_pregel.kernels.traverse.combining_cuda import (
    Combining,
    make_combine_pieces,
    make_combine_rows_and_pieces,
    make_combining,
)
from gpu_pregel.kernels.traverse.fields import make_cast, make_changed, make_get, make_put, make_weight
from gpu_pregel.kernels.traverse.rows_cuda import make_ranges, piece_of_warp, warp_number


def _combining(functions: Functions, offset: Any) -> Combining:
    return Combining(
        message=functions.message,
        identity=functions.identity,
        combine=functions.combine,
        absorbing=functions.absorbing,
        takes_first=functions.takes_first,
        tracks=not functions.always,
        by_row=False,
        offset=offset,
    )


def make_pull(functions: Functions, arrays: ArrayTypes) -> Kernel:
    """Dense side: every row combines the messages of its active in-neighbours.

    One warp for every 32 rows, followed by one for every piece of a hub, whose result goes to ``pieces``. ``rows``
    may list the rows; ``accumulate`` combines the result with the content of the inbox. ``senders`` has the signals of
    all vertices if they send the same along all edges; otherwise, and if few edges are read, what messages are computed
    from. The bitmaps ``marks`` and ``piece_marks`` get the rows and pieces that received a message, unless all
    vertices apply; with ``rows``, bits are only added to ``marks``.
    """
    make = _make_message_along if functions.pulls_along_edges else _make_signal_of
    message_of, senders_type, state_of = make(functions, arrays)
    pull_rows = _make_pull_rows(functions, arrays, message_of)

    @kernel(
        *(arrays.vertices, arrays.offsets, arrays.offsets, arrays.offsets, arrays.offsets, arrays.vertices),
        *(senders_type, arrays.row_receivers, types.int64, types.boolean),
        *(arrays.inbox, arrays.vertices, arrays.inbox, arrays.vertices),
    )
    def pull(
        rows,
        begins,
        ends,
        hub_begins,
        hub_ends,
        indices,
        senders,
        receivers,
        n,
        accumulate,
        inbox,
        marks,
        pieces,
        piece_marks,
    ):
        bounds, state = (begins, ends, hub_begins, hub_ends), state_of(senders, begins)
        pull_rows(rows, *bounds, indices, state, receivers, n, accumulate, inbox, marks, pieces, piece_marks)

    return pull


def _make_signal_of(functions: Functions, arrays: ArrayTypes) -> tuple[Any, Any, Any]:
    """``message_of(state, row, u, e)``, the type of ``senders``, and ``state_of(senders, begins)``.

    ``senders`` are (signals, frontier, whether all are active, superstep, the superstep with hidden signals).
    """
    get, changed = make_get(device, functions.message), make_changed(device, functions.message, bits_of_float)
    identity, always = functions.identity, functions.always

    @device
    def message_of(state, row, u, e):
        signals, frontier, all_active, is_hidden = state
        signal = get(signals, u)
        # The signals of active sources and of others may be alike.
        is_sent = always or all_active or changed(signal, identity) or (is_hidden and get_bit(frontier, u))
        return is_sent, signal

    @device
    def state_of(senders, begins):
        signals, frontier, all_active, superstep, hidden = senders
        return signals, frontier, all_active, not (always or all_active) and hidden[0] == superstep

    kind = types.Tuple((arrays.messages, arrays.vertices, types.boolean, types.int64, arrays.control))
    return message_of, kind, state_of


def _make_message_along(functions: Functions, arrays: ArrayTypes) -> tuple[Any, Any, Any]:
    """Return the same, with messages computed per edge.

    ``senders`` are (what messages are computed from, frontier, whether all are active, the vertices of the rows).
    """
    send_along, identity = make_send_along(device, functions), functions.identity
    get, cast = make_get(device, functions.value), make_cast(device, functions.message)
    context, weight_of = make_context(device, functions.context), make_weight(device, arrays.has_weights)
    target_of = _make_target_of(functions, arrays)

    @device
    def message_of(state, row, u, e):
        (senders, frontier, all_active, targets), begins = state
        weights, out_degrees, in_degrees, superstep, seen, values = senders
        message = identity
        is_sent = all_active or get_bit(frontier, u)
        if is_sent:
            ctx = context(u, superstep, len(out_degrees), out_degrees[u], in_degrees[u], seen)
            message = cast(send_along(get(values, u), weight_of(weights, e), target_of(begins, targets, e), ctx))
        return is_sent, message

    @device
    def state_of(senders, begins):
        return senders, begins

    kind = types.Tuple((arrays.senders, arrays.vertices, types.boolean, arrays.vertices))
    return message_of, kind, state_of


def _make_target_of(functions: Functions, arrays: ArrayTypes) -> Any:
    """``target_of(begins, targets, e)``: the vertex in whose row edge e is; ``targets`` lists the vertices of the rows.

    It is looked up where messages draw random numbers, and nowhere else.
    """
    offset = arrays.offset

    @device
    def search(begins, targets, e):
        row, end = np.uint32(0), np.uint32(len(begins))
        while np.uint32(end - row) > np.uint32(1):
            middle = np.uint32(row + (np.uint32(end - row) >> np.uint32(1)))
            if offset(begins[middle]) <= e:
                row = middle
            else:
                end = middle
        if len(targets):
            row = targets[row]
        return row

    @device
    def none(begins, targets, e):
        return np.uint32(0)

    return search if functions.draws_per_edge else none


def _make_pull_rows(functions: Functions, arrays: ArrayTypes, message_of: Any) -> Any:
    """``pull_rows(…)``: combine the messages of this warp's rows, or of its piece of a hub, and store the results.

    ``message_of(state, row, u, e)`` is the message from ``u`` along edge ``e``.
    """
    get, put = make_get(device, functions.message), make_put(device, functions.message)
    cast, offset = make_cast(device, functions.message), arrays.offset
    combining = _combining(functions, offset)
    (combined, _), combine = make_combining(combining), make_combine_rows_and_pieces(combining, message_of)
    row_range, piece_range = make_ranges(offset)
    wants, mark = _make_wants(functions), _make_mark(functions)

    @device
    def pull_rows(
        rows,
        begins,
        ends,
        hub_begins,
        hub_ends,
        indices,
        state,
        receivers,
        n,
        accumulate,
        inbox,
        marks,
        pieces,
        piece_marks,
    ):
        lane, count = lane_number(), np.uint32(len(begins))
        follows_rows, piece = piece_of_warp(count)
        row = np.uint32(warp_number() * np.uint32(WARP) + lane)
        is_row = not follows_rows and row < count
        is_piece = follows_rows and lane == np.uint32(0) and piece < np.uint32(len(hub_begins))
        begin, length, piece_count = offset(0), np.uint32(0), np.uint32(len(hub_begins))
        wanted = (is_row or is_piece) and wants(receivers, rows, row, piece, is_row, n)
        if wanted and is_row:
            begin, length = row_range(begins, ends, row)
        elif wanted:
            begin, length = piece_range(hub_begins, hub_ends, piece)
        is_received, message = combine(indices, state, np.uint32(0), begin, length, count, piece_count, pieces)
        mark(is_received, rows, row, piece, is_row, is_piece, marks, piece_marks)
        # A row that takes no messages has none in its inbox.
        if is_row and wanted:
            if len(rows):
                row = rows[row]
            if accumulate:
                message = combined(cast(get(inbox, row)), message)
            put(inbox, row, message)

    return pull_rows


def _make_mark(functions: Functions) -> Any:
    """``mark(is_received, rows, row, piece, is_row, is_piece, marks, piece_marks)``: mark each lane's row or piece.

    Pieces may be marked from before. All lanes of a warp call it.
    """

    @device
    def nothing(is_received, rows, row, piece, is_row, is_piece, marks, piece_marks):
        """All vertices apply."""

    @device
    def mark(is_received, rows, row, piece, is_row, is_piece, marks, piece_marks):
        received = np.uint32(cuda.ballot_sync(ALL, is_row and is_received))
        if is_piece:
            own = bit(piece)
            if is_received:
                fetch_and_or(piece_marks, piece >> np.uint32(5), own)
            else:
                fetch_and_and(piece_marks, piece >> np.uint32(5), np.uint32(~own))
        elif is_row and len(rows) == 0:
            if lane_number() == np.uint32(0):
                marks[row >> np.uint32(5)] = received
        elif is_row and is_received:
            v = rows[row]
            fetch_and_or(marks, v >> np.uint32(5), bit(v))

    return nothing if functions.always else mark


def _make_wants(functions: Functions) -> Any:
    """``wants(receivers, rows, row, piece, is_row, n)``: whether the vertex of a row, or of a piece, takes messages."""
    is_receiver = make_is_receiver(device, functions)

    def every(receivers, rows, row, piece, is_row, n):
        return True

    def some(receivers, rows, row, piece, is_row, n):
        skips, piece_vertices, state = receivers
        if not skips:
            return True
        v = row
        if not is_row:
            v = piece_vertices[piece]
        elif len(rows):
            v = rows[row]
        return is_receiver(state, v, n)

    return device(every if functions.receives is None else some)


def make_slot(functions: Functions, arrays: ArrayTypes) -> Kernel:
    """Dense side: one warp per hub combines its pieces, ``firsts[i]`` to ``firsts[i + 1]``, into its inbox.

    Unless all vertices apply, hubs with a piece in the bitmap ``piece_marks`` are added to ``marks``.
    """
    get, put = make_get(device, functions.message), make_put(device, functions.message)
    combining, cast, always = (
        _combining(functions, arrays.offset),
        make_cast(device, functions.message),
        functions.always,
    )
    (combined, _), combine_pieces = make_combining(combining), make_combine_pieces(combining)

    @kernel(arrays.vertices, arrays.vertices, arrays.inbox, arrays.vertices, arrays.inbox, arrays.vertices, items=WARPS)
    def dense_slot(hubs, firsts, pieces, piece_marks, inbox, marks):
        lane, i, is_received = lane_number(), warp_number(), False
        first, last = np.uint32(0), np.uint32(0)
        if i < np.uint32(len(hubs)):
            first, last = firsts[i], firsts[i + np.uint32(1)]
        piece = np.uint32(first + lane)
        while piece < last:
            is_received = is_received or (not always and get_bit(piece_marks, piece))
            piece = np.uint32(piece + np.uint32(WARP))
        received = np.uint32(cuda.ballot_sync(ALL, is_received))
        message = combine_pieces(first, last, pieces)
        if i < np.uint32(len(hubs)) and lane == np.uint32(WARP - 1):
            v = hubs[i]
            put(inbox, v, combined(cast(get(inbox, v)), message))
            if received != np.uint32(0):
                fetch_and_or(marks, v >> np.uint32(5), bit(v))

    return dense_slot

"""The pull kernel of a vertex program on the CPU, and the slot kernel that merges what was pulled in parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.kernels.library.atomics_cpu import fetch_and_or, load, prefetch
from gpu_pregel.kernels.library.bits_cpu import WORD_BITS, bit, bits_of_float, get_bit, trailing_zeros
from gpu_pregel.kernels.library.jit_cpu import device, inline
from gpu_pregel.kernels.library.work_cpu import claim
from gpu_pregel.kernels.programs.apply import make_is_receiver
from gpu_pregel.kernels.programs.functions import Functions, make_context, make_send_along
from gpu_pregel.kernels.traverse.fields import make_cast, make_changed, make_get, make_put, make_weight
from gpu_pregel.kernels.traverse.rows_cpu import local_number, row_range, row_vertex

EDGES_AHEAD = 256
"""Prefetch distance for neighbours: with the processor's own prefetching alone, a quarter of the time is lost."""


@inline
def _word_end(i, last):
    """The end of the rows from ``i`` on whose bits are in one word."""
    return min(last, (i | (WORD_BITS - 1)) + 1)


@inline
def _has_active(in_indices, begin, end, origin, frontier):
    """Whether the source of one of these edges is active."""
    for e in range(begin, end):
        if get_bit(frontier, local_number(np.int64(load(in_indices, e)), origin)):
            return True
    return False


def make_pull(functions: Functions, *, has_weights: bool) -> Any:
    """Dense side: combine the messages of the in-neighbours, computed once per source or once per edge.

    Rows that received a message are written to ``inbox`` and marked in the bitmap ``marks``, in which their bits must
    be 0. If all vertices apply, all rows are written and none is marked, unless rows are read selectively.
    """
    if functions.is_selective:
        return _make_pull_selectively(functions, has_weights=has_weights)
    return _make_pull_edges(functions, has_weights=has_weights) if functions.per_edge else _make_pull_signals(functions)


def _make_pull_signals(functions: Functions) -> Any:
    """Dense side, where a source sends the same message along all its edges: combine the in-neighbours' signals."""
    combine, identity = functions.combine, functions.identity
    get, put = make_get(device, functions.message), make_put(device, functions.message)
    cast, changed = make_cast(device, functions.message), make_changed(device, functions.message, bits_of_float)
    can_exit, absorbing = _early_exit(functions)
    may_cancel = functions.may_cancel

    def pull_every_row(work, begins, ends, in_indices, origin, signals, frontier, all_active, is_hidden, inbox, marks):
        first, last = claim(work)
        while first < last:
            for i in range(first, last):
                message = identity
                begin, end = row_range(begins, ends, i)
                for e in range(begin, end):
                    prefetch(in_indices, e + EDGES_AHEAD)
                    message = cast(combine(message, get(signals, local_number(load(in_indices, e), origin))))
                    if can_exit and message == absorbing:
                        break
                put(inbox, i, message)
            first, last = claim(work)

    def pull(work, begins, ends, in_indices, origin, signals, frontier, all_active, is_hidden, inbox, marks):
        first, last = claim(work)
        while first < last:
            while first < last:
                word = first >> 6
                received = np.uint64(0)
                for i in range(first, _word_end(first, last)):
                    message = identity
                    begin, end = row_range(begins, ends, i)
                    is_received = all_active and begin < end
                    for e in range(begin, end):
                        prefetch(in_indices, e + EDGES_AHEAD)
                        # An atomic load keeps LLVM from emitting vector gathers, which take twice as long here.
                        signal = get(signals, local_number(load(in_indices, e), origin))
                        message = cast(combine(message, signal))
                        if can_exit and message == absorbing:
                            break
                    is_received |= changed(message, identity)
                    # Messages may cancel out, or equal the signals of sources that send none: read the row again.
                    if (may_cancel or is_hidden) and not is_received:
                        is_received = _has_active(in_indices, begin, end, origin, frontier)
                    if is_received:
                        put(inbox, i, message)
                        received |= bit(i)
                if received != np.uint64(0):
                    fetch_and_or(marks, word, received)
                first = _word_end(first, last)
            first, last = claim(work)

    return pull_every_row if functions.always else pull


def _make_pull_edges(functions: Functions, *, has_weights: bool) -> Any:
    """Dense side, where each edge has its own message: compute and combine those of the active in-neighbours.

    ``rows`` may list the vertices of the rows.
    """
    send_along, combine, identity = make_send_along(device, functions), functions.combine, functions.identity
    get, put = make_get(device, functions.value), make_put(device, functions.message)
    cast, context = make_cast(device, functions.message), make_context(device, functions.context)
    weight_of, always = make_weight(device, has_weights), functions.always
    can_exit, absorbing = _early_exit(functions)

    def pull(
        work,
        begins,
        ends,
        in_indices,
        in_weights,
        origin,
        n,
        out_degrees,
        in_degrees,
        superstep,
        aggregates,
        values,
        frontier,
        all_active,
        rows,
        inbox,
        marks,
    ):
        first, last = claim(work)
        while first < last:
            while first < last:
                word = first >> 6
                received = np.uint64(0)
                for i in range(first, _word_end(first, last)):
                    message = identity
                    is_received = False
                    begin, end = row_range(begins, ends, i)
                    for e in range(begin, end):
                        prefetch(in_indices, e + EDGES_AHEAD)
                        v = np.int64(load(in_indices, e))
                        u = local_number(v, origin)
                        if all_active or get_bit(frontier, u):
                            ctx = context(v, superstep, n, out_degrees[u], in_degrees[u], aggregates)
                            sent = cast(send_along(get(values, u), weight_of(in_weights, e), row_vertex(rows, i), ctx))
                            message = cast(combine(message, sent))
                            is_received = True
                            if can_exit and message == absorbing:
                                break
                    if always or is_received:
                        put(inbox, i, message)
                        received |= bit(i)
                if not always and received != np.uint64(0):
                    fetch_and_or(marks, word, received)
                first = _word_end(first, last)
            first, last = claim(work)

    return pull


def _make_pull_selectively(functions: Functions, *, has_weights: bool) -> Any:
    """Dense side that reads only the rows of receivers and, with "any", each row only up to its first message.

    As few edges are read, messages are computed per edge, even if a source sends the same one along all. ``rows`` may
    list the vertices of the rows.
    """
    send_along, combine, identity = make_send_along(device, functions), functions.combine, functions.identity
    get, put = make_get(device, functions.value), make_put(device, functions.message)
    cast, context = make_cast(device, functions.message), make_context(device, functions.context)
    weight_of = make_weight(device, has_weights)
    is_receiver, takes_first = make_is_receiver(device, functions), functions.takes_first
    can_exit, absorbing = _early_exit(functions)

    def pull(
        work,
        begins,
        ends,
        in_indices,
        in_weights,
        origin,
        n,
        out_degrees,
        in_degrees,
        superstep,
        aggregates,
        values,
        frontier,
        all_active,
        rows,
        receivers,
        inbox,
        marks,
    ):
        first, last = claim(work)
        while first < last:
            while first < last:
                word = first >> 6
                base = word * WORD_BITS
                wanted = np.uint64(0)
                for i in range(first, _word_end(first, last)):
                    begin, end = row_range(begins, ends, i)
                    # Without branches, as half of them would be mispredicted.
                    is_wanted = (begin < end) & is_receiver(receivers, row_vertex(rows, i), n)
                    wanted |= np.uint64(is_wanted) << np.uint64(i - base)
                # The processor cannot foresee where the next of these rows begins.
                bits = wanted
                while bits != np.uint64(0):
                    prefetch(in_indices, begins[base + trailing_zeros(bits)])
                    bits &= bits - np.uint64(1)
                received = np.uint64(0)
                while wanted != np.uint64(0):
                    i = base + trailing_zeros(wanted)
                    wanted &= wanted - np.uint64(1)
                    begin, end = row_range(begins, ends, i)
                    message = identity
                    is_received = False
                    for e in range(begin, end):
                        v = np.int64(load(in_indices, e))
                        u = local_number(v, origin)
                        if all_active or get_bit(frontier, u):
                            ctx = context(v, superstep, n, out_degrees[u], in_degrees[u], aggregates)
                            target = row_vertex(rows, i)
                            sent = cast(send_along(get(values, u), weight_of(in_weights, e), target, ctx))
                            message = cast(combine(message, sent))
                            is_received = True
                            if takes_first or (can_exit and message == absorbing):
                                break
                    if is_received:
                        put(inbox, i, message)
                        received |= bit(i)
                if received != np.uint64(0):
                    fetch_and_or(marks, word, received)
                first = _word_end(first, last)
            first, last = claim(work)

    return pull


def _early_exit(functions: Functions) -> tuple[bool, Any]:
    """Whether reading a row can stop early, and the message at which it stops."""
    if functions.absorbing is None:
        return False, functions.identity
    return True, functions.absorbing


def make_slot(functions: Functions) -> Any:
    """Dense side of several partitions: combine one partition's messages into the inboxes of their owners.

    The messages are those of ``sent``, a bitmap of their positions; ``marks`` is one of the inboxes that have any. If
    all vertices apply and all rows are read, every position has a message and every inbox its content.
    """
    combine, identity = functions.combine, functions.identity
    cast, is_dense = make_cast(device, functions.message), functions.always and not functions.is_selective
    get, put = make_get(device, functions.message), make_put(device, functions.message)

    def dense_slot(work, rows, mirrors, sent, origin, inbox, marks):
        first, last = claim(work)
        while first < last:
            for i in range(first, last):
                if is_dense or get_bit(sent, i):
                    v = local_number(np.int64(rows[i]), origin)
                    message = identity
                    if is_dense or get_bit(marks, v):
                        message = get(inbox, v)
                    else:
                        fetch_and_or(marks, v >> 6, bit(v))
                    put(inbox, v, cast(combine(message, get(mirrors, i))))
            first, last = claim(work)

    return dense_slot

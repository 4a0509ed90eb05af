"""The pull kernel of a vertex program on the CPU, and the slot kernel that merges what was pulled in parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.kernels.library.atomics_cpu import load, prefetch
from gpu_pregel.kernels.library.bits_cpu import WORD_BITS, bit, get_bit, trailing_zeros
from gpu_pregel.kernels.library.jit_cpu import device
from gpu_pregel.kernels.library.work_cpu import claim
from gpu_pregel.kernels.programs.fields import (
    Functions,
    make_cast,
    make_context,
    make_differs,
    make_get,
    make_put,
    make_send_along,
    make_weight,
)
from gpu_pregel.kernels.programs.receivers import make_is_receiver
from gpu_pregel.kernels.programs.rows_cpu import local_number, row_range, row_vertex

EDGES_AHEAD = 256
"""Prefetch distance for neighbours: with the processor's own prefetching alone, a quarter of the time is lost."""


def make_pull(functions: Functions, *, has_weights: bool) -> Any:
    """Dense side: combine the messages of the in-neighbours, computed once per source or once per edge."""
    if functions.is_selective:
        return _make_pull_selectively(functions, has_weights=has_weights)
    return _make_pull_edges(functions, has_weights=has_weights) if functions.per_edge else _make_pull_signals(functions)


def _make_pull_signals(functions: Functions) -> Any:
    """Dense side, where a source sends the same message along all its edges: combine the in-neighbours' signals."""
    combine, identity = functions.combine, functions.identity
    get, put = make_get(device, functions.message), make_put(device, functions.message)
    cast = make_cast(device, functions.message)
    can_exit, absorbing = _early_exit(functions)

    def pull(work: Any, begins: Any, ends: Any, in_indices: Any, origin: Any, signals: Any, inbox: Any) -> None:
        first, last = claim(work)
        while first < last:
            for i in range(first, last):
                message = identity
                begin, end = row_range(begins, ends, i)
                for e in range(begin, end):
                    prefetch(in_indices, e + EDGES_AHEAD)
                    # An atomic load keeps LLVM from emitting vector gathers, which take twice as long here.
                    message = cast(combine(message, get(signals, local_number(load(in_indices, e), origin))))
                    if can_exit and message == absorbing:
                        break
                put(inbox, i, message)
            first, last = claim(work)

    return pull


def _make_pull_edges(functions: Functions, *, has_weights: bool) -> Any:
    """Dense side, where each edge has its own message: compute and combine those of the active in-neighbours.

    ``rows`` may list the vertices of the rows.
    """
    send_along, combine, identity = make_send_along(device, functions), functions.combine, functions.identity
    get, put = make_get(device, functions.value), make_put(device, functions.message)
    cast, context = make_cast(device, functions.message), make_context(device, functions.context)
    weight_of = make_weight(device, has_weights)
    can_exit, absorbing = _early_exit(functions)

    def pull(
        work: Any,
        begins: Any,
        ends: Any,
        in_indices: Any,
        in_weights: Any,
        origin: Any,
        n: Any,
        out_degrees: Any,
        in_degrees: Any,
        superstep: Any,
        aggregates: Any,
        values: Any,
        frontier: Any,
        all_active: Any,
        rows: Any,
        inbox: Any,
    ) -> None:
        first, last = claim(work)
        while first < last:
            for i in range(first, last):
                message = identity
                begin, end = row_range(begins, ends, i)
                for e in range(begin, end):
                    prefetch(in_indices, e + EDGES_AHEAD)
                    v = np.int64(load(in_indices, e))
                    u = local_number(v, origin)
                    if all_active or get_bit(frontier, u):
                        ctx = context(v, superstep, n, out_degrees[u], in_degrees[u], aggregates)
                        sent = cast(send_along(get(values, u), weight_of(in_weights, e), row_vertex(rows, i), ctx))
                        message = cast(combine(message, sent))
                        if can_exit and message == absorbing:
                            break
                put(inbox, i, message)
            first, last = claim(work)

    return pull


def _make_pull_selectively(functions: Functions, *, has_weights: bool) -> Any:
    """Dense side that reads only the rows of receivers and, with "any", each row only up to its first message.

    As few edges are read, messages are computed per edge, even if a source sends the same one along all. Where
    ``touched`` is given, the inbox is empty and row i is vertex i: only messages are written, and marked there, and
    threads must claim whole words of it. Otherwise every row is written. ``rows`` may list the vertices of the rows.
    """
    send_along, combine, identity = make_send_along(device, functions), functions.combine, functions.identity
    get, put = make_get(device, functions.value), make_put(device, functions.message)
    cast, differs = make_cast(device, functions.message), make_differs(device, functions.message)
    context, weight_of = make_context(device, functions.context), make_weight(device, has_weights)
    is_receiver, takes_first = make_is_receiver(device, functions), functions.takes_first
    can_exit, absorbing = _early_exit(functions)

    def pull(
        work: Any,
        begins: Any,
        ends: Any,
        in_indices: Any,
        in_weights: Any,
        origin: Any,
        n: Any,
        out_degrees: Any,
        in_degrees: Any,
        superstep: Any,
        aggregates: Any,
        values: Any,
        frontier: Any,
        all_active: Any,
        rows: Any,
        receivers: Any,
        touched: Any,
        inbox: Any,
    ) -> None:
        first, last = claim(work)
        while first < last:
            for base in range(first, last, WORD_BITS):
                wanted = np.uint64(0)
                for i in range(base, min(base + WORD_BITS, last)):
                    begin, end = row_range(begins, ends, i)
                    # Without branches, as half of them would be mispredicted.
                    is_wanted = (begin < end) & is_receiver(receivers, row_vertex(rows, i), n)
                    wanted |= np.uint64(is_wanted) << np.uint64(i - base)
                if touched is None:
                    for i in range(base, min(base + WORD_BITS, last)):
                        put(inbox, i, identity)
                # The processor cannot foresee where the next of these rows begins.
                bits = wanted
                while bits != np.uint64(0):
                    prefetch(in_indices, begins[base + trailing_zeros(bits)])
                    bits &= bits - np.uint64(1)
                marks = np.uint64(0)
                while wanted != np.uint64(0):
                    i = base + trailing_zeros(wanted)
                    wanted &= wanted - np.uint64(1)
                    begin, end = row_range(begins, ends, i)
                    message = identity
                    for e in range(begin, end):
                        v = np.int64(load(in_indices, e))
                        u = local_number(v, origin)
                        if all_active or get_bit(frontier, u):
                            ctx = context(v, superstep, n, out_degrees[u], in_degrees[u], aggregates)
                            target = row_vertex(rows, i)
                            sent = cast(send_along(get(values, u), weight_of(in_weights, e), target, ctx))
                            message = cast(combine(message, sent))
                            if takes_first or (can_exit and message == absorbing):
                                break
                    if differs(message, identity):
                        put(inbox, i, message)
                        marks |= bit(i - base)
                if touched is not None:
                    touched[base >> 6] = marks
            first, last = claim(work)

    return pull


def _early_exit(functions: Functions) -> tuple[bool, Any]:
    """Whether reading a row can stop early, and the message at which it stops."""
    if functions.absorbing is None:
        return False, functions.identity
    return True, functions.absorbing


def make_slot(functions: Functions) -> Any:
    """Dense side of several partitions: combine one partition's messages into the inboxes of their owners."""
    combine, cast = functions.combine, make_cast(device, functions.message)
    get, put = make_get(device, functions.message), make_put(device, functions.message)

    def dense_slot(work: Any, rows: Any, mirrors: Any, origin: Any, inbox: Any) -> None:
        first, last = claim(work)
        while first < last:
            for i in range(first, last):
                v = local_number(np.int64(rows[i]), origin)
                put(inbox, v, cast(combine(get(inbox, v), get(mirrors, i))))
            first, last = claim(work)

    return dense_slot

"""The push kernel of a vertex program on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.kernels.library.atomics_cpu import fetch_and_or, load
from gpu_pregel.kernels.library.bits_cpu import WORD_BITS, bit, get_bit, trailing_zeros
from gpu_pregel.kernels.library.jit_cpu import device
from gpu_pregel.kernels.library.work_cpu import claim
from gpu_pregel.kernels.programs.apply import make_is_receiver
from gpu_pregel.kernels.programs.combine_cpu import make_combine_at
from gpu_pregel.kernels.programs.functions import Functions, make_context, make_send_along
from gpu_pregel.kernels.traverse.fields import make_cast, make_get, make_weight
from gpu_pregel.kernels.traverse.rows_cpu import local_number, row_number, row_range, word_number


def make_push(functions: Functions, *, has_weights: bool) -> Any:
    """Sparse side: every active source sends along its out-edges and marks the destinations in ``touched``.

    The work items are the words of ``sources``, followed by the pieces of hubs. The state of a source is at its row
    if ``by_row`` is true, and at its vertex number otherwise.
    """
    send_row = _make_send_row(functions, has_weights=has_weights)

    def push(
        work,
        numbers,
        sources,
        firsts,
        begins,
        ends,
        hub_words,
        hub_bits,
        hub_begins,
        hub_ends,
        out_indices,
        out_weights,
        by_row,
        n,
        out_degrees,
        in_degrees,
        superstep,
        aggregates,
        values,
        frontier,
        origin,
        receivers,
        inbox_bits,
        touched,
    ):
        edges = (out_indices, out_weights)
        state = (superstep, n, out_degrees, in_degrees, aggregates, values)
        inbox = (origin, receivers, inbox_bits, touched)
        first, last = claim(work)
        while first < last:
            for item in range(first, last):
                piece = np.int64(item - len(sources))
                k = np.int64(item)
                only = ~np.uint64(0)
                if piece >= 0:
                    k = np.int64(hub_words[piece])
                    only = hub_bits[piece]
                word = word_number(numbers, k)
                bits = frontier[k if by_row else word] & sources[k] & only
                while bits != np.uint64(0):
                    u = word * WORD_BITS + trailing_zeros(bits)
                    bits &= bits - np.uint64(1)
                    row = row_number(firsts, k, sources, u)
                    begin, end = row_range(begins, ends, row)
                    if piece >= 0:
                        begin = hub_begins[piece]
                        end = hub_ends[piece]
                    if begin < end:
                        send_row(u, row if by_row else u, begin, end, edges, state, inbox)
            first, last = claim(work)

    return push


def _make_send_row(functions: Functions, *, has_weights: bool) -> Any:
    """``send_row(u, i, begin, end, edges, state, inbox)``: send the messages of u, whose state is at i, along edges."""
    send_along = make_send_along(device, functions)
    get, cast = make_get(device, functions.value), make_cast(device, functions.message)
    context, weight_of = make_context(device, functions.context), make_weight(device, has_weights)
    combine_at, is_receiver = make_combine_at(functions), make_is_receiver(device, functions)
    marks = not functions.always

    def send_row(u, i, begin, end, edges, state, inbox):
        indices, weights = edges
        superstep, n, out_degrees, in_degrees, aggregates, values = state
        origin, receivers, inbox_bits, touched = inbox
        ctx = context(u, superstep, n, out_degrees[i], in_degrees[i], aggregates)
        value = get(values, i)
        for e in range(begin, end):
            target = np.int64(load(indices, e))
            v = local_number(target, origin)
            if is_receiver(receivers, v, n):
                message = cast(send_along(value, weight_of(weights, e), target, ctx))
                combine_at(inbox_bits, v, message)
                if marks and not get_bit(touched, v):
                    fetch_and_or(touched, v >> 6, bit(v))

    return device(send_row)

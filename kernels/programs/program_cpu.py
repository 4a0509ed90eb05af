"""Kernels of a vertex program over vertices on the CPU: init, signal and apply.

Each ``make_…`` returns a kernel that calls the program's compiled functions; how these were compiled does not matter
here. Values and messages are stored as one array per field and passed to kernels as tuples of arrays. The kernels
over edges are in ``push_cpu`` and ``pull_cpu``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.kernels.library.bits_cpu import WORD_BITS, bit, bits_of_float, get_bit, trailing_zeros
from gpu_pregel.kernels.library.jit_cpu import device
from gpu_pregel.kernels.library.work_cpu import claim
from gpu_pregel.kernels.programs.apply import make_accept, make_folding, make_take_message, make_update
from gpu_pregel.kernels.programs.functions import Functions, make_context
from gpu_pregel.kernels.traverse.fields import make_cast, make_changed, make_get, make_put

BLOCK_WORDS = 64
"""Counts and aggregates are summed over blocks of this many bitmap words, whatever the number of threads."""


def make_init(functions: Functions) -> Any:
    """Superstep 0: set every value and the first frontier, unless they are given; one row of ``counts`` per block."""
    init: Any = functions.init
    initially_active: Any = functions.initially_active
    put, cast = make_put(device, functions.value), make_cast(device, functions.value)
    context = make_context(device, functions.context)
    all_active = initially_active is None

    def initialise(
        work, has_values, has_frontier, origin, n, out_degrees, in_degrees, aggregates, values, frontier, counts
    ):
        first, last = claim(work)
        while first < last:
            for block in range(first, last):
                active = 0
                edges = 0
                begin = block * BLOCK_WORDS
                for word in range(begin, min(begin + BLOCK_WORDS, len(frontier))):
                    bits = np.uint64(0)
                    for v in range(word * WORD_BITS, min((word + 1) * WORD_BITS, len(out_degrees))):
                        ctx = context(origin + v, np.int64(0), n, out_degrees[v], in_degrees[v], aggregates)
                        if not has_values:
                            put(values, v, cast(init(ctx)))
                        if get_bit(frontier, v) if has_frontier else all_active or initially_active(ctx):
                            bits |= bit(v)
                            active += 1
                            edges += ctx.out_degree
                    frontier[word] = bits
                counts[block, 0] = active
                counts[block, 1] = edges
                counts[block, 2] = 0
            first, last = claim(work)

    return initialise


def make_signal(functions: Functions) -> Any:
    """Dense side: each active source's message, the same for all its edges; the identity for inactive vertices.

    ``is_hidden[0]`` is set if a message cannot be told from none, as it equals the identity.
    """
    send, combine, identity = functions.send, functions.combine, functions.identity
    get, put = make_get(device, functions.value), make_put(device, functions.message)
    cast, context = make_cast(device, functions.message), make_context(device, functions.context)
    changed, always = make_changed(device, functions.message, bits_of_float), functions.always

    def dense_signal(
        work, origin, n, out_degrees, in_degrees, superstep, aggregates, values, frontier, signals, is_hidden
    ):
        hides = False
        first, last = claim(work)
        while first < last:
            for v in range(first, last):
                message = identity
                if get_bit(frontier, v):
                    ctx = context(origin + v, superstep, n, out_degrees[v], in_degrees[v], aggregates)
                    message = cast(send(get(values, v), ctx))
                    if not always:
                        # The minimum of infinity and NaN is infinity.
                        taken = cast(combine(identity, message))
                        hides |= not (changed(message, identity) and changed(taken, identity))
                put(signals, v, message)
            first, last = claim(work)
        if hides:
            is_hidden[0] = True

    return dense_signal


def make_apply(functions: Functions) -> Any:
    """Every vertex of ``touched`` applies its message; sets the frontier, clears inbox and ``touched``.

    With ``wake``, ``woken`` gets the vertices that wake agents; without it, the array is not used.
    """
    has_wake = functions.wake is not None
    take_message = make_take_message(device, functions)
    begin_folding, fold, finish_folding = make_folding(device, functions.aggregators)
    update = make_update(device, functions, fold, bits_of_float)
    context, accept = make_context(device, functions.context), make_accept(device, functions)

    def apply_messages(
        work,
        origin,
        n,
        out_degrees,
        in_degrees,
        superstep,
        aggregates,
        inbox,
        touched,
        values,
        frontier,
        woken,
        counts,
        partials,
    ):
        first, last = claim(work)
        while first < last:
            for block in range(first, last):
                active = 0
                edges = 0
                applied = 0
                sums = begin_folding(partials, block)
                begin = block * BLOCK_WORDS
                for word in range(begin, min(begin + BLOCK_WORDS, len(frontier))):
                    candidates = touched[word]
                    touched[word] = np.uint64(0)
                    bits = np.uint64(0)
                    woken_bits = np.uint64(0)
                    while candidates != np.uint64(0):
                        v = word * WORD_BITS + trailing_zeros(candidates)
                        candidates &= candidates - np.uint64(1)
                        message = take_message(inbox, v)
                        ctx = context(origin + v, superstep, n, out_degrees[v], in_degrees[v], aggregates)
                        has_message, message = accept(values, v, message, ctx)
                        if has_message:
                            applied += 1
                            is_active, wakes, sums = update(values, v, message, ctx, sums)
                            if wakes:
                                woken_bits |= bit(v)
                            if is_active:
                                bits |= bit(v)
                                active += 1
                                edges += ctx.out_degree
                    frontier[word] = bits
                    if has_wake:
                        woken[word] = woken_bits
                counts[block, 0] = active
                counts[block, 1] = edges
                counts[block, 2] = applied
                finish_folding(partials, block, sums)
            first, last = claim(work)

    return apply_messages

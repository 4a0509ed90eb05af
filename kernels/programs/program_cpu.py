"""Kernels of a vertex program on the CPU, made of the program's own functions.

Each ``make_…`` closes a kernel over a program's compiled functions; nothing here knows how these were compiled. Values
and messages are kept as one array per field, and handed to kernels as tuples of arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.kernels.library.atomics_cpu import compare_and_swap, fetch_and_or, load, prefetch
from gpu_pregel.kernels.library.bits_cpu import (
    WORD_BITS,
    bit,
    bits_of_float,
    float_of_bits,
    get_bit,
    popcount,
    trailing_zeros,
)
from gpu_pregel.kernels.library.jit_cpu import device, inline
from gpu_pregel.kernels.library.work_cpu import claim
from gpu_pregel.kernels.programs.fields import (
    Functions,
    make_cast,
    make_changed,
    make_context,
    make_differs,
    make_folding,
    make_get,
    make_put,
    make_weight,
)

EDGES_AHEAD = 256
"""How far ahead neighbours are fetched: the processor's own prefetching leaves a quarter of the time unused."""
HUB_EDGES = 1 << 16
"""Rows of more edges are pushed and pulled in pieces of so many, which several threads can share."""
BLOCK_WORDS = 64
"""Counts and aggregates are summed by blocks of so many words of vertices, whatever the number of threads."""


@inline
def local_number(v: Any, origin: Any) -> Any:
    """The number of vertex ``v`` among those from ``origin`` on; ``v`` itself if ``origin`` is None."""
    if origin is None:
        return v
    return np.int64(v) - origin


@inline
def word_number(numbers: Any, k: Any) -> Any:
    """The bitmap word at position ``k`` of a list; ``k`` itself if there is no list."""
    if numbers is None:
        return k
    return np.int64(numbers[k])


@inline
def row_number(firsts: Any, k: Any, words: Any, u: Any) -> Any:
    """The row of vertex ``u``, a bit of ``words[k]``, whose lowest bit has row ``firsts[k]``; ``u`` without a list."""
    if firsts is None:
        return u
    return np.int64(firsts[k]) + popcount(words[k] & (bit(u) - np.uint64(1)))


def make_init(functions: Functions) -> Any:
    """Superstep 0: set every value and the first frontier; one row of ``counts`` per block."""
    init: Any = functions.init
    initially_active: Any = functions.initially_active
    put, cast, context = (
        make_put(device, functions.value),
        make_cast(device, functions.value),
        make_context(device, functions.names),
    )
    everywhere = initially_active is None

    def initialise(
        work: Any,
        origin: Any,
        n: Any,
        out_degrees: Any,
        in_degrees: Any,
        aggregates: Any,
        values: Any,
        frontier: Any,
        counts: Any,
    ) -> None:
        first, last = claim(work)
        while first < last:
            for block in range(first, last):
                active = 0
                edges = 0
                begin = block * BLOCK_WORDS
                for word in range(begin, min(begin + BLOCK_WORDS, len(frontier))):
                    bits = np.uint64(0)
                    for v in range(word * WORD_BITS, min((word + 1) * WORD_BITS, len(out_degrees))):
                        out_degree = out_degrees[v]
                        ctx = context(np.int64(origin + v), np.int64(0), n, out_degree, in_degrees[v], aggregates)
                        put(values, v, cast(init(ctx)))
                        if everywhere or initially_active(ctx):
                            bits |= bit(v)
                            active += 1
                            edges += out_degree
                    frontier[word] = bits
                counts[block, 0] = active
                counts[block, 1] = edges
                counts[block, 2] = 0
            first, last = claim(work)

    return initialise


def make_signal(functions: Functions) -> Any:
    """Dense side: each active source's message, the same for all its edges; the identity where there is none."""
    send, identity = functions.send, functions.identity
    get, cast, put = (
        make_get(device, functions.value),
        make_cast(device, functions.message),
        make_put(device, functions.message),
    )
    context = make_context(device, functions.names)

    def dense_signal(
        work: Any,
        origin: Any,
        n: Any,
        out_degrees: Any,
        in_degrees: Any,
        superstep: Any,
        aggregates: Any,
        values: Any,
        frontier: Any,
        signals: Any,
    ) -> None:
        first, last = claim(work)
        while first < last:
            for v in range(first, last):
                message = identity
                if get_bit(frontier, v):
                    ctx = context(np.int64(origin + v), superstep, n, out_degrees[v], in_degrees[v], aggregates)
                    message = cast(send(get(values, v), ctx))
                put(signals, v, message)
            first, last = claim(work)

    return dense_signal


def make_pull(functions: Functions, *, has_weights: bool) -> Any:
    """Dense side: combine the messages of the in-neighbours; made by the one of the next two that fits."""
    return _make_pull_edges(functions, has_weights=has_weights) if functions.per_edge else _make_pull_signals(functions)


def _make_pull_signals(functions: Functions) -> Any:
    """Dense side, where the message is the same for all edges of a source: combine the signals of the in-neighbours."""
    combine, identity = functions.combine, functions.identity
    get, cast, put = (
        make_get(device, functions.message),
        make_cast(device, functions.message),
        make_put(device, functions.message),
    )
    can_exit, absorbing = _early_exit(functions)

    def pull(work: Any, begins: Any, ends: Any, in_indices: Any, origin: Any, signals: Any, inbox: Any) -> None:
        first, last = claim(work)
        while first < last:
            for i in range(first, last):
                message = identity
                begin = begins[i]
                end = ends[i]
                if end - begin > HUB_EDGES:
                    end = begin
                for e in range(begin, end):
                    prefetch(in_indices, e + EDGES_AHEAD)
                    # An atomic load, so that LLVM makes no vector gathers of it: they take twice as long here.
                    message = cast(combine(message, get(signals, local_number(load(in_indices, e), origin))))
                    if can_exit and message == absorbing:
                        break
                put(inbox, i, message)
            first, last = claim(work)

    return pull


def _make_pull_edges(functions: Functions, *, has_weights: bool) -> Any:
    """Dense side, where every edge has a message of its own: compute and combine those of the active in-neighbours."""
    send, combine, identity = functions.send, functions.combine, functions.identity
    get, cast, put = (
        make_get(device, functions.value),
        make_cast(device, functions.message),
        make_put(device, functions.message),
    )
    context, weight_of = make_context(device, functions.names), make_weight(device, has_weights)
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
        inbox: Any,
    ) -> None:
        first, last = claim(work)
        while first < last:
            for i in range(first, last):
                message = identity
                begin = begins[i]
                end = ends[i]
                if end - begin > HUB_EDGES:
                    end = begin
                for e in range(begin, end):
                    prefetch(in_indices, e + EDGES_AHEAD)
                    v = np.int64(load(in_indices, e))
                    u = local_number(v, origin)
                    if all_active or get_bit(frontier, u):
                        ctx = context(v, superstep, n, out_degrees[u], in_degrees[u], aggregates)
                        sent = cast(send(get(values, u), weight_of(in_weights, e), ctx))
                        message = cast(combine(message, sent))
                        if can_exit and message == absorbing:
                            break
                put(inbox, i, message)
            first, last = claim(work)

    return pull


def _early_exit(functions: Functions) -> tuple[bool, Any]:
    """Whether a row need not be read to its end, and the message at which that is known."""
    if functions.absorbing is None:
        return False, functions.identity
    return True, functions.absorbing


def make_slot(functions: Functions) -> Any:
    """Dense side of several partitions: combine one partition's messages into the inbox of their owners."""
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


def make_combine_at(functions: Functions) -> Any:
    """``combine_at(inbox, inbox_bits, v, message)``: combine by compare-and-swap; return whether it changed."""
    combine, cast = functions.combine, make_cast(device, functions.message)
    dtype = functions.message.dtypes[0]

    @device
    def combined_bits(bits: Any, message: Any) -> Any:
        return bits_of_float(cast(combine(float_of_bits(bits), message)))

    def combine_bits(inbox_bits: Any, v: Any, message: Any) -> Any:
        old = load(inbox_bits, v)
        while True:
            new = combined_bits(old, message)
            if new == old:
                return False
            if compare_and_swap(inbox_bits, v, old, new):
                return True
            old = load(inbox_bits, v)

    def combine_integers(inbox: Any, v: Any, message: Any) -> Any:
        old = load(inbox, v)
        while True:
            new = cast(combine(old, message))
            if new == old:
                return False
            if compare_and_swap(inbox, v, old, new):
                return True
            old = load(inbox, v)

    def combine_bools(inbox_bits: Any, v: Any, message: Any) -> Any:
        old = load(inbox_bits, v)
        while True:
            new = np.uint8(1) if cast(combine(old != 0, message)) else np.uint8(0)
            if new == old:
                return False
            if compare_and_swap(inbox_bits, v, old, new):
                return True
            old = load(inbox_bits, v)

    return device({"f": combine_bits, "b": combine_bools}.get(dtype.kind, combine_integers))


def make_push(functions: Functions, *, has_weights: bool) -> Any:
    """Sparse side: every active source sends along its out-edges; a word of ``touched`` per 64 destinations.

    The work items are the words of ``sources``, followed by the pieces of hubs. The state of a source is at its row
    if ``by_row`` is true, and at its vertex number otherwise.
    """
    send, per_edge = functions.send, functions.per_edge
    get, cast = make_get(device, functions.value), make_cast(device, functions.message)
    context, weight_of, combine_at = (
        make_context(device, functions.names),
        make_weight(device, has_weights),
        make_combine_at(functions),
    )
    if per_edge:
        send_along = send
    else:

        @device
        def send_along(value: Any, weight: Any, ctx: Any) -> Any:
            return send(value, ctx)

    def push(
        work: Any,
        numbers: Any,
        sources: Any,
        firsts: Any,
        begins: Any,
        ends: Any,
        hub_words: Any,
        hub_bits: Any,
        hub_begins: Any,
        hub_ends: Any,
        out_indices: Any,
        out_weights: Any,
        by_row: Any,
        n: Any,
        out_degrees: Any,
        in_degrees: Any,
        superstep: Any,
        aggregates: Any,
        values: Any,
        frontier: Any,
        origin: Any,
        inbox_bits: Any,
        touched: Any,
    ) -> None:
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
                    row = row_number(firsts, k, sources, u)
                    i = row if by_row else u
                    bits &= bits - np.uint64(1)
                    begin = begins[row]
                    end = ends[row]
                    if piece >= 0:
                        begin = hub_begins[piece]
                        end = hub_ends[piece]
                    elif end - begin > HUB_EDGES:
                        continue
                    ctx = context(np.int64(u), superstep, n, out_degrees[i], in_degrees[i], aggregates)
                    value = get(values, i)
                    for e in range(begin, end):
                        message = cast(send_along(value, weight_of(out_weights, e), ctx))
                        v = local_number(np.int64(load(out_indices, e)), origin)
                        if combine_at(inbox_bits, v, message) and not get_bit(touched, v):
                            fetch_and_or(touched, v >> 6, bit(v))
            first, last = claim(work)

    return push


def make_apply(functions: Functions, *, always: bool) -> Any:
    """Every vertex of ``touched`` with a message applies it; sets the frontier, clears inbox and ``touched``."""
    apply, identity = functions.apply, functions.identity
    is_active: Any = functions.is_active
    get, put, cast = (
        make_get(device, functions.value),
        make_put(device, functions.value),
        make_cast(device, functions.value),
    )
    get_message, put_message = make_get(device, functions.message), make_put(device, functions.message)
    differs, changed, context = (
        make_differs(device, functions.message),
        make_changed(device, functions.value, bits_of_float),
        make_context(device, functions.names),
    )
    begin_folding, fold, finish_folding = make_folding(device, functions.aggregators)
    by_bits = is_active is None

    def apply_messages(
        work: Any,
        origin: Any,
        n: Any,
        out_degrees: Any,
        in_degrees: Any,
        superstep: Any,
        aggregates: Any,
        inbox: Any,
        touched: Any,
        values: Any,
        frontier: Any,
        counts: Any,
        partials: Any,
    ) -> None:
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
                    while candidates != np.uint64(0):
                        v = word * WORD_BITS + trailing_zeros(candidates)
                        candidates &= candidates - np.uint64(1)
                        message = get_message(inbox, v)
                        if always or differs(message, identity):
                            put_message(inbox, v, identity)
                            out_degree = out_degrees[v]
                            ctx = context(np.int64(origin + v), superstep, n, out_degree, in_degrees[v], aggregates)
                            old = get(values, v)
                            new = cast(apply(old, message, ctx))
                            put(values, v, new)
                            applied += 1
                            sums = fold(sums, old, new, ctx)
                            if always or (changed(old, new) if by_bits else is_active(old, new, ctx)):
                                bits |= bit(v)
                                active += 1
                                edges += out_degree
                    frontier[word] = bits
                counts[block, 0] = active
                counts[block, 1] = edges
                counts[block, 2] = applied
                finish_folding(partials, block, sums)
            first, last = claim(work)

    return apply_messages

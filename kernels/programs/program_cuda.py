"""Kernels of a vertex program over vertices on CUDA: init, signal and apply.

Each ``make_…`` returns a kernel that calls the program's device functions. The kernels over edges are in ``push_cuda``
and ``pull_cuda``; how a superstep's figures are summed is in ``figures_cuda``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.kernels.library.atomics_cuda import load_relaxed, store_relaxed
from gpu_pregel.kernels.library.bits_cuda import bits_of_float, get_bit
from gpu_pregel.kernels.library.compiler_cuda import cuda, types
from gpu_pregel.kernels.library.jit_cuda import BLOCK, Kernel, device, kernel
from gpu_pregel.kernels.library.warps_cuda import ALL, lane_number
from gpu_pregel.kernels.programs.apply import make_accept, make_take_message, make_update
from gpu_pregel.kernels.programs.array_types_cuda import ArrayTypes
from gpu_pregel.kernels.programs.failures_cuda import SENDING
from gpu_pregel.kernels.programs.figures_cuda import FAILURE, NO_LIMIT, end_without_row, is_beyond_the_end, make_finish
from gpu_pregel.kernels.programs.functions import Functions, make_context
from gpu_pregel.kernels.programs.guards_cuda import make_update_or_fail
from gpu_pregel.kernels.traverse.fields import make_cast, make_changed, make_get, make_put

MAX_BLOCKS = 1024
"""Maximum number of blocks of a kernel over all vertices, the same on every chip; each processes a range of them."""


@device
def _tiles(n):
    """Return the range of tiles, of ``BLOCK`` vertices each, that this block processes."""
    tiles = np.uint32((n + np.uint32(BLOCK - 1)) // np.uint32(BLOCK))
    blocks = np.uint32(cuda.gridDim.x)
    share = np.uint32((tiles + blocks - np.uint32(1)) // blocks)
    first = min(np.uint32(np.uint32(cuda.blockIdx.x) * share), tiles)
    return first, min(np.uint32(first + share), tiles)


def make_init(functions: Functions, arrays: ArrayTypes) -> Kernel:
    """Superstep 0: set every value and the first frontier, unless they are given."""
    init: Any = functions.init
    initially_active: Any = functions.initially_active
    all_active = initially_active is None
    put, cast = make_put(device, functions.value), make_cast(device, functions.value)
    context = make_context(device, functions.context)
    start, _, finish = make_finish(functions.aggregators)

    @device
    def is_first(ctx):
        return True if all_active else initially_active(ctx) != 0

    degrees_type, aggregates_type = types.UniTuple(arrays.offsets, 2), types.UniTuple(arrays.aggregates, 2)

    @kernel(
        *(types.boolean, types.boolean, degrees_type, aggregates_type, arrays.values, arrays.vertices, arrays.figures)
    )
    def initialise(has_values, has_frontier, degrees, aggregates, values, frontier, figures):
        out_degrees, in_degrees = degrees
        n, lane = np.uint32(len(out_degrees)), lane_number()
        active, edges = np.uint32(0), np.int64(0)
        first, last = _tiles(n)
        for tile in range(first, last):
            v = np.uint32(np.uint32(tile) * np.uint32(BLOCK) + np.uint32(cuda.threadIdx.x))
            is_active = False
            if v < n:
                ctx = context(v, np.int64(0), n, out_degrees[v], in_degrees[v], aggregates[1])
                if not has_values:
                    put(values, v, cast(init(ctx)))
                if get_bit(frontier, v) if has_frontier else is_first(ctx):
                    is_active = True
                    edges += ctx.out_degree
            bits = np.uint32(cuda.ballot_sync(ALL, is_active))
            cuda.syncwarp()
            word = np.uint32(v >> np.uint32(5))
            if lane == np.uint32(0):
                active = np.uint32(active + np.uint32(cuda.popc(bits)))
                if word < np.uint32(len(frontier)):
                    frontier[word] = bits
        finish(active, edges, np.uint32(0), start(), np.int64(0), NO_LIMIT, aggregates, figures)

    return initialise


def make_signal(functions: Functions, arrays: ArrayTypes) -> Kernel:
    """Dense side: each active source's message, the same for all its edges; the identity for inactive vertices.

    ``hidden[0]`` is set to the superstep if a message cannot be told from none, as it equals the identity.
    """
    send, identity = functions.send, functions.identity
    get, cast = make_get(device, functions.value), make_cast(device, functions.message)
    put, context = make_put(device, functions.message), make_context(device, functions.context)
    changed, always = make_changed(device, functions.message, bits_of_float), functions.always

    @kernel(
        *(arrays.offsets, arrays.offsets, types.int64, arrays.aggregates, arrays.values, arrays.vertices),
        *(arrays.messages, arrays.control),
    )
    def dense_signal(out_degrees, in_degrees, superstep, seen, values, frontier, signals, hidden):
        v = np.uint32(cuda.grid(1))
        if v < np.uint32(len(out_degrees)):
            message = identity
            if get_bit(frontier, v):
                ctx = context(v, superstep, len(out_degrees), out_degrees[v], in_degrees[v], seen)
                message = cast(send(get(values, v), ctx))
                if not always and not changed(message, identity):
                    store_relaxed(hidden, np.uint32(0), superstep)
            put(signals, v, message)

    return dense_signal


def make_apply(functions: Functions, arrays: ArrayTypes) -> Kernel:
    """The vertices of ``touched``, or ``every`` vertex, apply; sets the frontier, clears inboxes and ``touched``.

    With ``wake``, ``woken`` gets the vertices that wake agents; without it, the array is not used.
    """
    has_wake = functions.wake is not None
    start, fold, finish = make_finish(functions.aggregators)
    # If all vertices apply, most inboxes may be empty and need not be written.
    take_message = make_take_message(device, functions, keeps_empty=functions.always)
    update = make_update_or_fail(functions, make_update(device, functions, fold, bits_of_float))
    put, records = make_put(device, functions.message), functions.records
    context, accept = make_context(device, functions.context), make_accept(device, functions)

    degrees_type, aggregates_type = types.UniTuple(arrays.offsets, 2), types.UniTuple(arrays.aggregates, 2)

    @kernel(
        *(types.boolean, types.int64, types.int64, types.int64, degrees_type, aggregates_type, arrays.inbox),
        *(arrays.vertices, arrays.values, arrays.vertices, arrays.vertices, arrays.figures),
    )
    def apply_messages(
        every, superstep, row, edge_limit, degrees, aggregates, inbox, touched, values, frontier, woken, figures
    ):
        (out_degrees, in_degrees), control = degrees, figures[2]
        if is_beyond_the_end(control, row):
            return
        if records and load_relaxed(control, FAILURE) >= SENDING:
            # Nothing is applied, so that the host finds what the senders were called with.
            end_without_row(control)
            return
        n, lane = np.uint32(len(out_degrees)), lane_number()
        active, edges, applied = np.uint32(0), np.int64(0), np.uint32(0)
        sums = start()
        first, last = _tiles(n)
        for tile in range(first, last):
            v = np.uint32(np.uint32(tile) * np.uint32(BLOCK) + np.uint32(cuda.threadIdx.x))
            has_message, is_active, wakes = False, False, False
            if v < n and (every or get_bit(touched, v)):
                message = take_message(inbox, v)
                ctx = context(v, superstep, n, out_degrees[v], in_degrees[v], aggregates[1])
                has_message, message = accept(values, v, message, ctx)
                if has_message:
                    is_active, wakes, sums, has_failed = update(values, v, message, ctx, sums)
                    if has_failed:
                        # The host repeats the call.
                        put(inbox, v, message)
                    if is_active:
                        edges += ctx.out_degree
            bits = np.uint32(cuda.ballot_sync(ALL, is_active))
            woken_bits = np.uint32(cuda.ballot_sync(ALL, wakes)) if has_wake else np.uint32(0)
            applied_bits = np.uint32(cuda.ballot_sync(ALL, has_message))
            cuda.syncwarp()
            word = np.uint32(v >> np.uint32(5))
            if lane == np.uint32(0):
                active = np.uint32(active + np.uint32(cuda.popc(bits)))
                applied = np.uint32(applied + np.uint32(cuda.popc(applied_bits)))
                if word < np.uint32(len(frontier)):
                    frontier[word] = bits
                    touched[word] = 0
                    if has_wake:
                        woken[word] = woken_bits
        finish(active, edges, applied, sums, row, edge_limit, aggregates, figures)

    return apply_messages

"""How a vertex program sends along rows on CUDA, and its push kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.kernels.library.compiler_cuda import types
from gpu_pregel.kernels.library.jit_cuda import Kernel, device, kernel
from gpu_pregel.kernels.programs.apply import make_is_receiver
from gpu_pregel.kernels.programs.array_types_cuda import ArrayTypes
from gpu_pregel.kernels.programs.combine_cuda import make_deliver
from gpu_pregel.kernels.programs.figures_cuda import is_beyond_the_end
from gpu_pregel.kernels.programs.functions import Functions, make_context, make_send_along
from gpu_pregel.kernels.traverse.fields import make_cast, make_get, make_weight
from gpu_pregel.kernels.traverse.rows_cuda import make_push_words
from gpu_pregel.kernels.traverse.walks_cuda import keep_nothing, make_push_rows, vertex_alone


def make_push(functions: Functions, arrays: ArrayTypes) -> Kernel:
    """Sparse side: every active source sends along its out-edges; ``make_push_words`` describes the arrays of edges."""
    send_rows, by_swapping = make_send_rows(functions, arrays)
    push_words = make_push_words(arrays.offset, send_rows)

    vertices, offsets = arrays.vertices, arrays.offsets

    @kernel(
        *(types.UniTuple(vertices, 3), types.UniTuple(offsets, 2), types.Tuple((vertices, offsets, offsets)), vertices),
        *(arrays.senders, vertices, types.int64, arrays.receivers, arrays.inbox.types[0], vertices, arrays.control),
        racy=("inbox",) if by_swapping else (),
    )
    def push(lists, rows, hubs, indices, senders, frontier, row, receivers, inbox, touched, control):
        if not is_beyond_the_end(control, row):
            push_words(frontier, lists, rows, hubs, indices, (senders, receivers, inbox, touched))

    return push


def make_send_rows(functions: Functions, arrays: ArrayTypes, collect: Any = keep_nothing) -> tuple[Any, bool]:
    """``send_rows(u, begin, length, indices, state, kept)``: send along the rows of a warp's lanes.

    ``state`` is what senders read, receivers, inboxes, ``touched`` and what ``collect`` needs. All lanes call
    ``collect(is_first, v, is_last, state, kept)``, which is told whether a message was v's first. Also returned:
    whether inboxes are written by swapping.
    """
    deliver, by_swapping = make_deliver(functions)
    is_receiver, message_of = make_is_receiver(device, functions), _make_message(functions, arrays)

    @device
    def visit(sender, v, e, state):
        senders, receivers, inbox, touched = state[0], state[1], state[2], state[3]
        if is_receiver(receivers, v, len(senders[1])):
            return deliver(inbox, touched, v, message_of(sender, v, e, senders))
        return False

    prepare = vertex_alone if functions.per_edge else _make_signal(functions)
    return make_push_rows(arrays.offset, visit, prepare=prepare, collect=collect), by_swapping


def _make_signal(functions: Functions) -> Any:
    """``signal_of(u, length, state)``: the message that u sends along all edges of its row, if it has any."""
    send, identity = functions.send, functions.identity
    get, cast = make_get(device, functions.value), make_cast(device, functions.message)
    context = make_context(device, functions.context)

    @device
    def signal_of(u, length, state):
        _, out_degrees, in_degrees, superstep, seen, values = state[0]
        signal = identity
        if length > np.uint32(0):
            ctx = context(u, superstep, len(out_degrees), out_degrees[u], in_degrees[u], seen)
            signal = cast(send(get(values, u), ctx))
        return signal

    return signal_of


def _make_message(functions: Functions, arrays: ArrayTypes) -> Any:
    """``message_of(sender, v, e, senders)``: the message along edge ``e`` from a vertex, or from one with a signal."""
    send_along = make_send_along(device, functions)
    get, cast = make_get(device, functions.value), make_cast(device, functions.message)
    context, weight_of = make_context(device, functions.context), make_weight(device, arrays.has_weights)

    @device
    def along_edge(u, v, e, senders):
        weights, out_degrees, in_degrees, superstep, seen, values = senders
        ctx = context(u, superstep, len(out_degrees), out_degrees[u], in_degrees[u], seen)
        return cast(send_along(get(values, u), weight_of(weights, e), v, ctx))

    @device
    def signal(sent, v, e, senders):
        return sent

    return along_edge if functions.per_edge else signal

"""Kernels of a vertex program over edges on CUDA: push, pull, and the slot of rows that were pulled in pieces.

A warp takes 32 rows, sums up their lengths, and its lanes go along all their edges side by side, so that neighbouring
lanes read neighbouring edges whatever the degrees (load balancing by search: Davidson et al., IPDPS 2014). Rows of
more than ``HUB_EDGES`` edges are cut into pieces, each with a warp of its own, so that all blocks share a hub.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numba import cuda, types

from gpu_pregel.kernels.library.bits_cuda import bit, get_bit
from gpu_pregel.kernels.library.jit_cuda import BLOCK, WARP, Kernel, device, kernel
from gpu_pregel.kernels.library.warps_cuda import ALL, lane_number, owner_of, shuffle, shuffle_up, sum_up_to
from gpu_pregel.kernels.programs.combine_cuda import make_deliver
from gpu_pregel.kernels.programs.fields import Functions, make_cast, make_context, make_get, make_put, make_weight
from gpu_pregel.kernels.programs.program_cuda import Shapes, is_beyond_the_end

HUB_EDGES = 1024
"""Rows of more edges are pushed and pulled in pieces of so many."""
WORDS_PER_WARP = 8
"""Words of the frontier that a warp looks at: 32 bytes, read at once."""
_WARPS = BLOCK // WARP


@device
def _warp_number() -> Any:
    return np.uint32(np.uint32(cuda.blockIdx.x) * np.uint32(_WARPS) + (np.uint32(cuda.threadIdx.x) >> np.uint32(5)))


def make_push(functions: Functions, shapes: Shapes) -> Kernel:
    """Sparse side: every active source sends along its out-edges.

    One warp handles ``WORDS_PER_WARP`` words of the frontier; the warps after those handle one piece of a hub each.
    ``numbers`` lists the words that have sources, with the sources and the row of the first one; it is empty for a
    whole graph, in which a vertex is its own row.
    """
    send, identity = functions.send, functions.identity
    get, cast = make_get(device, functions.value), make_cast(device, functions.message)
    context, weight_of = make_context(device, functions.names), make_weight(device, shapes.has_weights)
    deliver, by_swapping = make_deliver(functions)
    offset, per_edge = shapes.offset, functions.per_edge

    @device
    def signal_of(values: Any, u: Any, superstep: Any, n: Any, out_degrees: Any, in_degrees: Any, seen: Any) -> Any:
        ctx = context(np.int64(u), superstep, n, np.int64(out_degrees[u]), np.int64(in_degrees[u]), seen)
        return cast(send(get(values, u), ctx))

    @device
    def message_along(
        values: Any, u: Any, weight: Any, superstep: Any, n: Any, out_degrees: Any, in_degrees: Any, seen: Any
    ) -> Any:
        ctx = context(np.int64(u), superstep, n, np.int64(out_degrees[u]), np.int64(in_degrees[u]), seen)
        return cast(send(get(values, u), weight, ctx))

    @kernel(
        *(shapes.vertices, shapes.vertices, shapes.vertices),
        *(shapes.offsets, shapes.offsets, shapes.vertices, shapes.offsets, shapes.offsets, shapes.vertices),
        *(shapes.weights, shapes.offsets, shapes.offsets, types.int64, types.int64, shapes.aggregates, shapes.values),
        *(shapes.vertices, shapes.inbox.types[0], shapes.vertices, shapes.control),
        racy=("inbox",) if by_swapping else (),
    )
    def push(
        numbers: Any,
        sources: Any,
        firsts: Any,
        begins: Any,
        ends: Any,
        hub_rows: Any,
        hub_begins: Any,
        hub_ends: Any,
        indices: Any,
        weights: Any,
        out_degrees: Any,
        in_degrees: Any,
        superstep: Any,
        row: Any,
        seen: Any,
        values: Any,
        frontier: Any,
        inbox: Any,
        touched: Any,
        control: Any,
    ) -> None:
        if is_beyond_the_end(control, row):
            return
        n = np.int64(len(out_degrees))
        lane, warp = lane_number(), _warp_number()
        is_listed = len(numbers) > 0
        words = np.uint32(len(numbers)) if is_listed else np.uint32(len(frontier))
        first = np.uint32(warp * np.uint32(WORDS_PER_WARP))
        piece = np.uint32(0)
        u = np.uint32(0)
        word = np.uint32(0)
        if first < words:
            if lane < np.uint32(WORDS_PER_WARP) and first + lane < words:
                if is_listed:
                    word = frontier[numbers[first + lane]] & sources[first + lane]
                else:
                    word = frontier[first + lane]
            busy = cuda.ballot_sync(ALL, word != np.uint32(0))
        else:
            piece = np.uint32(warp - (words + np.uint32(WORDS_PER_WARP - 1)) // np.uint32(WORDS_PER_WARP))
            busy = 0
            if piece < np.uint32(len(hub_rows)):
                u = hub_rows[piece]
                busy = np.int32(get_bit(frontier, u))
        while busy != 0:
            begin = offset(0)
            length = np.uint32(0)
            if first < words:
                owner = np.uint32(cuda.ffs(busy) - 1)
                number = np.uint32(first + owner)
                if is_listed:
                    number = numbers[first + owner]
                u = np.uint32(number * np.uint32(WARP) + lane)
                if (shuffle(word, owner) >> lane) & np.uint32(1) != np.uint32(0):
                    place = u
                    if is_listed:
                        below = np.uint32(sources[first + owner] & np.uint32(bit(lane) - np.uint32(1)))
                        place = np.uint32(firsts[first + owner] + np.uint32(cuda.popc(below)))
                    begin = offset(begins[place])
                    end = offset(ends[place])
                    if end - begin <= offset(HUB_EDGES):
                        length = np.uint32(end - begin)
            elif lane == np.uint32(0):
                begin = offset(hub_begins[piece])
                length = np.uint32(offset(hub_ends[piece]) - begin)
            busy &= busy - 1
            upto = sum_up_to(length)
            total = shuffle(upto, 31)
            before = offset(begin - offset(upto - length))
            signal = identity
            if not per_edge and length > np.uint32(0):
                signal = signal_of(values, u, superstep, n, out_degrees, in_degrees, seen)
            position = lane
            while position - lane < total:
                owner = owner_of(position, upto)
                e = offset(shuffle(before, owner) + offset(position))
                source = u
                message = signal
                if per_edge:
                    source = shuffle(u, owner)
                else:
                    message = shuffle(signal, owner)
                if position < total:
                    v = indices[e]
                    if per_edge:
                        weight = weight_of(weights, e)
                        message = message_along(values, source, weight, superstep, n, out_degrees, in_degrees, seen)
                    deliver(inbox, touched, v, message)
                position = np.uint32(position + np.uint32(WARP))

    return push


@functools.lru_cache(maxsize=1)
def _make_combining(functions: Functions) -> tuple[Any, Any]:
    """``combined(a, b)``, cast; and ``up_to(message, first)``: of the lanes from ``first`` up to this one."""
    combine, cast = functions.combine, make_cast(device, functions.message)

    @device
    def combined(a: Any, b: Any) -> Any:
        return cast(combine(a, b))

    @device
    def up_to(message: Any, first: Any) -> Any:
        lane = lane_number()
        distance = np.uint32(1)
        while distance < np.uint32(WARP):
            below = shuffle_up(message, distance)
            if lane >= first + distance:
                message = combined(below, message)
            distance = np.uint32(distance << np.uint32(1))
        return message

    return combined, up_to


def make_pull(functions: Functions, shapes: Shapes) -> Kernel:
    """Dense side: every row combines the messages of its active in-neighbours.

    A warp for every 32 rows and, behind them, one for every piece of a hub, which goes to ``pieces``. Rows may be
    given by number; ``accumulate`` combines with what the inbox holds. Where the message is the same for all edges of
    a source, ``signals`` has it; otherwise it is computed from ``values``.
    """
    send, identity, per_edge = functions.send, functions.identity, functions.per_edge
    get_value, cast = make_get(device, functions.value), make_cast(device, functions.message)
    get, put = make_get(device, functions.message), make_put(device, functions.message)
    context, weight_of = make_context(device, functions.names), make_weight(device, shapes.has_weights)
    combined, up_to = _make_combining(functions)
    offset, can_exit = shapes.offset, functions.absorbing is not None
    absorbing = functions.absorbing if can_exit else identity

    @device
    def message_of_source(signals: Any, u: Any) -> Any:
        return get(signals, u)

    @device
    def message_of_edge(state: Any, u: Any, e: Any) -> Any:
        weights, out_degrees, in_degrees, superstep, seen, values, frontier, all_active = state
        message = identity
        if all_active or get_bit(frontier, u):
            n = np.int64(len(out_degrees))
            ctx = context(np.int64(u), superstep, n, np.int64(out_degrees[u]), np.int64(in_degrees[u]), seen)
            message = cast(send(get_value(values, u), weight_of(weights, e), ctx))
        return message

    @device
    def pull_rows(
        rows: Any,
        begins: Any,
        ends: Any,
        hub_begins: Any,
        hub_ends: Any,
        indices: Any,
        state: Any,
        accumulate: Any,
        inbox: Any,
        pieces: Any,
    ) -> None:
        lane, warp = lane_number(), _warp_number()
        count = np.uint32(len(begins))
        row_warps = np.uint32((count + np.uint32(WARP - 1)) // np.uint32(WARP))
        row = np.uint32(warp * np.uint32(WARP) + lane)
        piece = np.uint32(warp - row_warps)
        is_row = warp < row_warps and row < count
        begin = offset(0)
        length = np.uint32(0)
        if is_row:
            begin = offset(begins[row])
            end = offset(ends[row])
            if end - begin <= offset(HUB_EDGES):
                length = np.uint32(end - begin)
        elif warp >= row_warps and lane == np.uint32(0) and piece < np.uint32(len(hub_begins)):
            begin = offset(hub_begins[piece])
            length = np.uint32(offset(hub_ends[piece]) - begin)
        upto = sum_up_to(length)
        total = shuffle(upto, 31)
        start = np.uint32(upto - length)
        message = identity
        base = np.uint32(0)
        while base < total:
            position = np.uint32(base + lane)
            owner = owner_of(position, upto)
            e = offset(shuffle(offset(begin - offset(start)), owner) + offset(position))
            first = shuffle(start, owner)
            first = np.uint32(first - base) if first > base else np.uint32(0)
            part = identity
            wanted = position < total
            if can_exit:
                # A row that nothing can change any more is not read on.
                finished = np.uint32(cuda.ballot_sync(ALL, message == absorbing or upto <= base))
                wanted = wanted and (finished >> owner) & np.uint32(1) == np.uint32(0)
                if finished == ALL:
                    total = base
            if wanted:
                u = indices[e]
                if per_edge:
                    part = message_of_edge(state, u, e)
                else:
                    part = message_of_source(state, u)
            part = up_to(part, first)
            # The last lane of this row's edges has all of them; this lane's row takes it from there.
            last = np.uint32(min(upto, np.uint32(base + np.uint32(WARP))) - base - np.uint32(1))
            taken = shuffle(part, last)
            if length > np.uint32(0) and start < base + np.uint32(WARP) and upto > base:
                message = combined(message, taken)
            base = np.uint32(base + np.uint32(WARP))
        if is_row:
            if len(rows):
                row = rows[row]
            if accumulate:
                message = combined(cast(get(inbox, row)), message)
            put(inbox, row, message)
        elif warp >= row_warps and lane == np.uint32(0) and piece < np.uint32(len(hub_begins)):
            put(pieces, piece, message)

    edges = (shapes.vertices, shapes.offsets, shapes.offsets, shapes.offsets, shapes.offsets, shapes.vertices)
    if not per_edge:

        @kernel(*edges, shapes.messages, types.boolean, shapes.inbox, shapes.inbox)
        def pull(
            rows: Any,
            begins: Any,
            ends: Any,
            hub_begins: Any,
            hub_ends: Any,
            indices: Any,
            signals: Any,
            accumulate: Any,
            inbox: Any,
            pieces: Any,
        ) -> None:
            pull_rows(rows, begins, ends, hub_begins, hub_ends, indices, signals, accumulate, inbox, pieces)

        return pull

    @kernel(
        *(*edges, shapes.weights, shapes.offsets, shapes.offsets, types.int64, shapes.aggregates, shapes.values),
        *(shapes.vertices, types.boolean, types.boolean, shapes.inbox, shapes.inbox),
    )
    def pull_along(
        rows: Any,
        begins: Any,
        ends: Any,
        hub_begins: Any,
        hub_ends: Any,
        indices: Any,
        weights: Any,
        out_degrees: Any,
        in_degrees: Any,
        superstep: Any,
        seen: Any,
        values: Any,
        frontier: Any,
        all_active: Any,
        accumulate: Any,
        inbox: Any,
        pieces: Any,
    ) -> None:
        state = (weights, out_degrees, in_degrees, superstep, seen, values, frontier, all_active)
        pull_rows(rows, begins, ends, hub_begins, hub_ends, indices, state, accumulate, inbox, pieces)

    return pull_along


def make_slot(functions: Functions, shapes: Shapes) -> Kernel:
    """Dense side: a warp for each hub combines its pieces, ``firsts[i]`` to ``firsts[i + 1]``, into its inbox."""
    identity, cast = functions.identity, make_cast(device, functions.message)
    get, put = make_get(device, functions.message), make_put(device, functions.message)
    combined, up_to = _make_combining(functions)

    @kernel(shapes.vertices, shapes.vertices, shapes.inbox, shapes.inbox, items=_WARPS)
    def dense_slot(hubs: Any, firsts: Any, pieces: Any, inbox: Any) -> None:
        lane, i = lane_number(), _warp_number()
        message = identity
        if i < np.uint32(len(hubs)):
            piece = np.uint32(firsts[i] + lane)
            while piece < firsts[i + np.uint32(1)]:
                message = combined(message, cast(get(pieces, piece)))
                piece = np.uint32(piece + np.uint32(WARP))
        message = up_to(message, np.uint32(0))
        if i < np.uint32(len(hubs)) and lane == np.uint32(WARP - 1):
            put(inbox, hubs[i], combined(cast(get(inbox, hubs[i])), message))

    return dense_slot

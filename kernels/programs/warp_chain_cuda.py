"""Supersteps with so few active edges that each lane of one warp sends along one of them.

Everything stays in registers: the active vertices, their edges and values, and the messages, so that neither inboxes
nor queues are accessed. Each superstep waits for memory twice: for the ends of the edges, and for the values and rows
of those vertices, which are loaded together although only those that become active need their rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.kernels.library.bits_cuda import bits_of_float, rank_in
from gpu_pregel.kernels.library.compiler_cuda import cuda
from gpu_pregel.kernels.library.jit_cuda import WARP, device
from gpu_pregel.kernels.library.warps_cuda import ALL, lane_number, owner_of, shuffle, sum_of_warp, sum_up_to
from gpu_pregel.kernels.programs.apply import make_change
from gpu_pregel.kernels.programs.array_types_cuda import ArrayTypes
from gpu_pregel.kernels.programs.combine_cuda import make_combine
from gpu_pregel.kernels.programs.figures_cuda import FIGURES, ROW
from gpu_pregel.kernels.programs.functions import Functions, make_context, make_send_along
from gpu_pregel.kernels.traverse.fields import make_cast, make_get, make_put, make_weight
from gpu_pregel.kernels.traverse.rows_cuda import HUB_EDGES, make_ranges

_NO_VERTEX = np.uint32(0xFFFFFFFF)


@device
def _first_alike(key, lanes):
    """Return the first of some ``lanes``, among which is this one, with the same key as this lane."""
    first = np.uint32(lane_number())
    while lanes != np.uint32(0):
        k = np.uint32(cuda.ffs(lanes) - 1)
        lanes = np.uint32(lanes & np.uint32(lanes - np.uint32(1)))
        if shuffle(key, k) == key:
            first = np.uint32(min(first, k))
    return first


@device
def _has_several(lanes):
    return cuda.popc(lanes) > 1


def _make_spread(offset: Any) -> Any:
    """``spread(begin, length)``: the lane whose row has this lane's edge, the position of that edge, and all edges.

    Each lane passes a row; the edges of all rows are numbered, and a lane's edge is the one with its number.
    """

    @device
    def spread(begin, length):
        lane = np.uint32(lane_number())
        busy = np.uint32(cuda.ballot_sync(ALL, length != np.uint32(0)))
        if not _has_several(busy):
            owner = np.uint32(np.uint32(cuda.ffs(busy) - 1) & np.uint32(WARP - 1))
            return owner, offset(shuffle(begin, owner) + offset(lane)), shuffle(length, owner)
        upto = sum_up_to(length)
        owner = owner_of(lane, upto)
        before = offset(begin - offset(upto - length))
        return owner, offset(shuffle(before, owner) + offset(lane)), shuffle(upto, 31)

    return spread


def _make_message(functions: Functions, arrays: ArrayTypes) -> Any:
    """``message_of(source, v, owner, total, e, weights, state)``: the message along this lane's edge, if it has one.

    ``source`` has the vertex, value and number of edges whose row this lane passed; ``v`` is the end of the edge.
    """
    send, send_along, identity = functions.send, make_send_along(device, functions), functions.identity
    cast, context = make_cast(device, functions.message), make_context(device, functions.context)
    weight_of = make_weight(device, arrays.has_weights)

    @device
    def signal_along(source, v, owner, total, e, weights, state):
        u, value, length = source
        out_degrees, in_degrees, superstep, parameters = state
        signal = identity
        if length > np.uint32(0):
            ctx = context(u, superstep, len(out_degrees), out_degrees[u], in_degrees[u], parameters)
            signal = cast(send(value, ctx))
        return shuffle(signal, owner)

    @device
    def message_along(source, v, owner, total, e, weights, state):
        u, value, _ = source
        out_degrees, in_degrees, superstep, parameters = state
        u, value, message = shuffle(u, owner), shuffle(value, owner), identity
        if lane_number() < total:
            ctx = context(u, superstep, len(out_degrees), out_degrees[u], in_degrees[u], parameters)
            message = cast(send_along(value, weight_of(weights, e), v, ctx))
        return message

    return message_along if functions.per_edge else signal_along


def _make_accepts(functions: Functions) -> Any:
    receives: Any = functions.receives

    @device
    def by_value(value, ctx):
        return receives(value, ctx) != 0

    @device
    def always(value, ctx):
        return True

    return always if receives is None else by_value


def make_warp_chain(functions: Functions, arrays: ArrayTypes) -> Any:
    """``warp_chain(rows, vertices, superstep, row, limit, active, most, queue, control)``, which one warp calls.

    Run at least one superstep, from ``row`` on and before ``limit``, and others while at most ``most`` edges are
    active; at most 32 are at first. Return the next row, the active vertices, which ``queue`` has, their edges and
    whether a hub is among them.
    """
    identity, offset = functions.identity, arrays.offset
    get, put = make_get(device, functions.value), make_put(device, functions.value)
    row_range, _ = make_ranges(offset)
    spread, message_of, accepts = _make_spread(offset), _make_message(functions, arrays), _make_accepts(functions)
    combine, context = make_combine(functions), make_context(device, functions.context)
    change = make_change(device, functions, bits_of_float)

    @device
    def combine_alike(has_message, v, message):
        """Combine the messages to each vertex on the first lane with one; return whether this is such a lane."""
        combined = combine(identity, message)
        lanes = np.uint32(cuda.ballot_sync(ALL, has_message))
        if _has_several(lanes):
            lane = np.uint32(lane_number())
            first = _first_alike(v if has_message else _NO_VERTEX, lanes)
            others = np.uint32(cuda.ballot_sync(ALL, has_message and first != lane))
            while others != np.uint32(0):
                k = np.uint32(cuda.ffs(others) - 1)
                others = np.uint32(others & np.uint32(others - np.uint32(1)))
                target, one = shuffle(first, k), shuffle(message, k)
                if target == lane:
                    combined = combine(combined, one)
            has_message = has_message and first == lane
        return has_message, combined

    @device
    def receiver(indices, e, total):
        """Return the end of this lane's edge, if it has one."""
        v = np.uint32(0)
        if np.uint32(lane_number()) < total:
            v = indices[e]
        return v

    @device
    def warp_chain(rows, vertices, superstep, row, limit, active, most, queue, control):
        begins, ends, indices, weights = rows
        out_degrees, in_degrees, parameters, values = vertices
        lane = np.uint32(lane_number())
        u, begin, length = np.uint32(0), offset(0), np.uint32(0)
        if lane < np.uint32(active):
            u = queue[lane]
            begin, length = row_range(begins, ends, u)
        value = get(values, u)
        owner, e, total = spread(begin, length)
        v = receiver(indices, e, total)
        place = np.uint32(np.uint32(ROW + row * FIGURES) + lane)
        while True:
            state = (out_degrees, in_degrees, superstep + row - 1, parameters)
            message = message_of((u, value, length), v, owner, total, e, weights, state)
            has_message = lane < total
            begin, end = offset(0), offset(0)
            # What the lanes have written in the superstep before is visible to all of them.
            cuda.syncwarp()
            if has_message:
                value, begin, end = get(values, v), offset(begins[v]), offset(ends[v])
                ctx = context(v, superstep + row, len(out_degrees), out_degrees[v], in_degrees[v], parameters)
                has_message = accepts(value, ctx)
            cuda.syncwarp()
            has_message, message = combine_alike(has_message, v, message)
            is_active, u, degree = False, v, offset(0)
            if has_message:
                ctx = context(v, superstep + row, len(out_degrees), out_degrees[v], in_degrees[v], parameters)
                is_active, value = change(value, message, ctx)
                put(values, v, value)
            if is_active:
                degree = offset(end - begin)
            among = np.uint32(cuda.ballot_sync(ALL, is_active))
            applied = np.uint32(cuda.ballot_sync(ALL, has_message))
            has_hub = np.uint32(cuda.ballot_sync(ALL, degree > offset(HUB_EDGES))) != np.uint32(0)
            length = np.uint32(degree)
            owner, e, total = spread(begin, length)
            # Loaded before the figures are written, and in vain if this was the last superstep.
            v = receiver(indices, e, total)
            active, edges = np.int64(cuda.popc(among)), np.int64(total)
            if lane < np.uint32(FIGURES):
                applications = np.int64(cuda.popc(applied))
                control[place] = active if lane == np.uint32(0) else edges if lane == np.uint32(1) else applications
            place = np.uint32(place + np.uint32(FIGURES))
            row += 1
            # One condition: each branch costs as much as several additions.
            if (active == 0) | has_hub | (edges > most) | (row == limit):
                break
        if has_hub:
            edges = shuffle(sum_of_warp(np.int64(degree)), 0)
            if lane == np.uint32(0):
                control[np.uint32(ROW + row * FIGURES - (FIGURES - 1))] = edges
        if is_active:
            queue[rank_in(among, lane)] = u
        return row, active, edges, has_hub

    return warp_chain

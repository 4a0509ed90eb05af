"""Supersteps with few active vertices on CUDA: many of them in one launch, without the host.

The active vertices are in a queue, and those that received a message in another one, so that the cost of a superstep
does not depend on the size of the graph. The blocks of a cooperative launch meet at a barrier after sending and after
applying, as in Xiao and Feng (IPDPS 2010) and in the BFS of Merrill, Garland and Grimshaw (PPoPP 2012). While very few
edges are active, the first block continues alone, with barriers of its own, and the others wait for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.kernels.library.atomics_cuda import fetch_and_add, fetch_and_or, store_relaxed
from gpu_pregel.kernels.library.bits_cuda import bit, bits_of_float, rank_in
from gpu_pregel.kernels.library.compiler_cuda import cuda, types
from gpu_pregel.kernels.library.grid_barrier_cuda import grid_barrier
from gpu_pregel.kernels.library.jit_cuda import BLOCK, OFFSETS, WARP, WARPS, Kernel, device, kernel
from gpu_pregel.kernels.library.warps_cuda import ALL, lane_number, shuffle, sum_of_warp, sum_up_to
from gpu_pregel.kernels.programs.apply import make_take_message, make_update
from gpu_pregel.kernels.programs.array_types_cuda import ArrayTypes
from gpu_pregel.kernels.programs.figures_cuda import FIGURES, ROW, ROWS, make_finish
from gpu_pregel.kernels.programs.functions import Functions, make_context
from gpu_pregel.kernels.programs.push_cuda import make_send_rows
from gpu_pregel.kernels.programs.warp_chain_cuda import make_warp_chain
from gpu_pregel.kernels.traverse.rows_cuda import HUB_EDGES, make_ranges, warp_number

ARRIVALS, LISTED, HUB_STEP, DONE_ROWS, SETS, STATE_LENGTH = 0, 16, 17, 18, 32, 64
"""Positions in ``state``, int64: the barrier's word; vertices listed; the superstep in which a hub will send; rows
written; and two sets of figures."""
ACTIVE, EDGES, APPLIED, HUBS, RECEIVED, SET, TWO_SETS = 0, 1, 2, 3, 4, 8, 16
"""Positions in a set: the figures of a row, active hubs and vertices with a message. Supersteps use two sets in turn:
each clears that of the next one, which all threads have read."""

_PAUSE = 200
"""Nanoseconds between the looks of blocks that wait for the first one: less than it takes for a superstep."""


@device
def _add(counters, place, number):
    """Add to a figure; return what it was. ``counters`` is (whether one block is alone, its own sets, ``state``)."""
    alone, own, state = counters
    if alone:
        return fetch_and_add(own, place, number)
    return fetch_and_add(state, np.uint32(np.uint32(SETS) + place), number)


@device
def _figure(counters, place):
    """Return a figure, after a barrier."""
    alone, own, state = counters
    return own[place] if alone else state[np.uint32(np.uint32(SETS) + place)]


@device
def _append(is_new, v, queue, counters, place):
    """Append the vertices of those lanes for which ``is_new`` holds to a queue. All lanes of a warp call it."""
    among = np.uint32(cuda.ballot_sync(ALL, is_new))
    if among != np.uint32(0):
        lane, first = lane_number(), np.uint32(0)
        if lane == np.uint32(0):
            first = np.uint32(_add(counters, place, np.uint64(cuda.popc(among))))
        first = np.uint32(shuffle(first, 0) + rank_in(among, lane))
        if is_new:
            queue[first] = v


@device
def _collect(is_first, v, is_last, state, kept):
    """Append a vertex that received its first message."""
    received, counters, place = state[4]
    _append(is_first, v, received, counters, place)
    return kept


@kernel(types.uint32[::1], OFFSETS, types.int64, types.uint32[::1], types.int64[::1])
def list_frontier(frontier, degrees, superstep, queue, state):
    """List the vertices of a bitmap, in any order, and note if there is a hub among them, which sends next."""
    i, lane = np.uint32(cuda.grid(1)), lane_number()
    word = np.uint32(0)
    if i < np.uint32(len(frontier)):
        word = frontier[i]
    count = np.uint32(cuda.popc(word))
    upto = sum_up_to(count)
    total = shuffle(upto, 31)
    if total != np.uint32(0):
        first = np.uint32(0)
        if lane == np.uint32(0):
            first = np.uint32(fetch_and_add(state, LISTED, total))
        place = np.uint32(shuffle(first, 0) + np.uint32(upto - count))
        while word != np.uint32(0):
            v = np.uint32(np.uint32(i << np.uint32(5)) + np.uint32(cuda.ffs(word) - 1))
            word = np.uint32(word & np.uint32(word - np.uint32(1)))
            if place < np.uint32(len(queue)):
                queue[place] = v
            if degrees[v] > HUB_EDGES:
                store_relaxed(state, HUB_STEP, superstep)
            place = np.uint32(place + np.uint32(1))


def make_chain(functions: Functions, arrays: ArrayTypes) -> Kernel:
    """Run up to ``limit`` supersteps in which the vertices of ``queue`` send and their receivers apply.

    ``limits`` are the first superstep, ``limit``, active vertices and edges, ``edge_limit``, and the most active edges
    with which the first block is alone. The kernel returns before a superstep in which no vertex sends, more than
    ``edge_limit`` edges are active or a hub sends, and leaves the active vertices in both ``queue`` and ``frontier``.
    """
    send, by_swapping = _make_send(functions, arrays)
    receive, warp_chain = _make_receive(functions), make_warp_chain(functions, arrays)

    limits = types.UniTuple(types.int64, 6)

    @kernel(
        *(types.Tuple((arrays.offsets, arrays.offsets, arrays.vertices, arrays.weights)), limits),
        *(types.Tuple((arrays.offsets, arrays.offsets, arrays.aggregates, arrays.values)), arrays.inbox),
        *(arrays.vertices, arrays.vertices, arrays.vertices, arrays.vertices, arrays.control, arrays.control),
        racy=("inbox",) if by_swapping else (),
        cooperative=True,
    )
    def chain(rows, limits, vertices, inbox, touched, frontier, queue, received, state, control):
        superstep, limit, active, edges, edge_limit, alone_limit = limits
        own, last = cuda.shared.array(TWO_SETS, types.int64), cuda.shared.array(4, types.int64)
        thread, is_first_block = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockIdx.x) == np.uint32(0)
        is_first = thread == np.uint32(0) and is_first_block
        row, own_rows, all_rows = np.int64(0), np.uint32(0), np.uint32(0)
        stops = state[np.uint32(HUB_STEP)] == superstep
        if is_first:
            control[np.uint32(ROWS)] = 0
            state[np.uint32(LISTED)] = 0
        if thread < np.uint32(TWO_SETS):
            own[thread] = 0
            if is_first_block:
                state[np.uint32(SETS) + thread] = 0
        if not stops:
            _clear_bits(frontier, queue, np.uint32(active))
            grid_barrier(state, ARRIVALS)
        while not stops:
            alone = cuda.gridDim.x == 1 or edges <= alone_limit
            if alone and not is_first_block:
                # The first block arrives at the barrier after one or more supersteps alone.
                grid_barrier(state, ARRIVALS, _PAUSE)
                row = state[np.uint32(DONE_ROWS)]
                at = np.uint32(ROW + (row - 1) * FIGURES)
                active, edges = control[at], control[np.uint32(at + np.uint32(EDGES))]
                stops = state[np.uint32(HUB_STEP)] == superstep + row
            elif alone and max(active, edges) <= WARP:
                if thread < np.uint32(WARP):
                    most = min(edge_limit, WARP)
                    row, active, edges, stops = warp_chain(
                        rows, vertices, superstep, row, limit, active, most, queue, control
                    )
                    if is_first:
                        last[0], last[1], last[2], last[3] = row, active, edges, stops
                        control[np.uint32(ROWS)] = state[np.uint32(DONE_ROWS)] = row
                        if stops:
                            state[np.uint32(HUB_STEP)] = superstep + row
                cuda.syncthreads()
                row, active, edges, stops = last[0], last[1], last[2], last[3] != 0
            else:
                counters = (alone, own, state)
                place = np.uint32(np.uint32((own_rows if alone else all_rows) & np.uint32(1)) * np.uint32(SET))
                sink = (received, counters, np.uint32(place + np.uint32(RECEIVED)))
                send(rows, vertices, superstep + row, np.uint32(active), inbox[0], touched, queue, sink)
                _wait(alone, state)
                receive(vertices, superstep + row, inbox, touched, received, queue, counters, place)
                _wait(alone, state)
                row += 1
                if alone:
                    own_rows = np.uint32(own_rows + np.uint32(1))
                else:
                    all_rows = np.uint32(all_rows + np.uint32(1))
                active, edges = _figure(counters, place), _figure(counters, np.uint32(place + np.uint32(EDGES)))
                stops = _figure(counters, np.uint32(place + np.uint32(HUBS))) != 0
                if is_first:
                    at = np.uint32(ROW + (row - 1) * FIGURES)
                    control[at], control[np.uint32(at + np.uint32(EDGES))] = active, edges
                    control[np.uint32(at + np.uint32(APPLIED))] = _figure(
                        counters, np.uint32(place + np.uint32(APPLIED))
                    )
                    control[np.uint32(ROWS)] = state[np.uint32(DONE_ROWS)] = row
                    if stops:
                        state[np.uint32(HUB_STEP)] = superstep + row
            stops = stops or active == 0 or edges > edge_limit or row == limit
            if alone and is_first_block and cuda.gridDim.x > 1 and (stops or edges > alone_limit):
                grid_barrier(state, ARRIVALS)
        if row > 0:
            _set_bits(frontier, queue, np.uint32(active))

    return chain


@device
def _wait(alone, state):
    """Wait for the threads that work on this superstep: the block or the grid."""
    if alone:
        cuda.syncthreads()
    else:
        grid_barrier(state, ARRIVALS)


@device
def _clear_bits(frontier, queue, active):
    i = np.uint32(cuda.grid(1))
    while i < active:
        store_relaxed(frontier, queue[i] >> np.uint32(5), np.uint32(0))
        i = np.uint32(i + np.uint32(cuda.gridsize(1)))


@device
def _set_bits(frontier, queue, active):
    i = np.uint32(cuda.grid(1))
    while i < active:
        v = queue[i]
        fetch_and_or(frontier, v >> np.uint32(5), bit(v))
        i = np.uint32(i + np.uint32(cuda.gridsize(1)))


def _make_send(functions: Functions, arrays: ArrayTypes) -> tuple[Any, bool]:
    """``send(rows, vertices, superstep, active, inbox, touched, queue, sink)``: the vertices of the queue send.

    A warp takes so few rows that all warps have some, as the edges of its rows are sent one after the other.
    """
    send_rows, by_swapping = make_send_rows(functions, arrays, _collect)
    row_range, _ = make_ranges(arrays.offset)
    offset, has_receivers = arrays.offset, functions.receives is not None

    @device
    def receivers_of(vertices, superstep):
        out_degrees, in_degrees, parameters, values = vertices
        return (np.uint32(0), superstep, out_degrees, in_degrees, parameters, values)

    @device
    def no_receivers(vertices, superstep):
        return ()

    choose = receivers_of if has_receivers else no_receivers

    @device
    def send(rows, vertices, superstep, active, inbox, touched, queue, sink):
        begins, ends, indices, weights = rows
        out_degrees, in_degrees, parameters, values = vertices
        senders = (weights, out_degrees, in_degrees, superstep - 1, parameters, values)
        state = (senders, choose(vertices, superstep), inbox, touched, sink)
        lane, warp, warps = lane_number(), warp_number(), np.uint32(WARPS)
        if not sink[1][0]:
            warps = np.uint32(warps * np.uint32(cuda.gridDim.x))
        share = min(np.uint32(WARP), np.uint32((active + warps - np.uint32(1)) // warps))
        first = np.uint32(warp * share)
        while first < active:
            i = np.uint32(first + lane)
            u, begin, length = np.uint32(0), offset(0), np.uint32(0)
            if lane < share and i < active:
                u = queue[i]
                begin, length = row_range(begins, ends, u)
            send_rows(u, begin, length, indices, state, np.uint32(0))
            first = np.uint32(first + np.uint32(warps * share))

    return send, by_swapping


@device
def _clear_next(counters, place):
    alone, own, state = counters
    if alone:
        own[place] = 0
    else:
        state[np.uint32(np.uint32(SETS) + place)] = 0


def _make_receive(functions: Functions) -> Any:
    """``receive(vertices, superstep, inbox, touched, received, queue, counters, place)``: the receivers apply.

    ``send`` has dropped messages to vertices that do not receive. Those that become active are the new queue; the
    figures are added to the set at ``place``.
    """
    start, fold, _ = make_finish(functions.aggregators)
    take_message = make_take_message(device, functions)
    update = make_update(device, functions, fold, bits_of_float)
    context = make_context(device, functions.context)

    @device
    def receive(vertices, superstep, inbox, touched, received, queue, counters, place):
        out_degrees, in_degrees, parameters, values = vertices
        lane, thread, threads = lane_number(), np.uint32(cuda.grid(1)), np.uint32(BLOCK)
        if not counters[0]:
            threads = np.uint32(cuda.gridsize(1))
        if thread < np.uint32(SET):
            _clear_next(counters, np.uint32(np.uint32(np.uint32(SET) - place) + thread))
        count = np.uint32(_figure(counters, np.uint32(place + np.uint32(RECEIVED))))
        sums, edges, applied = start(), np.int64(0), np.uint32(0)
        while thread - lane < count:
            v, has_message, is_active = np.uint32(0), thread < count, False
            if has_message:
                v = received[thread]
                store_relaxed(touched, v >> np.uint32(5), np.uint32(0))
                message = take_message(inbox, v)
                ctx = context(v, superstep, len(out_degrees), out_degrees[v], in_degrees[v], parameters)
                is_active, _, sums = update(values, v, message, ctx, sums)
                if is_active:
                    edges += ctx.out_degree
                    if ctx.out_degree > HUB_EDGES:
                        _add(counters, np.uint32(place + np.uint32(HUBS)), np.uint64(1))
            _append(is_active, v, queue, counters, place)
            applied = np.uint32(applied + np.uint32(cuda.popc(np.uint32(cuda.ballot_sync(ALL, has_message)))))
            thread = np.uint32(thread + threads)
        if applied != np.uint32(0):
            edges = sum_of_warp(edges)
            if lane == np.uint32(0):
                _add(counters, np.uint32(place + np.uint32(EDGES)), np.uint64(edges))
                _add(counters, np.uint32(place + np.uint32(APPLIED)), np.uint64(applied))

    return receive

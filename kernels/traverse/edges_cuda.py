"""The kernels of ``process_edges`` on CUDA.

A push reads the rows of a queue's vertices, a pull those of all receivers, each of which ends where its vertex does not
receive any more. Each piece of a hub has a warp of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_pregel.kernels.library.atomics_cuda import fetch_and_or
from gpu_pregel.kernels.library.bits_cuda import bit, get_bit
from gpu_pregel.kernels.library.compiler_cuda import cuda, from_dtype, types
from gpu_pregel.kernels.library.jit_cuda import WARP, WARPS, Kernel, device, kernel
from gpu_pregel.kernels.library.warps_cuda import ALL, lane_number, shuffle
from gpu_pregel.kernels.traverse.fields import make_weight
from gpu_pregel.kernels.traverse.frontier_cuda import (
    BUFFER,
    RowOutput,
    add_edges,
    add_figures,
    append,
    gather,
    pieces_of,
)
from gpu_pregel.kernels.traverse.rows_cuda import HUB_EDGES, lanes_of, piece_of_warp, warp_number
from gpu_pregel.kernels.traverse.walks_cuda import Pull, make_pull_rows, make_push_rows

_VERTICES = types.uint32[::1]


@dataclass(frozen=True)
class EdgeFunctions:
    """What the kernels over edges are made from.

    Attributes
    ----------
    body, receives : device function
        ``receives`` is None if every vertex receives.
    arrays : Numba type
        Of the tuple of arrays and numbers passed to both.
    weight : dtype or None
        Of the weights; None if the graph has none.
    output : RowOutput
    """

    body: Any
    receives: Any
    arrays: Any
    weight: np.dtype[Any] | None
    output: RowOutput

    @property
    def rows(self) -> tuple[Any, Any, Any]:
        """The types of ``indptr``, ``indices`` and ``weights``."""
        return row_types(self.output.offset, self.weight)

    @property
    def makes_frontier(self) -> bool:
        """Whether the results of the body are the next frontier."""
        return self.output.returns == "frontier"


def row_types(offset: np.dtype[Any], weight: np.dtype[Any] | None) -> tuple[Any, Any, Any]:
    """Return the types of ``indptr``, ``indices`` and ``weights``; without weights an array is not read."""
    return (from_dtype(offset)[::1], _VERTICES, from_dtype(np.dtype(np.float32) if weight is None else weight)[::1])


def position_type(offset: np.dtype[Any]) -> Any:
    """Return the unsigned type of an edge position."""
    return types.uint32 if offset.itemsize == 4 else types.uint64


def _make_calls(functions: EdgeFunctions) -> tuple[Any, Any, Any]:
    """``receives(v, arrays)``; ``call(u, v, weights, e, arrays)``, what the body returns; and what no edge gives."""
    body, chosen, output = functions.body, functions.receives, functions.output
    weight_of = make_weight(device, functions.weight is not None)
    number = types.boolean if functions.makes_frontier else output.number
    nothing = False if functions.makes_frontier else (output.total or np.dtype(np.int64)).type(0)

    def some(v, arrays):
        return chosen(np.int64(v), *arrays) != 0

    def every(v, arrays):
        return True

    def call(u, v, weights, e, arrays):
        return number(body(np.int64(u), np.int64(v), weight_of(weights, e), *arrays))

    def call_silently(u, v, weights, e, arrays):
        body(np.int64(u), np.int64(v), weight_of(weights, e), *arrays)
        return number(0)

    is_silent = output.returns is None
    return device(every if chosen is None else some), device(call_silently if is_silent else call), nothing


@device
def _hub_of(firsts, count, piece):
    """Return the last of ``count`` hubs whose first piece is at most ``piece``."""
    low, high = np.uint32(0), count
    while np.uint32(low + np.uint32(1)) < high:
        middle = np.uint32(np.uint32(low + high) >> np.uint32(1))
        if firsts[middle] <= piece:
            low = middle
        else:
            high = middle
    return low


def make_sender(offset: np.dtype[Any]) -> Any:
    """``sender(queue, count, hubs, firsts, hub_count, pieces, indptr)``: the row of each lane.

    Returned are the vertex, its first edge, the number of edges, 0 without a row, and whether the lane has a row, which
    is no hub. The warps after those of the ``count`` rows have one piece of a hub each. An empty queue stands for all
    vertices.
    """
    position = position_type(offset)

    @device
    def sender(queue, count, hubs, firsts, hub_count, pieces, indptr):
        lane, (follows_rows, piece) = lane_number(), piece_of_warp(count)
        u, begin, length, is_row = np.uint32(0), position(0), np.uint32(0), False
        if not follows_rows:
            u = np.uint32(warp_number() * np.uint32(WARP) + lane)
            if u < count:
                if len(queue) > 0:
                    u = queue[u]
                begin = position(indptr[u])
                degree = position(position(indptr[np.uint32(u + np.uint32(1))]) - begin)
                if degree <= position(HUB_EDGES):
                    length, is_row = np.uint32(degree), True
        elif piece < pieces:
            hub = _hub_of(firsts, hub_count, piece)
            u = hubs[hub]
            if lane == np.uint32(0):
                begin = position(indptr[u]) + position(np.uint32(piece - firsts[hub])) * position(HUB_EDGES)
                left = position(position(indptr[np.uint32(u + np.uint32(1))]) - begin)
                length = np.uint32(min(left, position(HUB_EDGES)))
        return u, begin, length, is_row

    return sender


def make_push(functions: EdgeFunctions) -> Kernel:
    """Return the kernel that calls the body for the out-edges of a queue's vertices.

    The vertices for which it returns true are set in a bitmap, and appended to a queue by the thread that sets the
    bit; or each warp writes the sum of the results.
    """
    sender = make_sender(functions.output.offset)
    send = (_make_send_to_frontier if functions.makes_frontier else _make_send_to_sum)(functions)

    @kernel(
        *(_VERTICES, types.uint32, _VERTICES, _VERTICES, types.uint32, types.uint32, *functions.rows),
        *(functions.arrays, functions.output.kind),
        relaxed=("arrays",),
    )
    def push(queue, count, hubs, firsts, hub_count, pieces, indptr, indices, weights, arrays, out):
        u, begin, length, _ = sender(queue, count, hubs, firsts, hub_count, pieces, indptr)
        send(u, begin, length, indices, weights, arrays, out)

    return push


def _make_send_to_frontier(functions: EdgeFunctions) -> Any:
    """``send(u, begin, length, indices, weights, arrays, out)``: push the rows of a warp's lanes."""
    receives, call, nothing = _make_calls(functions)

    @device
    def visit(u, v, e, state):
        weights, arrays, out, _ = state
        if receives(v, arrays) and call(u, v, weights, e, arrays):
            return fetch_and_or(out[1], v >> np.uint32(5), bit(v)) & bit(v) == np.uint32(0)
        return False

    @device
    def collect(is_new, v, is_last, state, kept):
        _, _, out, buffer = state
        held, edges = kept
        held = gather(is_new, v, buffer, held)
        if held > np.uint32(WARP) or (held > np.uint32(0) and is_last):
            edges += append(buffer, held, out)
            held = np.uint32(0)
        return held, edges

    push_rows = make_push_rows(position_type(functions.output.offset), visit, collect=collect, nothing=nothing)

    @device
    def send(u, begin, length, indices, weights, arrays, out):
        state = (weights, arrays, out, cuda.shared.array(BUFFER, types.uint32))
        _, edges = push_rows(u, begin, length, indices, state, (np.uint32(0), np.int64(0)))
        add_edges(edges, out)

    return send


def _make_send_to_sum(functions: EdgeFunctions) -> Any:
    """``send(…)``, where results are summed or dropped."""
    receives, call, nothing = _make_calls(functions)
    number, add = functions.output.number, functions.output.make_add()

    @device
    def visit(u, v, e, state):
        weights, arrays = state
        if receives(v, arrays):
            return call(u, v, weights, e, arrays)
        return number(0)

    @device
    def collect(result, v, is_last, state, kept):
        return number(kept + result)

    push_rows = make_push_rows(position_type(functions.output.offset), visit, collect=collect, nothing=nothing)

    @device
    def send(u, begin, length, indices, weights, arrays, out):
        add(push_rows(u, begin, length, indices, (weights, arrays), number(0)), out)

    return send


def _make_receiver(functions: EdgeFunctions, receives: Any) -> Any:
    """``receiver(indptr, piece_vertices, piece_begins, piece_ends, arrays)``: the row of each lane of a pull.

    Returned are the vertex, its first edge, the number of edges to read, 0 if it does not receive, and whether the warp
    has rows, not a piece of a hub.
    """
    position = position_type(functions.output.offset)

    @device
    def receiver(indptr, piece_vertices, piece_begins, piece_ends, arrays):
        lane, n = lane_number(), np.uint32(np.uint32(len(indptr)) - np.uint32(1))
        follows_rows, piece = piece_of_warp(n)
        v, begin, length = np.uint32(warp_number() * np.uint32(WARP) + lane), position(0), np.uint32(0)
        if not follows_rows:
            wanted = v < n and receives(v, arrays)
            if np.uint32(cuda.ballot_sync(ALL, wanted)) != np.uint32(0):
                # The end of a row is the beginning of the next lane's.
                begin = position(indptr[min(v, n)])
                end = shuffle(begin, np.uint32(lane + np.uint32(1)))
                if lane == np.uint32(WARP - 1):
                    end = position(indptr[min(np.uint32(v + np.uint32(1)), n)])
                if wanted and position(end - begin) <= position(HUB_EDGES):
                    length = np.uint32(end - begin)
        elif piece < np.uint32(len(piece_vertices)):
            v = piece_vertices[piece]
            if lane == np.uint32(0):
                begin = position(piece_begins[piece])
                if receives(v, arrays):
                    length = np.uint32(position(piece_ends[piece]) - begin)
        return v, begin, length, not follows_rows

    return receiver


@device
def _twice(quota):
    """Return the number of edges to read of each row after ``quota``."""
    return np.uint32(quota << np.uint32(1))


def _make_pull_body(functions: EdgeFunctions) -> Any:
    """``pull_body(v, begin, length, quota, words, indices, weights, arrays)``: call the body for the edges of 32 rows.

    Returned are whether it returned true for an edge of the lane's row, and the sum of its results on this lane.
    ``words`` is the frontier; empty if it has all vertices.
    """
    can_end, sums = functions.receives is not None, not functions.makes_frontier
    receives, call, nothing = _make_calls(functions)
    number = types.uint32 if functions.makes_frontier else functions.output.number

    @device
    def visit(state, v, u, e):
        words, weights, arrays = state
        if len(words) == 0 or get_bit(words, u):
            return True, call(u, v, weights, e, arrays)
        return False, nothing

    @device
    def fold(result, owner, span, v, state, kept):
        (is_called, one), (is_open, hit, own) = result, kept
        if sums:
            own = number(own + one)
        else:
            hits = np.uint32(cuda.ballot_sync(ALL, one))
            hit = hit or hits & lanes_of(*span) != np.uint32(0)
        if can_end:
            cuda.syncwarp()
            if np.uint32(cuda.ballot_sync(ALL, is_called)) & lanes_of(*span) != np.uint32(0):
                is_open = receives(v, state[2])
        return is_open, hit, own

    @device
    def has_ended(kept):
        return not kept[0]

    pull_rows = make_pull_rows(
        Pull(
            offset=position_type(functions.output.offset),
            visit=visit,
            fold=fold,
            nothing=(False, nothing),
            is_final=has_ended if can_end else None,
            grown=_twice if can_end else None,
        )
    )

    @device
    def pull_body(v, begin, length, quota, words, indices, weights, arrays):
        state = (words, weights, arrays)
        _, hit, own = pull_rows(v, begin, length, quota, indices, state, (True, False, number(0)))
        return hit, own

    return pull_body


def make_pull(functions: EdgeFunctions) -> Kernel:
    """Return the kernel that calls the body for the in-edges, from active vertices, of all receivers.

    The vertices for which it returns true are set in a bitmap, which must be empty; or each warp writes the sum of the
    results. The warp reads ``quota`` edges of each row that may end early, then twice as many, and so on.
    """
    receives, _, _ = _make_calls(functions)
    receiver, pull_body = _make_receiver(functions, receives), _make_pull_body(functions)
    finish = _finish_frontier if functions.makes_frontier else _make_finish_sum(functions.output)
    offsets, indices_type, weights_type = functions.rows

    @kernel(
        *(_VERTICES, types.uint32, offsets, _VERTICES, offsets, offsets, indices_type, weights_type),
        *(functions.arrays, types.boolean, functions.output.kind),
        relaxed=("arrays",),
    )
    def pull(
        words,
        quota,
        indptr,
        piece_vertices,
        piece_begins,
        piece_ends,
        indices,
        weights,
        arrays,
        has_other_degrees,
        out,
    ):
        v, begin, length, is_row = receiver(indptr, piece_vertices, piece_begins, piece_ends, arrays)
        hit, own = pull_body(v, begin, length, quota, words, indices, weights, arrays)
        finish(hit, own, v, length, is_row, has_other_degrees, out)

    return pull


def _make_finish_sum(output: RowOutput) -> Any:
    add = output.make_add()

    @device
    def finish_sum(hit, own, v, length, is_row, has_other_degrees, out):
        add(own, out)

    return finish_sum


@device
def _finish_frontier(hit, own, v, length, is_row, has_other_degrees, out):
    """Set the bits of the lanes' rows for which ``hit`` holds, and count them and their edges."""
    degrees, found, _, _, _, control = out
    _set_words(hit and is_row, found)
    edges = np.int64(length)
    if hit and not is_row:
        # Other pieces of the hub may set its bit too.
        hit = fetch_and_or(found, v >> np.uint32(5), bit(v)) & bit(v) == np.uint32(0)
    if hit and (has_other_degrees or not is_row):
        edges = np.int64(degrees[v])
    if not hit:
        edges = np.int64(0)
    add_figures(np.int64(hit), edges, pieces_of(edges), control)


@device
def _set_words(hit, found):
    """Set the bits of the lanes' rows for which ``hit`` holds; the warps of a block have neighbouring words."""
    words = cuda.shared.array(WARPS, types.uint32)
    thread, bits = np.uint32(cuda.threadIdx.x), np.uint32(cuda.ballot_sync(ALL, hit))
    if lane_number() == np.uint32(0):
        words[thread >> np.uint32(5)] = bits
    cuda.syncthreads()
    if thread < np.uint32(WARPS) and words[thread] != np.uint32(0):
        word = np.uint32(np.uint32(cuda.blockIdx.x) * np.uint32(WARPS) + thread)
        fetch_and_or(found, word, words[thread])

"""The kernels of ``process_edges`` on CUDA that push; those that pull are in ``pull_edges_cuda``.

A push reads the rows of a queue's vertices. The lanes of a warp share the edges of 32 rows, and each piece of a hub has
a warp of its own, as in ``push_cuda``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_pregel.kernels.library.atomics_cuda import fetch_and_add, fetch_and_or
from gpu_pregel.kernels.library.bits_cuda import bit
from gpu_pregel.kernels.library.compiler_cuda import cuda, from_dtype, types
from gpu_pregel.kernels.library.jit_cuda import WARP, Kernel, device, kernel
from gpu_pregel.kernels.library.loads_cuda import load_once
from gpu_pregel.kernels.library.warps_cuda import lane_number, owner_of, shuffle, sum_of_warp, sum_up_to
from gpu_pregel.kernels.traverse.fields import make_weight
from gpu_pregel.kernels.traverse.frontier_cuda import BUFFER, EDGES, append, gather
from gpu_pregel.kernels.traverse.rows_cuda import HUB_EDGES, warp_number

_VERTICES, _CONTROL = types.uint32[::1], types.int64[::1]


@dataclass(frozen=True)
class EdgeFunctions:
    """What the kernels over edges are made from.

    Attributes
    ----------
    body, receives : device function
        ``receives`` is None if every vertex receives.
    arrays : Numba type
        Of the tuple of arrays and numbers passed to both.
    offset : dtype
        Of edge positions: uint32 or int64.
    weight : dtype or None
        Of the weights; None if the graph has none.
    total : dtype or None
        Of the sum of what ``body`` returns; None if its results are the next frontier, or nothing.
    returns : {"frontier", "sum", None}
    """

    body: Any
    receives: Any
    arrays: Any
    offset: np.dtype[Any]
    weight: np.dtype[Any] | None
    total: np.dtype[Any] | None
    returns: str | None

    @property
    def number(self) -> Any:
        """The type of a sum; of zeros where nothing is summed."""
        return types.int64 if self.total is None else from_dtype(self.total)

    @property
    def rows(self) -> tuple[Any, Any, Any]:
        """The types of ``indptr``, ``indices`` and ``weights``."""
        return row_types(self.offset, self.weight)

    @property
    def position(self) -> Any:
        """The unsigned type of an edge position."""
        return position_type(self.offset)


def row_types(offset: np.dtype[Any], weight: np.dtype[Any] | None) -> tuple[Any, Any, Any]:
    """Return the types of ``indptr``, ``indices`` and ``weights``; without weights an array is not read."""
    return (from_dtype(offset)[::1], _VERTICES, from_dtype(np.dtype(np.float32) if weight is None else weight)[::1])


def position_type(offset: np.dtype[Any]) -> Any:
    """Return the unsigned type of an edge position."""
    return types.uint32 if offset.itemsize == 4 else types.uint64


def make_calls(functions: EdgeFunctions) -> tuple[Any, Any]:
    """``receives(v, arrays)`` and ``call(u, v, weights, e, arrays)``: the body's result for edge ``e``."""
    body, chosen = functions.body, functions.receives
    weight_of = make_weight(device, functions.weight is not None)
    number = types.boolean if functions.returns == "frontier" else functions.number
    is_silent = functions.returns is None

    def some(v, arrays):
        return chosen(np.int64(v), *arrays) != 0

    def every(v, arrays):
        return True

    def call(u, v, weights, e, arrays):
        return number(body(np.int64(u), np.int64(v), weight_of(weights, e), *arrays))

    def call_silently(u, v, weights, e, arrays):
        body(np.int64(u), np.int64(v), weight_of(weights, e), *arrays)
        return number(0)

    return device(every if chosen is None else some), device(call_silently if is_silent else call)


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
        lane, warp = lane_number(), warp_number()
        row_warps = np.uint32(np.uint32(count + np.uint32(WARP - 1)) >> np.uint32(5))
        u, begin, length, is_row = np.uint32(0), position(0), np.uint32(0), False
        if warp < row_warps:
            u = np.uint32(warp * np.uint32(WARP) + lane)
            if u < count:
                if len(queue) > 0:
                    u = queue[u]
                begin = position(indptr[u])
                degree = position(position(indptr[np.uint32(u + np.uint32(1))]) - begin)
                if degree <= position(HUB_EDGES):
                    length, is_row = np.uint32(degree), True
        elif np.uint32(warp - row_warps) < pieces:
            piece = np.uint32(warp - row_warps)
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

    The vertices for which it returns true are set in the bitmap ``found``, and appended to ``found_queue`` by the
    thread that sets the bit. With ``total``, each warp writes the sum of the results to ``partials`` instead.
    """
    return _make_push_frontier(functions) if functions.returns == "frontier" else _make_push_sum(functions)


def _make_push_frontier(functions: EdgeFunctions) -> Kernel:
    position, sender = functions.position, make_sender(functions.offset)
    receives, call = make_calls(functions)

    @kernel(
        *(_VERTICES, types.uint32, _VERTICES, _VERTICES, types.uint32, types.uint32, *functions.rows),
        *(functions.arrays, functions.rows[0], _VERTICES, _VERTICES, _VERTICES, _VERTICES, _CONTROL),
        relaxed=("arrays",),
    )
    def push(
        queue,
        count,
        hubs,
        firsts,
        hub_count,
        pieces,
        indptr,
        indices,
        weights,
        arrays,
        degrees,
        found,
        found_queue,
        found_hubs,
        found_firsts,
        control,
    ):
        u, begin, length, _ = sender(queue, count, hubs, firsts, hub_count, pieces, indptr)
        lane, buffer, held = lane_number(), cuda.shared.array(BUFFER, types.uint32), np.uint32(0)
        upto = sum_up_to(length)
        total = shuffle(upto, 31)
        before = position(begin - position(upto - length))
        place, edges = lane, np.int64(0)
        while place - lane < total:
            owner = owner_of(place, upto)
            e = position(shuffle(before, owner) + position(place))
            source, v, is_new = shuffle(u, owner), np.uint32(0), False
            if place < total:
                v = load_once(indices, e)
                if receives(v, arrays) and call(source, v, weights, e, arrays):
                    was = fetch_and_or(found, v >> np.uint32(5), bit(v))
                    is_new = was & bit(v) == np.uint32(0)
            held = gather(is_new, v, buffer, held)
            place = np.uint32(place + np.uint32(WARP))
            if held > np.uint32(WARP) or (held > np.uint32(0) and place - lane >= total):
                edges += append(buffer, held, degrees, found_queue, found_hubs, found_firsts, control)
                held = np.uint32(0)
        if total > np.uint32(0):
            edges = sum_of_warp(edges)
            if lane == np.uint32(0) and edges > np.int64(0):
                fetch_and_add(control, EDGES, edges)

    return push


def _make_push_sum(functions: EdgeFunctions) -> Kernel:
    position, sender = functions.position, make_sender(functions.offset)
    receives, call = make_calls(functions)
    number, sums_up = functions.number, functions.total is not None

    @kernel(
        *(_VERTICES, types.uint32, _VERTICES, _VERTICES, types.uint32, types.uint32, *functions.rows),
        *(functions.arrays, number[::1]),
        relaxed=("arrays",),
    )
    def push_sum(queue, count, hubs, firsts, hub_count, pieces, indptr, indices, weights, arrays, partials):
        u, begin, length, _ = sender(queue, count, hubs, firsts, hub_count, pieces, indptr)
        lane, warp = lane_number(), warp_number()
        upto = sum_up_to(length)
        total = shuffle(upto, 31)
        before = position(begin - position(upto - length))
        place, own = lane, number(0)
        while place - lane < total:
            owner = owner_of(place, upto)
            e = position(shuffle(before, owner) + position(place))
            source = shuffle(u, owner)
            if place < total and receives(load_once(indices, e), arrays):
                own += call(source, load_once(indices, e), weights, e, arrays)
            place = np.uint32(place + np.uint32(WARP))
        if sums_up:
            own = sum_of_warp(own)
            if lane == np.uint32(0) and warp < np.uint32(len(partials)):
                partials[warp] = own

    return push_sum

"""The kernels of ``process_edges`` on CUDA that pull.

A pull reads the rows of all receivers. The lanes of a warp share the edges of 32 rows, and each piece of a hub has a
warp of its own, as in ``pull_cuda``. A row ends where its vertex does not receive any more.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.kernels.library.atomics_cuda import fetch_and_or
from gpu_pregel.kernels.library.bits_cuda import bit, get_bit
from gpu_pregel.kernels.library.compiler_cuda import cuda, types
from gpu_pregel.kernels.library.jit_cuda import WARP, WARPS, Kernel, device, kernel
from gpu_pregel.kernels.library.loads_cuda import load_once
from gpu_pregel.kernels.library.warps_cuda import ALL, lane_number, owner_of, shuffle, sum_of_warp, sum_up_to
from gpu_pregel.kernels.traverse.edges_cuda import EdgeFunctions, make_calls
from gpu_pregel.kernels.traverse.frontier_cuda import add_figures, pieces_of
from gpu_pregel.kernels.traverse.rows_cuda import HUB_EDGES, lanes_of, warp_number

_VERTICES, _CONTROL = types.uint32[::1], types.int64[::1]


def _make_receiver(functions: EdgeFunctions, receives: Any) -> Any:
    """``receiver(indptr, piece_vertices, piece_begins, piece_ends, arrays)``: the row of each lane of a pull.

    Returned are the vertex, its first edge and the number of edges to read: 0 if it does not receive.
    """
    position = functions.position

    @device
    def receiver(indptr, piece_vertices, piece_begins, piece_ends, arrays):
        lane, warp, n = lane_number(), warp_number(), np.uint32(np.uint32(len(indptr)) - np.uint32(1))
        v, begin, length = np.uint32(warp * np.uint32(WARP) + lane), position(0), np.uint32(0)
        if warp < row_warps(n):
            wanted = v < n and receives(v, arrays)
            if np.uint32(cuda.ballot_sync(ALL, wanted)) != np.uint32(0):
                # The end of a row is the beginning of the next lane's.
                begin = position(indptr[min(v, n)])
                end = shuffle(begin, np.uint32(lane + np.uint32(1)))
                if lane == np.uint32(WARP - 1):
                    end = position(indptr[min(np.uint32(v + np.uint32(1)), n)])
                if wanted and position(end - begin) <= position(HUB_EDGES):
                    length = np.uint32(end - begin)
        elif np.uint32(warp - row_warps(n)) < np.uint32(len(piece_vertices)):
            piece = np.uint32(warp - row_warps(n))
            v = piece_vertices[piece]
            if lane == np.uint32(0):
                begin = position(piece_begins[piece])
                if receives(v, arrays):
                    length = np.uint32(position(piece_ends[piece]) - begin)
        return v, begin, length

    return receiver


@device
def row_warps(n):
    """Return the number of warps with 32 rows each; the warps after them have a piece of a hub each."""
    return np.uint32(np.uint32(n + np.uint32(WARP - 1)) >> np.uint32(5))


def _make_pull_rows(functions: EdgeFunctions) -> Any:
    """``pull_rows(v, begin, length, quota, words, indices, weights, arrays)``: call the body for the edges of 32 rows.

    Returned are whether it returned true for an edge of the lane's row, and the sum of its results on this lane. A row
    ends where ``receives`` fails: the warp reads ``quota`` edges of each row, then of those that have not ended twice
    as many, and so on. ``words`` is the frontier; empty if it has all vertices.
    """
    position, can_end = functions.position, functions.receives is not None
    number = types.uint32 if functions.returns == "frontier" else functions.number
    pull_parts = _make_pull_parts(functions, number)

    @device
    def pull_rows(v, begin, length, quota, words, indices, weights, arrays):
        hit, own, is_open = False, number(0), True
        if not can_end:
            upto = sum_up_to(length)
            _, hit, own = pull_parts(v, begin, length, upto, is_open, hit, own, words, indices, weights, arrays)
            return hit, own
        part = min(length, quota)
        upto = sum_up_to(part)
        while shuffle(upto, 31) > np.uint32(0):
            is_open, hit, own = pull_parts(v, begin, part, upto, is_open, hit, own, words, indices, weights, arrays)
            begin, length = position(begin + position(part)), np.uint32(length - part)
            quota = np.uint32(quota << np.uint32(1))
            part = np.uint32(0)
            if is_open:
                part = min(length, quota)
            upto = sum_up_to(part)
        return hit, own

    return pull_rows


def _make_pull_parts(functions: EdgeFunctions, number: Any) -> Any:
    """``pull_parts(v, begin, part, upto, is_open, hit, own, …)``: read ``part`` edges of each row.

    ``upto`` is the sum of the parts up to this lane's. Whether the row ``is_open``, as its vertex still receives,
    ``hit`` and ``own`` are updated and returned.
    """
    position, can_end, sums = functions.position, functions.receives is not None, functions.returns != "frontier"
    receives, call = make_calls(functions)

    @device
    def pull_parts(v, begin, part, upto, is_open, hit, own, words, indices, weights, arrays):
        lane, start, base, total = lane_number(), np.uint32(upto - part), np.uint32(0), shuffle(upto, 31)
        before = position(begin - position(start))
        while base < total:
            going = ALL
            if can_end:
                # Skip the rows that have ended before the first that has not.
                going = np.uint32(cuda.ballot_sync(ALL, is_open and part > np.uint32(0) and upto > base))
                if going == np.uint32(0):
                    total = base
                else:
                    base = max(base, shuffle(start, np.uint32(cuda.ffs(going) - 1)))
            place = np.uint32(base + lane)
            owner = owner_of(place, upto)
            e, row = position(shuffle(before, owner) + position(place)), shuffle(v, owner)
            called, result = False, False
            if place < total and (going >> owner) & np.uint32(1) != np.uint32(0):
                u = load_once(indices, e)
                if len(words) == 0 or get_bit(words, u):
                    called = True
                    if sums:
                        own += number(call(u, row, weights, e, arrays))
                    else:
                        result = call(u, row, weights, e, arrays) != 0
            lanes = lanes_of(start, upto, base)
            if not sums:
                hits = np.uint32(cuda.ballot_sync(ALL, result))
                hit = hit or hits & lanes != np.uint32(0)
            if can_end:
                cuda.syncwarp()
                if np.uint32(cuda.ballot_sync(ALL, called)) & lanes != np.uint32(0):
                    is_open = receives(v, arrays)
            base = np.uint32(base + np.uint32(WARP))
        return is_open, hit, own

    return pull_parts


def make_pull(functions: EdgeFunctions) -> Kernel:
    """Return the kernel that calls the body for the in-edges, from active vertices, of all receivers.

    The vertices for which it returns true are set in the bitmap ``found``, which must be empty. With ``total``, each
    warp writes the sum of the results to ``partials`` instead.
    """
    return _make_pull_frontier(functions) if functions.returns == "frontier" else _make_pull_sum(functions)


def _make_pull_frontier(functions: EdgeFunctions) -> Kernel:
    receives, _ = make_calls(functions)
    receiver, pull_rows = _make_receiver(functions, receives), _make_pull_rows(functions)
    offsets, indices_type, weights_type = functions.rows

    @kernel(
        *(_VERTICES, types.uint32, offsets, _VERTICES, offsets, offsets, indices_type, weights_type),
        functions.arrays,
        *(types.boolean, offsets, _VERTICES, _CONTROL),
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
        degrees,
        found,
        control,
    ):
        v, begin, length = receiver(indptr, piece_vertices, piece_begins, piece_ends, arrays)
        hit, _ = pull_rows(v, begin, length, quota, words, indices, weights, arrays)
        is_row = warp_number() < row_warps(np.uint32(np.uint32(len(indptr)) - np.uint32(1)))
        _set_words(hit and is_row, found)
        own = np.int64(length)
        if hit and not is_row:
            # Other pieces of the hub may set its bit too.
            hit = fetch_and_or(found, v >> np.uint32(5), bit(v)) & bit(v) == np.uint32(0)
        if hit and (has_other_degrees or not is_row):
            own = np.int64(degrees[v])
        if not hit:
            own = np.int64(0)
        add_figures(np.int64(hit), own, pieces_of(own), control)

    return pull


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


def _make_pull_sum(functions: EdgeFunctions) -> Kernel:
    (receives, _), sums_up = make_calls(functions), functions.total is not None
    receiver, pull_rows = _make_receiver(functions, receives), _make_pull_rows(functions)
    offsets, indices_type, weights_type = functions.rows

    @kernel(
        *(_VERTICES, types.uint32, offsets, _VERTICES, offsets, offsets, indices_type, weights_type),
        functions.arrays,
        functions.number[::1],
        relaxed=("arrays",),
    )
    def pull_sum(words, quota, indptr, piece_vertices, piece_begins, piece_ends, indices, weights, arrays, partials):
        v, begin, length = receiver(indptr, piece_vertices, piece_begins, piece_ends, arrays)
        _, own = pull_rows(v, begin, length, quota, words, indices, weights, arrays)
        if sums_up:
            own, warp = sum_of_warp(own), warp_number()
            if lane_number() == np.uint32(0) and warp < np.uint32(len(partials)):
                partials[warp] = own

    return pull_sum

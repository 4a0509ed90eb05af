"""The kernels of ``reduce_rows`` on CUDA.

The rows of a queue's vertices are read as by a push: the lanes of a warp share the edges of 32 rows, and each piece of
a hub has a warp of its own. A second kernel combines the pieces of each hub.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_pregel.kernels.library.atomics_cuda import fetch_and_add, fetch_and_or
from gpu_pregel.kernels.library.bits_cuda import bit
from gpu_pregel.kernels.library.compiler_cuda import cuda, from_dtype, types
from gpu_pregel.kernels.library.jit_cuda import WARP, WARPS, Kernel, device, kernel
from gpu_pregel.kernels.library.warps_cuda import lane_number, sum_of_warp
from gpu_pregel.kernels.traverse.combining_cuda import Combining, make_combine_rows, make_combining
from gpu_pregel.kernels.traverse.edges_cuda import make_sender, row_types
from gpu_pregel.kernels.traverse.fields import make_cast, make_get, make_put, make_weight
from gpu_pregel.kernels.traverse.frontier_cuda import BUFFER, EDGES, append, gather
from gpu_pregel.kernels.traverse.rows_cuda import warp_number

_VERTICES, _CONTROL = types.uint32[::1], types.int64[::1]


@dataclass(frozen=True)
class RowOutput:
    """What kernels over rows do with the results of their vertices.

    Attributes
    ----------
    returns : {"frontier", "sum", "pairs", None}
        The vertices for which ``finish`` returns true are set in a bitmap and appended to a queue; or each warp writes
        the sum of the results; or the result of each pair is written; or nothing is kept.
    total : dtype or None
        Of the sum, or of a result.
    offset : dtype
        Of edge positions and degrees.
    """

    returns: str | None
    total: np.dtype[Any] | None
    offset: np.dtype[Any]

    @property
    def kind(self) -> Any:
        """The type of a kernel's argument ``out``.

        For a frontier: degrees, bitmap, queue, hubs, their first pieces, and figures; for pairs, an array for their
        results; else an array for the sums of warps, and the place of the first warp's.
        """
        if self.returns == "frontier":
            offsets = from_dtype(self.offset)[::1]
            return types.Tuple([offsets, _VERTICES, _VERTICES, _VERTICES, _VERTICES, _CONTROL])
        return self.number[::1] if self.returns == "pairs" else types.Tuple([self.number[::1], types.uint32])

    @property
    def number(self) -> Any:
        """The type of a sum; int64 without."""
        return types.int64 if self.total is None else from_dtype(self.total)

    def make_deliver(self, finish: Any) -> Any:
        """``deliver(has_row, v, found, arrays, out)``: finish the rows of those lanes that have one.

        All threads of a block call it, with ``finish(v, found, arrays)``.
        """
        number = self.number

        @device
        def to_frontier(has_row, v, found, arrays, out):
            degrees, words, queue, hubs, firsts, control = out
            is_kept = False
            if has_row:
                is_kept = finish(v, found, arrays) != 0
            if is_kept:
                fetch_and_or(words, v >> np.uint32(5), bit(v))
            buffer = cuda.shared.array(BUFFER, types.uint32)
            held = gather(is_kept, v, buffer, np.uint32(0))
            if held > np.uint32(0):
                edges = sum_of_warp(append(buffer, held, degrees, queue, hubs, firsts, control))
                if lane_number() == np.uint32(0):
                    fetch_and_add(control, EDGES, edges)

        @device
        def to_sum(has_row, v, found, arrays, out):
            sums, first = out
            own, place = number(0), np.uint32(first + warp_number())
            if has_row:
                own = number(finish(v, found, arrays))
            own = sum_of_warp(own)
            if lane_number() == np.uint32(0) and place < np.uint32(len(sums)):
                sums[place] = own

        @device
        def to_pairs(has_row, v, found, arrays, out):
            if has_row:
                out[v] = number(finish(v, found, arrays))

        @device
        def to_nothing(has_row, v, found, arrays, out):
            if has_row:
                finish(v, found, arrays)

        return {"frontier": to_frontier, "sum": to_sum, "pairs": to_pairs, None: to_nothing}[self.returns]


@dataclass(frozen=True)
class RowFunctions:
    """What the kernels that reduce rows are made from.

    Attributes
    ----------
    message, finish : device function
    combining : Combining
    arrays : Numba type
        Of the tuple of arrays and numbers passed to both functions.
    offset : dtype
        Of edge positions: uint32 or int64.
    weight : dtype or None
        Of the weights; None if the graph has none.
    output : RowOutput
    """

    message: Any
    finish: Any
    combining: Combining
    arrays: Any
    offset: np.dtype[Any]
    weight: np.dtype[Any] | None
    output: RowOutput


def make_reduce(functions: RowFunctions) -> tuple[Kernel, Kernel]:
    """Return the kernel over rows and pieces, and the one over hubs, which follows it."""
    sender, combine_row = make_sender(functions.offset), _make_combine_row(functions)
    deliver = functions.output.make_deliver(_make_finish(functions))

    @kernel(
        *(_VERTICES, types.uint32, _VERTICES, _VERTICES, types.uint32, types.uint32),
        *row_types(functions.offset, functions.weight),
        *(functions.arrays, functions.combining.arrays, functions.output.kind),
        relaxed=("arrays",),
    )
    def reduce_rows(queue, count, hubs, firsts, hub_count, pieces, indptr, indices, weights, arrays, partials, out):
        v, begin, length, is_row = sender(queue, count, hubs, firsts, hub_count, pieces, indptr)
        combined = combine_row(v, begin, length, count, pieces, indices, weights, arrays, partials)
        deliver(is_row, v, combined, arrays, out)

    return reduce_rows, make_finish_hubs(functions.combining, functions.arrays, functions.output, deliver)


def make_finish_hubs(combining: Combining, arrays_type: Any, output: RowOutput, deliver: Any) -> Kernel:
    """Return the kernel that combines what was found in the pieces of each hub, and finishes the hub."""
    combine_hub = _make_combine_hub(combining)

    @kernel(
        *(_VERTICES, _VERTICES, types.uint32, types.uint32, arrays_type, combining.arrays, output.kind),
        relaxed=("arrays",),
        items=WARPS,
    )
    def finish_hubs(hubs, firsts, hub_count, pieces, arrays, partials, out):
        v, is_last, combined = combine_hub(hubs, firsts, hub_count, pieces, partials)
        deliver(is_last, v, combined, arrays, out)

    return finish_hubs


def _make_finish(functions: RowFunctions) -> Any:
    """``finish(v, combined, arrays)``."""
    function = functions.finish

    @device
    def finish(v, combined, arrays):
        return function(np.int64(v), combined, *arrays)

    return finish


def _make_combine_row(functions: RowFunctions) -> Any:
    """``combine_row(v, begin, length, …)``: what the edges of each lane's row combine to; of a piece it is stored."""
    combining = functions.combining
    message, cast = functions.message, make_cast(device, combining.message)
    weight_of, put = make_weight(device, functions.weight is not None), make_put(device, combining.message)

    @device
    def message_of(state, v, u, e):
        weights, arrays = state
        return True, cast(message(np.int64(v), np.int64(u), weight_of(weights, e), *arrays))

    combine_rows = make_combine_rows(combining, message_of)

    @device
    def combine_row(v, begin, length, count, pieces, indices, weights, arrays, partials):
        row_warps = np.uint32(np.uint32(count + np.uint32(WARP - 1)) >> np.uint32(5))
        piece, quota = np.uint32(warp_number() - row_warps), np.uint32(1)
        is_piece = warp_number() >= row_warps and piece < pieces
        if is_piece:
            # The warp has no other row.
            quota = np.uint32(WARP)
        _, combined = combine_rows(indices, (weights, arrays), v, begin, length, quota)
        if is_piece and lane_number() == np.uint32(0):
            put(partials, piece, combined)
        return combined

    return combine_row


def _make_combine_hub(combining: Combining) -> Any:
    """``combine_hub(hubs, firsts, hub_count, pieces, partials)``: what the pieces of the warp's hub combine to.

    Returned are the hub, whether this is the last lane, which has the result, and the result.
    """
    identity, get = combining.identity, make_get(device, combining.message)
    combined, up_to = make_combining(combining)
    cast = make_cast(device, combining.message)

    @device
    def combine_hub(hubs, firsts, hub_count, pieces, partials):
        lane, i = lane_number(), warp_number()
        v, message = np.uint32(0), cast(identity)
        if i < hub_count:
            v = hubs[i]
            last = pieces
            if np.uint32(i + np.uint32(1)) < hub_count:
                last = firsts[np.uint32(i + np.uint32(1))]
            piece = np.uint32(firsts[i] + lane)
            while piece < last:
                message = combined(message, cast(get(partials, piece)))
                piece = np.uint32(piece + np.uint32(WARP))
        message = up_to(message, np.uint32(0))
        return v, i < hub_count and lane == np.uint32(WARP - 1), message

    return combine_hub

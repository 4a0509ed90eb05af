"""The kernels of ``reduce_rows`` on CUDA.

The rows of a queue's vertices are read as by a push: the lanes of a warp share the edges of 32 rows, and each piece of
a hub has a warp of its own. A second kernel combines the pieces of each hub.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_pregel.kernels.library.compiler_cuda import types
from gpu_pregel.kernels.library.jit_cuda import WARP, WARPS, Kernel, device, kernel
from gpu_pregel.kernels.library.warps_cuda import lane_number
from gpu_pregel.kernels.traverse.combining_cuda import Combining, make_combine_pieces, make_combine_rows_and_pieces
from gpu_pregel.kernels.traverse.edges_cuda import make_sender, row_types
from gpu_pregel.kernels.traverse.fields import make_cast, make_weight
from gpu_pregel.kernels.traverse.frontier_cuda import RowOutput
from gpu_pregel.kernels.traverse.rows_cuda import warp_number

_VERTICES = types.uint32[::1]


@dataclass(frozen=True)
class RowFunctions:
    """What the kernels that reduce rows are made from.

    Attributes
    ----------
    message, finish : device function
    combining : Combining
    arrays : Numba type
        Of the tuple of arrays and numbers passed to both functions.
    weight : dtype or None
        Of the weights; None if the graph has none.
    output : RowOutput
    """

    message: Any
    finish: Any
    combining: Combining
    arrays: Any
    weight: np.dtype[Any] | None
    output: RowOutput


def make_reduce(functions: RowFunctions) -> tuple[Kernel, Kernel]:
    """Return the kernel over rows and pieces, and the one over hubs, which follows it."""
    sender = make_sender(functions.output.offset)
    combine = make_combine_rows_and_pieces(functions.combining, _make_message(functions))
    deliver = functions.output.make_deliver(_make_finish(functions))

    @kernel(
        *(_VERTICES, types.uint32, _VERTICES, _VERTICES, types.uint32, types.uint32),
        *row_types(functions.output.offset, functions.weight),
        *(functions.arrays, functions.combining.arrays, functions.output.kind),
        relaxed=("arrays",),
    )
    def reduce_rows(queue, count, hubs, firsts, hub_count, pieces, indptr, indices, weights, arrays, partials, out):
        v, begin, length, is_row = sender(queue, count, hubs, firsts, hub_count, pieces, indptr)
        _, combined = combine(indices, (weights, arrays), v, begin, length, count, pieces, partials)
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


def _make_message(functions: RowFunctions) -> Any:
    """``message_of(state, v, u, e)``."""
    message, cast = functions.message, make_cast(device, functions.combining.message)
    weight_of = make_weight(device, functions.weight is not None)

    @device
    def message_of(state, v, u, e):
        weights, arrays = state
        return True, cast(message(np.int64(v), np.int64(u), weight_of(weights, e), *arrays))

    return message_of


def _make_combine_hub(combining: Combining) -> Any:
    """``combine_hub(hubs, firsts, hub_count, pieces, partials)``: what the pieces of the warp's hub combine to.

    Returned are the hub, whether this is the last lane, which has the result, and the result.
    """
    combine_pieces = make_combine_pieces(combining)

    @device
    def combine_hub(hubs, firsts, hub_count, pieces, partials):
        i, v, first, last = warp_number(), np.uint32(0), np.uint32(0), np.uint32(0)
        if i < hub_count:
            v, first, last = hubs[i], firsts[i], pieces
            if np.uint32(i + np.uint32(1)) < hub_count:
                last = firsts[np.uint32(i + np.uint32(1))]
        message = combine_pieces(first, last, partials)
        return v, i < hub_count and lane_number() == np.uint32(WARP - 1), message

    return combine_hub

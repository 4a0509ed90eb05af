"""The kernels of ``process_vertices`` on CUDA."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.kernels.library.atomics_cuda import fetch_and_add, fetch_and_or
from gpu_pregel.kernels.library.bits_cuda import bit, get_bit
from gpu_pregel.kernels.library.compiler_cuda import cuda, from_dtype, types
from gpu_pregel.kernels.library.jit_cuda import WARP, Kernel, kernel
from gpu_pregel.kernels.library.warps_cuda import ALL, lane_number, sum_of_warp
from gpu_pregel.kernels.traverse.frontier_cuda import BUFFER, EDGES, add_figures, append, gather, pieces_of
from gpu_pregel.kernels.traverse.rows_cuda import warp_number

_VERTICES, _CONTROL = types.uint32[::1], types.int64[::1]


def make_sum(body: Any, arrays: Any, total: np.dtype[Any] | None) -> Kernel:
    """Return the kernel that sums ``body(v, *arrays)`` over the vertices of a queue or a bitmap, for each warp.

    Without ``total``, the bodies are called and nothing is summed.

    The vertices are the first ``count`` of the queue; of all, if the queue is empty, those with a bit in ``words``; and
    all, if both are empty. ``arrays`` is the Numba type of the tuple, ``total`` the dtype of the sum.
    """
    number, sums_up = types.int64 if total is None else from_dtype(total), total is not None

    @kernel(_VERTICES, types.uint32, _VERTICES, arrays, number[::1], relaxed=("arrays",))
    def sum_over_vertices(queue, count, words, arrays, partials):
        own = number(0)
        stride = np.uint32(np.uint32(cuda.gridDim.x) * np.uint32(cuda.blockDim.x))
        i = np.uint32(cuda.grid(1))
        while i < count:
            v = i
            if len(queue) > 0:
                v = queue[i]
            if len(words) == 0 or get_bit(words, v):
                if sums_up:
                    own += number(body(np.int64(v), *arrays))
                else:
                    body(np.int64(v), *arrays)
            i = np.uint32(i + stride)
        if sums_up:
            own, warp = sum_of_warp(own), warp_number()
            if lane_number() == np.uint32(0) and warp < np.uint32(len(partials)):
                partials[warp] = own

    return sum_over_vertices


def make_filter_of_queue(body: Any, arrays: Any, offsets: Any) -> Kernel:
    """Return the kernel that keeps those of a queue's vertices for which ``body(v, *arrays)`` returns true.

    ``offsets`` is the Numba type of the degrees.
    """

    @kernel(
        *(_VERTICES, types.uint32, offsets, arrays, _VERTICES, _VERTICES, _VERTICES, _VERTICES, _CONTROL),
        relaxed=("arrays",),
    )
    def filter_queue(queue, count, degrees, arrays, found, found_queue, found_hubs, found_firsts, control):
        i, v, is_kept = np.uint32(cuda.grid(1)), np.uint32(0), False
        if i < count:
            v = queue[i]
            is_kept = body(np.int64(v), *arrays) != 0
            if is_kept:
                fetch_and_or(found, v >> np.uint32(5), bit(v))
        buffer = cuda.shared.array(BUFFER, types.uint32)
        held = gather(is_kept, v, buffer, np.uint32(0))
        if held > np.uint32(0):
            edges = append(buffer, held, degrees, found_queue, found_hubs, found_firsts, control)
            edges = sum_of_warp(edges)
            if lane_number() == np.uint32(0):
                fetch_and_add(control, EDGES, edges)

    return filter_queue


def make_filter_of_words(body: Any, arrays: Any, offsets: Any) -> Kernel:
    """Return the kernel that keeps those of a bitmap's vertices for which ``body(v, *arrays)`` returns true.

    An empty bitmap stands for all vertices.
    """

    @kernel(_VERTICES, offsets, arrays, _VERTICES, _CONTROL, relaxed=("arrays",))
    def filter_words(words, degrees, arrays, found, control):
        n, v, is_kept = np.uint32(len(degrees)), np.uint32(cuda.grid(1)), False
        if v < n and (len(words) == 0 or get_bit(words, v)):
            is_kept = body(np.int64(v), *arrays) != 0
        bits, word = np.uint32(cuda.ballot_sync(ALL, is_kept)), np.uint32(v // np.uint32(WARP))
        degree = np.int64(0)
        if is_kept:
            degree = np.int64(degrees[v])
        if lane_number() == np.uint32(0) and bits != np.uint32(0):
            found[word] = bits
        add_figures(np.int64(is_kept), degree, pieces_of(degree), control)

    return filter_words

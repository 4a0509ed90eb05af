"""The kernels of ``process_vertices`` on CUDA."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.kernels.library.bits_cuda import get_bit
from gpu_pregel.kernels.library.compiler_cuda import cuda, types
from gpu_pregel.kernels.library.jit_cuda import WARP, Kernel, device, kernel
from gpu_pregel.kernels.library.warps_cuda import ALL, lane_number
from gpu_pregel.kernels.traverse.frontier_cuda import RowOutput, add_figures, pieces_of

_VERTICES = types.uint32[::1]


def make_sum(body: Any, arrays: Any, output: RowOutput) -> Kernel:
    """Return the kernel that sums ``body(v, *arrays)`` over the vertices of a queue or a bitmap, for each warp.

    Without a sum, the bodies are called and nothing is written. The vertices are the first ``count`` of the queue; of
    all, if the queue is empty, those with a bit in ``words``; and all, if both are empty. ``arrays`` is the Numba type
    of the tuple.
    """
    number, add, sums_up = output.number, output.make_add(), output.total is not None

    @kernel(_VERTICES, types.uint32, _VERTICES, arrays, output.kind, relaxed=("arrays",))
    def sum_over_vertices(queue, count, words, arrays, out):
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
        add(own, out)

    return sum_over_vertices


def make_filter_of_queue(body: Any, arrays: Any, output: RowOutput) -> Kernel:
    """Return the kernel that keeps those of a queue's vertices for which ``body(v, *arrays)`` returns true."""

    @device
    def is_kept(v, found, arrays):
        return body(np.int64(v), *arrays)

    deliver = output.make_deliver(is_kept)

    @kernel(_VERTICES, types.uint32, arrays, output.kind, relaxed=("arrays",))
    def filter_queue(queue, count, arrays, out):
        i, v = np.uint32(cuda.grid(1)), np.uint32(0)
        if i < count:
            v = queue[i]
        deliver(i < count, v, v, arrays, out)

    return filter_queue


def make_filter_of_words(body: Any, arrays: Any, output: RowOutput) -> Kernel:
    """Return the kernel that keeps those of a bitmap's vertices for which ``body(v, *arrays)`` returns true.

    An empty bitmap stands for all vertices. The result is a bitmap.
    """

    @kernel(_VERTICES, arrays, output.kind, relaxed=("arrays",))
    def filter_words(words, arrays, out):
        degrees, found, _, _, _, control = out
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

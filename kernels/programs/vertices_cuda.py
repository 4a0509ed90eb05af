"""Kernels over the vertices of a frontier on CUDA."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda, types

from gpu_pregel.kernels.library.bits_cuda import get_bit
from gpu_pregel.kernels.library.jit_cuda import WARP, Kernel, kernel
from gpu_pregel.kernels.library.warps_cuda import lane_number, shuffle

_WORDS = types.uint32[::1]


def make_process_vertices(function: Any, arrays: Any, sums: Any) -> Kernel:
    """Call ``function(vertex, *arrays)`` for every vertex of a bitmap; a sum for each warp of a block."""
    total = sums.dtype

    @kernel(_WORDS, arrays, sums)
    def process_vertices(frontier: Any, arrays: Any, sums: Any) -> None:
        v = np.uint32(cuda.grid(1))
        result = total(0)
        if v >> np.uint32(5) < np.uint32(len(frontier)) and get_bit(frontier, v):
            result = total(function(np.int64(v), *arrays))
        lane = lane_number()
        distance = np.uint32(WARP // 2)
        while distance > np.uint32(0):
            result = total(result + shuffle(result, lane + distance))
            distance = np.uint32(distance >> np.uint32(1))
        if lane == np.uint32(0) and v >> np.uint32(5) < np.uint32(len(sums)):
            sums[v >> np.uint32(5)] = result

    return process_vertices

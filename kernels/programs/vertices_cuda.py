"""The kernel of ``process_vertices`` on CUDA."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda, types

from gpu_pregel.kernels.library.bits_cuda import get_bit
from gpu_pregel.kernels.library.jit_cuda import Kernel, kernel
from gpu_pregel.kernels.library.warps_cuda import lane_number, sum_of_warp

_WORDS = types.uint32[::1]


def make_process_vertices(function: Any, arrays: Any, sums: Any) -> Kernel:
    """Return a kernel that sums ``function(vertex, *arrays)`` over a bitmap's vertices, for each warp."""
    total = sums.dtype

    @kernel(_WORDS, arrays, sums)
    def process_vertices(frontier: Any, arrays: Any, sums: Any) -> None:
        v = np.uint32(cuda.grid(1))
        result = total(0)
        if v >> np.uint32(5) < np.uint32(len(frontier)) and get_bit(frontier, v):
            result = total(function(np.int64(v), *arrays))
        result = sum_of_warp(result)
        if lane_number() == np.uint32(0) and v >> np.uint32(5) < np.uint32(len(sums)):
            sums[v >> np.uint32(5)] = result

    return process_vertices

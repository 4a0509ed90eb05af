"""A barrier of all blocks of a cooperative launch on CUDA."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.kernels.library.atomics_cuda import fence, fetch_and_add, load_relaxed
from gpu_pregel.kernels.library.compiler_cuda import cuda
from gpu_pregel.kernels.library.jit_cuda import device

_SIGN = np.uint64(1 << 63)


@device
def grid_barrier(arrivals: Any, place: Any, pause: Any = 0) -> None:
    """Wait for all threads of the grid; what they wrote before the barrier is visible to all of them after it.

    ``arrivals[place]``, an int64, must be written by nothing else; its value does not matter. As in CUDA's cooperative
    groups, the arrivals of all blocks add up to a change of its sign, so that it need not be reset. The fences order
    the accesses of the whole block, as the block barriers put those of its other threads before or after them. A block
    that expects to wait for long looks every ``pause`` nanoseconds.
    """
    cuda.syncthreads()
    if np.uint32(cuda.threadIdx.x) == np.uint32(0):
        arrival = np.uint64(1)
        if np.uint32(cuda.blockIdx.x) == np.uint32(0):
            arrival = np.uint64(_SIGN - np.uint64(np.uint32(cuda.gridDim.x) - np.uint32(1)))
        fence()
        before = np.int64(fetch_and_add(arrivals, place, arrival))
        while before ^ load_relaxed(arrivals, place) >= np.int64(0):
            if pause > 0:
                cuda.nanosleep(pause)
        fence()
    cuda.syncthreads()

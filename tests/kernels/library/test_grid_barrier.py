"""Tests of the barrier of all blocks."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numba import cuda, types

from gpu_pregel.host.devices import get_device
from gpu_pregel.kernels.library.grid_barrier_cuda import grid_barrier
from gpu_pregel.kernels.library.jit_cuda import Kernel, kernel
from tests.devices import CUDA_DEVICES

ROUNDS = 5


@functools.cache
def make_rounds() -> Kernel:
    numbers = types.int64[::1]

    @kernel(numbers, numbers, cooperative=True, items=1, block=64)
    def rounds(numbers: Any, arrivals: Any) -> None:
        """In each round, the last thread of a block takes the number of the next block and adds its own."""
        blocks, block = np.uint32(cuda.gridDim.x), np.uint32(cuda.blockIdx.x)
        following = np.uint32((block + np.uint32(1)) % blocks)
        taken = np.int64(0)
        for _ in range(ROUNDS):
            if np.uint32(cuda.threadIdx.x) == np.uint32(63):
                taken = numbers[following]
            grid_barrier(arrivals, 1)
            if np.uint32(cuda.threadIdx.x) == np.uint32(63):
                numbers[block] = 2 * taken + np.int64(block)
            grid_barrier(arrivals, 1)

    return rounds


@CUDA_DEVICES
def test_all_blocks_see_what_the_others_wrote_before_the_barrier(device: str) -> None:
    target = get_device(device)
    rounds = make_rounds()
    # Nothing resets the word of the barrier between launches, of one block or of several.
    for blocks in (3, 1, 4):
        first = np.arange(1, blocks + 1)
        numbers, arrivals = target.upload(first), target.zeros(2, np.int64)
        for _ in range(2):
            target.launch(rounds, blocks, numbers, arrivals)
            for _ in range(ROUNDS):
                first = 2 * np.roll(first, -1) + np.arange(blocks)
            assert target.download(numbers).tolist() == first.tolist()


@CUDA_DEVICES
def test_a_cooperative_launch_has_a_block_per_multiprocessor_at_most(device: str) -> None:
    """More could not be resident, and the first ones would wait for them forever."""
    target = get_device(device)
    numbers = target.upload(np.full(1 << 12, -1))
    target.launch(make_rounds(), 1 << 12, numbers, target.zeros(2, np.int64))
    assert 1 < np.count_nonzero(target.download(numbers) != -1) < 1 << 12

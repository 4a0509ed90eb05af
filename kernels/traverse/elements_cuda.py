"""Kernels that read and write single elements of an array on CUDA, whatever its dtype: as unsigned integers."""

from __future__ import annotations

import functools

import numpy as np

from gpu_pregel.kernels.library.compiler_cuda import cuda, from_dtype, types
from gpu_pregel.kernels.library.jit_cuda import Kernel, kernel


@functools.cache
def make_gather(size: int) -> Kernel:
    """``gather(array, places, found)``: copy the elements at ``places``; each has ``size`` bytes."""
    elements = from_dtype(np.dtype(f"u{size}"))[::1]

    @kernel(elements, types.uint32[::1], elements)
    def gather(array, places, found):
        i = np.uint32(cuda.grid(1))
        if i < np.uint32(len(places)):
            found[i] = array[places[i]]

    return gather


@functools.cache
def make_scatter(size: int) -> Kernel:
    """``scatter(array, places, given)``: set the elements at ``places``, which differ; each has ``size`` bytes."""
    elements = from_dtype(np.dtype(f"u{size}"))[::1]

    @kernel(elements, types.uint32[::1], elements)
    def scatter(array, places, given):
        i = np.uint32(cuda.grid(1))
        if i < np.uint32(len(places)):
            array[places[i]] = given[i]

    return scatter


@kernel(types.uint32[::1], types.uint32[::1])
def keep_bits(words, kept):
    """Clear the bits of a bitmap that another one does not have."""
    i = np.uint32(cuda.grid(1))
    if i < np.uint32(len(words)):
        words[i] &= kept[i]

"""Tests of the atomic intrinsics on one and on several threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import TypingError

from gpu_pregel.host.devices.threads import parallel
from gpu_pregel.kernels.library import atomics_cpu as atomics
from gpu_pregel.kernels.library.jit_cpu import inline
from gpu_pregel.kernels.library.work_cpu import claim


@inline
def swap(array: Any, index: Any, expected: Any, desired: Any) -> Any:
    return atomics.compare_and_swap(array, index, expected, desired)


@inline
def add(array: Any, index: Any, value: Any) -> Any:
    return atomics.fetch_and_add(array, index, value)


@inline
def copy(array: Any, index: Any, value: Any) -> Any:
    before = atomics.load(array, index)
    atomics.store(array, index, value)
    atomics.prefetch(array, index + 1_000_000)
    return before


@pytest.mark.parametrize("dtype", [np.uint32, np.int32, np.uint64, np.int64])
def test_operations_on_every_dtype(dtype: Any) -> None:
    array = np.array([7, 8, 9], dtype)
    assert swap(array, 1, 8, 80)
    assert not swap(array, 1, 8, 800)
    assert array.tolist() == [7, 80, 9]
    assert add(array, 2, 5) == 9
    assert copy(array, 0, 1) == 7
    assert array.tolist() == [1, 80, 14]


def test_large_unsigned_values_are_not_treated_as_negative() -> None:
    array = np.array([2**32 - 1], np.uint32)
    assert swap(array, 0, np.uint32(2**32 - 1), np.uint32(2**32 - 2))
    assert array[0] == 2**32 - 2
    assert copy(array, 0, np.uint32(3)) == 2**32 - 2


def test_float_arrays_are_rejected_at_compile_time() -> None:
    with pytest.raises(TypingError):
        add(np.zeros(2), 0, 1)


@inline
def add_all(work: Any, total: Any) -> None:
    first, last = claim(work)
    while first < last:
        for _ in range(first, last):
            atomics.fetch_and_add(total, 0, 1)
        first, last = claim(work)


@inline
def raise_by_swaps(work: Any, total: Any) -> None:
    first, last = claim(work)
    while first < last:
        for _ in range(first, last):
            old = atomics.load(total, 0)
            while not atomics.compare_and_swap(total, 0, old, old + 1):
                old = atomics.load(total, 0)
        first, last = claim(work)


@pytest.mark.parametrize("kernel", [add_all, raise_by_swaps])
def test_threads_lose_no_update(kernel: Any) -> None:
    total = np.zeros(1, np.int64)
    parallel(kernel, 400_000, 100, total, threads=4)
    assert total[0] == 400_000

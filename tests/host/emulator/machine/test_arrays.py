"""Tests of device arrays: contents, counters, and the operations that they reject like CuPy's arrays."""

from __future__ import annotations

import gc
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gpu_pregel.host.emulator.machine import layout as at
from gpu_pregel.host.emulator.machine.arrays import ALIGNMENT, RED_ZONE, EmulatedMemory


@pytest.fixture
def memory() -> EmulatedMemory:
    return EmulatedMemory()


def test_copies_to_and_from_the_device(memory: EmulatedMemory) -> None:
    host = np.arange(10, dtype=np.uint32)
    array = memory.asarray(host)
    assert (array.shape, array.dtype, array.size, array.nbytes, array.itemsize) == (
        (10,),
        np.dtype(np.uint32),
        10,
        40,
        4,
    )
    assert (len(array), array.ndim) == (10, 1)
    back = array.get()
    np.testing.assert_array_equal(back, host)
    back[:] = 0
    np.testing.assert_array_equal(array.get(), host)
    assert (memory.uploads, memory.upload_bytes, memory.readbacks, memory.readback_bytes) == (1, 40, 2, 80)
    assert memory.asarray(array) is array


def test_new_arrays_are_poisoned_and_aligned(memory: EmulatedMemory) -> None:
    array = memory.empty(3, np.uint8)
    assert array.get().tolist() == [at.POISON] * 3
    assert array.address % ALIGNMENT == 0
    assert RED_ZONE >= 256
    assert not array.allocation.written.any()


def test_zeros_full_and_fill(memory: EmulatedMemory) -> None:
    assert memory.zeros(3, np.float32).get().tolist() == [0.0] * 3
    assert memory.full((2,), 7, np.int64).get().tolist() == [7, 7]
    array = memory.empty(4, np.int32)
    array[1:3].fill(5)
    assert array.allocation.written.tolist() == [0] * 4 + [1] * 8 + [0] * 4
    assert memory.empty(0, np.int32).get().size == 0


def test_slices_share_memory(memory: EmulatedMemory) -> None:
    array = memory.asarray(np.arange(10, dtype=np.int32))
    part = array[2:5]
    part.set(np.array([20, 30, 40], np.int32))
    assert array.get().tolist() == [0, 1, 20, 30, 40, 5, 6, 7, 8, 9]
    assert part.address == array.address + 8
    assert array[5:2].size == 0
    assert part[1:].get().tolist() == [30, 40]
    assert part[-1].get() == 40
    assert part[0].shape == ()
    assert array[:2].view(np.uint8).get().tolist() == [0, 0, 0, 0, 1, 0, 0, 0]


def test_assignment_to_elements_and_slices(memory: EmulatedMemory) -> None:
    array, other = memory.empty(4, np.int32), memory.asarray(np.array([8, 9], np.int32))
    array[0] = 3
    array[2:] = other
    assert array.allocation.written.tolist() == [1] * 4 + [0] * 4 + [1] * 8
    array[1:2] = 4
    assert array.get().tolist() == [3, 4, 8, 9]
    with pytest.raises(ValueError, match="does not fit"):
        array[0:3] = other


def test_a_copy_keeps_unwritten_bytes_unwritten(memory: EmulatedMemory) -> None:
    array = memory.empty(4, np.int32)
    array[1] = 6
    copy = array.copy()
    array[1] = 7
    assert copy[1].get() == 6
    assert copy.allocation.written.tolist() == [0] * 4 + [1] * 4 + [0] * 8


def test_live_bytes_and_capacity(memory: EmulatedMemory) -> None:
    small = EmulatedMemory(capacity=1000)
    first = small.zeros(200, np.int32)
    with pytest.raises(MemoryError, match=r"allocating 400 bytes \(allocated so far: 800 bytes, limit: 1000"):
        small.empty(100, np.int32)
    part = first[10:20]
    del first
    gc.collect()
    assert small.live_bytes == 800
    assert part.size == 10
    del part
    gc.collect()
    assert (small.live_bytes, small.peak_bytes) == (0, 800)
    assert small.empty(250, np.int32).nbytes == 1000


REJECTED: list[Callable[[Any], object]] = [
    np.asarray,
    np.sum,
    bool,
    float,
    int,
    complex,
    operator.index,
    list,
    iter,
    lambda array: 3 in array,
    lambda array: array + 1,
    lambda array: 1 - array,
    lambda array: array * np.ones(1),
    lambda array: np.ones(1) * array,
    lambda array: np.ones(1) == array,
    lambda array: array == array,
    lambda array: array < 2,
    lambda array: -array,
    lambda array: np.add(array, 1),
    lambda array: array[[0]],
    lambda array: array[True],
    lambda array: array.fill([1]),
    lambda array: array.fill(array[0]),
    lambda array: operator.setitem(array, 0, np.ones(1)),
    lambda array: operator.setitem(array, slice(0, 1), [1]),
    lambda array: range(array),
]


@pytest.mark.parametrize("use", REJECTED)
def test_rejected_operations(memory: EmulatedMemory, use: Callable[[Any], object]) -> None:
    array = memory.zeros(1, np.int32)
    with pytest.raises(TypeError):
        use(array)
    assert memory.readbacks == 0


def test_the_message_names_the_remedy(memory: EmulatedMemory) -> None:
    with pytest.raises(TypeError, match=r"implicit conversion to a NumPy array is not allowed: use \.get\(\)"):
        np.asarray(memory.zeros(1, np.int32))


def test_mismatched_shapes_types_and_indices(memory: EmulatedMemory) -> None:
    array = memory.zeros(4, np.int32)
    for host in (np.zeros(3, np.int32), np.zeros(4, np.int64), np.zeros((2, 2), np.int32)):
        with pytest.raises(ValueError, match="does not fit"):
            array.set(host)
    with pytest.raises(IndexError):
        array[4]
    with pytest.raises(IndexError):
        array[-5]
    with pytest.raises(IndexError):
        array[0][0]
    with pytest.raises(NotImplementedError):
        array[::2]
    with pytest.raises(ValueError, match="not a multiple"):
        memory.zeros(3, np.int32).view(np.int64)
    with pytest.raises(ValueError, match="negative"):
        memory.empty(-1, np.int32)
    with pytest.raises(ValueError, match="dimensions"):
        memory.empty((2, 2), np.int32)
    with pytest.raises(ValueError, match="dimensions"):
        memory.asarray(np.zeros((2, 2)))
    with pytest.raises(TypeError, match="device memory"):
        memory.empty(1, object)
    with pytest.raises(TypeError, match="not converted"):
        memory.asarray(array, np.int64)
    with pytest.raises(TypeError, match="unsized"):
        len(array[0])

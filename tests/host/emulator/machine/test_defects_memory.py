"""Tests of kernels with memory defects, which must fail with a precise message, and of correct counterparts."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from numba import cuda, types

from gpu_pregel.errors import EmulationError
from tests.host.emulator.launcher import SEEDS, fault_of, launch, line_of, memory, on_device


# --- Bounds, alignment and uninitialised memory.
def read_next(values: Any, out: Any) -> None:
    i = cuda.grid(1)
    out[i] = values[i + 1]  # fault


def test_read_past_the_end_of_an_array() -> None:
    message = fault_of(read_next, on_device(np.arange(32)), memory.empty(32, np.int64))
    assert "thread 31: reads values[32], past the end of its 32 elements" in message
    out = memory.empty(32, np.int64)
    launch(read_next, on_device(np.arange(33)), out)
    assert out.get().tolist() == list(range(1, 33))


def write_past(out: Any, shift: Any) -> None:
    out[np.uint64(cuda.grid(1) + shift)] = 1  # fault


@pytest.mark.parametrize("shift, what", [(8, r"writes out\[3\d\], past the end of its 32 elements"), (-1, "writes")])
def test_write_outside_an_array(shift: int, what: str) -> None:
    assert re.search(what, fault_of(write_past, memory.empty(32, np.int32), shift))
    out = memory.empty(32, np.int32)
    launch(write_past, out, 8, block=24) if shift > 0 else launch(write_past, out, 0)


def add_past(out: Any) -> None:
    cuda.atomic.add(out, cuda.grid(1), 1)  # fault


def test_atomic_past_the_end_of_an_array() -> None:
    message = fault_of(add_past, on_device(np.zeros(31, np.int32)))
    assert "thread 31: atomically updates out[31], past the end of its 31 elements" in message


def between_arrays(values: Any, out: Any) -> None:
    i = cuda.grid(1)
    out[i] = values[i * 1000]  # fault


def test_read_far_outside_an_array() -> None:
    message = fault_of(between_arrays, on_device(np.arange(10)), memory.empty(32, np.int64))
    assert "reads" in message


def read_all(values: Any, out: Any) -> None:
    i = cuda.grid(1)
    out[i] = values[i]  # fault


def test_misaligned_view() -> None:
    whole = memory.asarray(np.zeros(129, np.uint8))
    message = fault_of(read_all, whole[1:].view(np.int32), memory.empty(32, np.int32))
    assert "which is not a multiple of 4" in message
    launch(read_all, whole[:128].view(np.int32), memory.empty(32, np.int32))


def test_unwritten_memory() -> None:
    values = memory.empty(32, np.int32)
    values[:20].fill(1)
    message = fault_of(read_all, values, memory.empty(32, np.int32))
    assert re.search(r"reads values\[(2\d|3[01])\] before a write to it is visible", message)
    values[20:].fill(2)
    launch(read_all, values, memory.empty(32, np.int32))


def shared_unwritten(out: Any, count: Any) -> None:
    shared = cuda.shared.array(64, types.int32)
    t = cuda.threadIdx.x
    if t < count:
        shared[t] = t
    cuda.syncthreads()
    out[t] = shared[63 - t]  # fault


def test_unwritten_shared_memory() -> None:
    assert "before a write to it is visible" in fault_of(shared_unwritten, memory.empty(64, np.int32), 60, block=64)
    launch(shared_unwritten, memory.empty(64, np.int32), 64, block=64)


def beyond_shared(out: Any) -> None:
    shared = cuda.shared.array(64, types.int32)
    t = cuda.threadIdx.x
    shared[t + 1] = t  # fault
    cuda.syncthreads()
    out[t] = shared[t + 1]


def test_write_past_the_end_of_shared_memory() -> None:
    assert "past the end of its 256 bytes" in fault_of(beyond_shared, memory.empty(64, np.int32), block=64)
    launch(beyond_shared, memory.empty(63, np.int32), block=63)


# --- Ordering.
def count_without_atomics(out: Any) -> None:
    out[0] = out[0] + 1  # fault


def test_all_threads_increment_one_element() -> None:
    message = fault_of(count_without_atomics, on_device([0]), grid=2)
    line = line_of(count_without_atomics)
    assert re.search(
        rf"data race: (reads|writes) out\[0\], which .*thread \d+ (reads|writes) at test_defects_memory.py line {line}",
        message,
    )


def count_with_atomics(out: Any) -> None:
    cuda.atomic.add(out, 0, 1)


@pytest.mark.parametrize("seed", SEEDS)
def test_all_threads_increment_atomically(seed: int) -> None:
    out = on_device([0])
    launch(count_with_atomics, out, grid=3, seed=seed)
    assert out.get().tolist() == [96]


def reverse(values: Any, out: Any, barrier: Any) -> None:
    shared = cuda.shared.array(64, types.int32)
    t = cuda.threadIdx.x
    shared[t] = values[t]  # write
    if barrier:
        cuda.syncthreads()
    out[t] = shared[63 - t]  # read


@pytest.mark.parametrize("seed", SEEDS)
def test_missing_barrier_in_shared_memory(seed: int) -> None:
    values, out = on_device(np.arange(64, dtype=np.int32)), memory.empty(64, np.int32)
    message = fault_of(reverse, values, out, False, marks=("# read", "# write"), block=64)
    assert "shared memory" in message
    launch(reverse, values, out, True, block=64, seed=seed)
    assert out.get().tolist() == list(range(63, -1, -1))


def neighbour(values: Any, out: Any, together: Any) -> None:
    shared = cuda.shared.array(32, types.int32)
    t = cuda.threadIdx.x
    shared[t] = values[t]  # write
    if together:
        cuda.syncwarp()
    out[t] = shared[t ^ 1]  # read


@pytest.mark.parametrize("seed", SEEDS)
def test_missing_syncwarp(seed: int) -> None:
    values, out = on_device(np.arange(32, dtype=np.int32)), memory.empty(32, np.int32)
    fault_of(neighbour, values, out, False, marks=("# read", "# write"))
    launch(neighbour, values, out, True, seed=seed)
    assert out.get().tolist() == [t ^ 1 for t in range(32)]


def last_block_sums(values: Any, done: Any, tally: Any, out: Any, fence: Any) -> None:
    b = cuda.blockIdx.x
    if cuda.threadIdx.x == 0:
        values[b] = b + 1
        if fence:
            cuda.threadfence()
        is_last = cuda.atomic.add(done, 0, 1) == cuda.gridDim.x - 1
        if fence:
            cuda.threadfence()
        if is_last:
            total = 0
            for k in range(cuda.gridDim.x):
                total += values[k]  # fault
            out[0] = total
        for _ in range(4):
            cuda.atomic.add(tally, 0, 1)


def test_missing_fences_between_data_and_flag() -> None:
    """Without fences, some orders of threads and stores expose stale or uninitialised data."""
    silent, message = 0, ""
    for seed in range(40):
        out = memory.empty(1, np.int64)
        arguments = (memory.empty(8, np.int64), on_device([0]), on_device([0]), out)
        try:
            launch(last_block_sums, *arguments, False, grid=8, racy=("values",), seed=seed)
        except EmulationError as error:
            message = str(error)
        else:
            silent += out.get()[0] != 36
    line = line_of(last_block_sums)
    expected = (
        rf"kernel last_block_sums, \S+ line {line}, block \d, thread 0: reads values\[\d\] before a write to it is"
    )
    assert re.match(expected, message)
    # Every premature read is reported: no run ends with a wrong sum.
    assert not silent


@pytest.mark.parametrize("seed", range(10))
def test_fences_between_data_and_flag(seed: int) -> None:
    out = memory.empty(1, np.int64)
    arguments = (memory.empty(8, np.int64), on_device([0]), on_device([0]), out)
    launch(last_block_sums, *arguments, True, grid=8, seed=seed)
    assert out.get().tolist() == [36]


def store_against_atomic(out: Any) -> None:
    t = cuda.grid(1)
    if t == 7:
        out[0] = 5  # store
    else:
        cuda.atomic.max(out, 0, t)  # atomic


def test_plain_store_against_atomics() -> None:
    message = fault_of(store_against_atomic, on_device([0]), marks=("# store", "# atomic"))
    verb = "(writes|atomically updates)"
    assert re.search(rf"data race: {verb} out\[0\], which .*thread \d+ {verb}", message)


def exchange_against_atomic(out: Any) -> None:
    t = cuda.grid(1)
    if t == 7:
        cuda.atomic.exch(out, 0, 5)
    else:
        cuda.atomic.max(out, 0, t)


@pytest.mark.parametrize("seed", SEEDS)
def test_exchange_against_atomics(seed: int) -> None:
    out = on_device([0])
    launch(exchange_against_atomic, out, seed=seed)
    assert 5 <= out.get()[0] <= 31


def overlapping(values: Any) -> None:
    i = cuda.grid(1)
    values[i] = values[i + 32] + 1  # fault


def test_blocks_that_read_what_other_blocks_write() -> None:
    fault_of(overlapping, on_device(np.zeros(96, np.int64)), grid=2)
    launch(overlapping, on_device(np.zeros(64, np.int64)), grid=1)


@cuda.jit(device=True, lineinfo=True)  # type: ignore[untyped-decorator]
def helper_that_writes(values: Any, i: Any) -> None:
    values[i] = 1  # helper's fault


@cuda.jit(device=True, lineinfo=True)  # type: ignore[untyped-decorator]
def helper_of_helper(values: Any, i: Any) -> None:
    helper_that_writes(values, i + 1)


@cuda.jit(device=True)  # type: ignore[untyped-decorator]
def helper_without_lines(values: Any, i: Any) -> None:
    values[i] = 1


def by_helpers(values: Any) -> None:
    helper_of_helper(values, cuda.grid(1))


def by_helper_without_lines(values: Any) -> None:
    helper_without_lines(values, cuda.grid(1) + 1)  # fault


def test_the_innermost_line_is_named() -> None:
    with pytest.raises(EmulationError) as raised:
        launch(by_helpers, memory.empty(32, np.int32))
    line = line_of(helper_that_writes.py_func, "# helper's fault")
    assert str(raised.value).startswith(f"kernel by_helpers, test_defects_memory.py line {line}, block 0, thread 31: ")
    fault_of(by_helper_without_lines, memory.empty(32, np.int32))

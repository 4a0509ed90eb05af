"""Tests of race detection: which accesses conflict, and which operations order them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gpu_pregel.errors import EmulationError
from gpu_pregel.host.emulator.machine import layout as at
from gpu_pregel.host.emulator.machine.arrays import EmulatedMemory
from tests.host.emulator.machine.ir_kernels import Code, LoadedKernel, expect_fault, first_only, launch

FULL = 0xFFFFFFFF


@pytest.fixture
def memory() -> EmulatedMemory:
    return EmulatedMemory()


def test_unordered_updates_of_one_element(memory: EmulatedMemory) -> None:
    code = Code()
    code.store(code.argument(0), code.add(code.load(code.argument(0)), 1))
    for seed in range(3):
        with expect_fault("data race", "a[0]", "kernel.py line 1", "which", "thread ", "declare a racy"):
            launch(code, memory.zeros(1, np.int32), grid=2, seed=seed)
        launch(code, memory.zeros(1, np.int32), grid=2, seed=seed, racy=(0,))
        launch(code, memory.zeros(1, np.int32), block=1, seed=seed)


def test_plain_reads_of_a_relaxed_array_race_with_plain_writes_only(memory: EmulatedMemory) -> None:
    atomic, plain = Code(), Code()
    for code in (atomic, plain):
        code.load(code.argument(0))
    atomic.atomic(at.ADD, atomic.argument(0), 1)
    plain.store(plain.argument(0), 1)
    for seed in range(3):
        launch(atomic, memory.zeros(1, np.int32), grid=2, seed=seed, relaxed=(0,))
        with expect_fault("data race", "a[0]", "use atomics or a barrier"):
            launch(atomic, memory.zeros(1, np.int32), grid=2, seed=seed)
        with expect_fault("data race", "a[0]", "write it by the functions of gp.atomics"):
            launch(plain, memory.zeros(1, np.int32), grid=2, seed=seed, relaxed=(0,))


def test_a_race_names_both_threads_and_lines(memory: EmulatedMemory) -> None:
    code = Code()
    with code.when(code.compare("eq", code.everyone(), 70)):
        code.store(code.argument(0), 5)
    with code.when(code.compare("eq", code.everyone(), 3)):
        code.load(code.argument(0))
    for seed in range(4):
        with pytest.raises(EmulationError) as caught:
            launch(code, memory.zeros(1, np.int32), grid=3, seed=seed)
        assert str(caught.value).split(" and the two")[0] in (
            "kernel trial, kernel.py line 10, block 2, thread 6: data race: writes a[0], which block 0, thread 3 reads "
            "at kernel.py line 11,",
            "kernel trial, kernel.py line 11, block 0, thread 3: data race: reads a[0], which block 2, thread 6 writes "
            "at kernel.py line 10,",
        )


def test_an_atomic_and_a_plain_store(memory: EmulatedMemory) -> None:
    code = Code()
    with code.when(code.compare("eq", code.thread(), 1)):
        code.store(code.argument(0), 5)
    with code.when(first_only(code)):
        code.atomic(at.ADD, code.argument(0), 1)
    with expect_fault("data race", "a[0]"):
        launch(code, memory.zeros(1, np.int32))


def _halves(code: Code, condition: str, first: int) -> str:
    """Return the mask ``first`` where the condition holds, and its complement elsewhere."""
    return code.do(f"select i1 {condition}, i64 {first}, i64 {FULL - first}")


def _neighbours(order: Callable[[Code], object]) -> Code:
    """Each thread writes its element and, after ``order``, reads that of its neighbour in the same half of the warp."""
    code = Code()
    me = code.thread()
    code.store(code.element(code.argument(0), me), me)
    order(code)
    seen = code.load(code.element(code.argument(0), code.binary("xor", me, 1)))
    code.store(code.element(code.argument(1), me), seen)
    return code


@pytest.mark.parametrize(
    "order",
    [
        lambda code: code.barrier(),
        lambda code: code.sync(at.WARP_SYNC, FULL),
        lambda code: code.sync(at.WARP_SYNC, _halves(code, code.compare("ult", code.register(at.LANE), 16), 0xFFFF)),
    ],
)
def test_operations_that_order_accesses(memory: EmulatedMemory, order: Callable[[Code], object]) -> None:
    kernel = LoadedKernel(_neighbours(order))
    for seed in range(4):
        b = memory.empty(64, np.int32)
        launch(kernel, memory.zeros(64, np.int32), b, block=64, seed=seed)
        np.testing.assert_array_equal(b.get(), np.arange(64) ^ 1)


@pytest.mark.parametrize(
    "order",
    [
        lambda code: None,
        lambda code: code.fence(),
        lambda code: code.sync(
            at.WARP_SYNC, _halves(code, code.compare("eq", code.binary("and", code.thread(), 1), 0), 0x55555555)
        ),
    ],
)
def test_operations_that_do_not_order_accesses(memory: EmulatedMemory, order: Callable[[Code], object]) -> None:
    kernel = LoadedKernel(_neighbours(order))
    for seed in range(4):
        with expect_fault("data race"):
            launch(kernel, memory.zeros(64, np.int32), memory.empty(64, np.int32), block=64, seed=seed)


def test_ordering_is_transitive(memory: EmulatedMemory) -> None:
    """Lane 0 synchronises with lane 1, then lane 1 with lane 2, which may then read what lane 0 wrote."""

    def relay(second: int) -> Code:
        code = Code()
        lane = code.thread()
        with code.when(first_only(code)):
            code.store(code.argument(0), 1)
        with code.when(code.compare("ult", lane, 2)):
            code.sync(at.WARP_SYNC, 0b11)
        inside = code.binary("and", code.binary("lshr", second, lane), 1)
        with code.when(code.compare("ne", inside, 0)):
            code.sync(at.WARP_SYNC, second)
        with code.when(code.compare("eq", lane, 2)):
            code.load(code.argument(0))
        return code

    for seed in range(4):
        launch(relay(0b110), memory.zeros(1, np.int32), seed=seed)
        with expect_fault("data race"):
            launch(relay(0b1100), memory.zeros(1, np.int32), seed=seed)


@pytest.mark.parametrize("seed", range(8))
def test_warps_are_not_ordered_by_warp_operations(memory: EmulatedMemory, seed: int) -> None:
    code = Code()
    with code.when(code.compare("eq", code.thread(), 32)):
        code.store(code.argument(0), 1)
    code.sync(at.WARP_SYNC, FULL)
    with code.when(first_only(code)):
        code.load(code.argument(0))
    with expect_fault("data race"):
        launch(code, memory.zeros(1, np.int32), block=64, seed=seed)


@pytest.mark.parametrize("seed", range(8))
def test_a_write_after_reads_by_two_threads(memory: EmulatedMemory, seed: int) -> None:
    code = Code()
    code.load(code.argument(0))
    with code.when(code.compare("eq", code.block(), 0)):
        code.store(code.argument(0), 1)
    with expect_fault("data race", "block 0", "block 1"):
        launch(code, memory.zeros(1, np.int32), grid=2, block=1, seed=seed)


def test_blocks_are_not_ordered_by_block_barriers(memory: EmulatedMemory) -> None:
    code = Code()
    code.store(code.element(code.argument(0), code.everyone()), 1)
    code.barrier()
    code.load(code.element(code.argument(0), code.binary("xor", code.everyone(), 32)))
    with expect_fault("data race", "block 0", "block 1"):
        launch(code, memory.zeros(64, np.int32), grid=2)


def test_a_missing_barrier_in_shared_memory(memory: EmulatedMemory) -> None:
    code = Code()
    code.store(code.element(code.shared(), code.thread()), 1)
    code.barrier()
    code.load(code.element(code.shared(), code.binary("xor", code.thread(), 32)))
    code.store(code.element(code.shared(), code.thread()), 2)
    with expect_fault("data race", "shared memory[", "put a barrier between them"):
        launch(code, grid=4, block=64, shared_bytes=256, shared_granule=4)


def test_neighbouring_bytes_do_not_race(memory: EmulatedMemory) -> None:
    code = Code()
    code.store(code.element(code.argument(0), code.thread(), 1), 1, 1)
    code.store(code.shared(code.thread()), 1, 1)
    launch(code, memory.empty(64, np.uint8), block=64, shared_bytes=64)


def test_launches_are_ordered(memory: EmulatedMemory) -> None:
    write, read = Code(), Code()
    write.store(write.element(write.argument(0), write.everyone()), 1)
    read.load(read.element(read.argument(0), read.binary("sub", 63, read.everyone())))
    a = memory.empty(64, np.int32)
    for _ in range(3):
        launch(write, a, grid=2)
        launch(read, a, grid=2)


def test_overlapping_arguments(memory: EmulatedMemory) -> None:
    code = Code()
    code.load(code.element(code.argument(0), code.binary("xor", code.thread(), 1)))
    code.store(code.element(code.argument(1), code.thread()), 1)
    a = memory.zeros(32, np.int32)
    with expect_fault("data race", "a/b["):
        launch(code, a, a)
    launch(code, a, a, racy=(1,))

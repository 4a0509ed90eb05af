"""Tests of the faults that the emulated machine detects, and of their messages."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_pregel.errors import EmulationError
from gpu_pregel.host.emulator.machine import layout as at
from gpu_pregel.host.emulator.machine.arrays import EmulatedMemory
from gpu_pregel.host.emulator.machine.regions import Region
from tests.host.emulator.machine.ir_kernels import Code, expect_fault, first_only, launch

FULL = 0xFFFFFFFF


@pytest.fixture
def memory() -> EmulatedMemory:
    return EmulatedMemory()


# --- Memory.
def test_access_outside_an_array(memory: EmulatedMemory) -> None:
    a, b = memory.zeros(1024, np.int32), memory.zeros(8, np.int64)
    for index, text in (
        (1024, "reads a[1024], past the end of its 1024 elements"),
        (-1, "reads a[-1], before its first element"),
    ):
        code = Code()
        with code.when(code.compare("eq", code.everyone(), 3 * 32 + 17)):
            code.load(code.element(code.argument(0), index))
        with expect_fault("kernel.py line 10", "block 3, thread 17", text):
            launch(code, a, b, grid=5)


def test_access_past_the_end_of_a_slice(memory: EmulatedMemory) -> None:
    code = Code()
    code.store(code.element(code.argument(0), code.thread()), 1)
    with expect_fault("writes a[16], past the end of its 16 elements"):
        launch(code, memory.zeros(64, np.int32)[0:16], block=17)


def test_access_partly_past_the_end_of_an_array(memory: EmulatedMemory) -> None:
    code = Code()
    code.load(code.element(code.argument(0), 9), 8)
    with expect_fault("reads a[9], past the end of its 10 elements"):
        launch(code, memory.zeros(10, np.int32), block=1)


def test_access_to_an_array_that_was_not_passed(memory: EmulatedMemory) -> None:
    other = memory.zeros(8, np.int32)
    code = Code()
    code.atomic(at.ADD, code.argument(1), 1)
    with expect_fault("atomically updates", "a"):
        launch(code, memory.zeros(1, np.int32), block=1, numbers=[other.address])


def test_access_far_from_all_arrays(memory: EmulatedMemory) -> None:
    code = Code()
    code.load(8)
    with expect_fault("reads 4 bytes at address 0x8, outside every array of this launch", "a["):
        launch(code, memory.zeros(1, np.int32), block=1)
    with expect_fault("the launch has no arrays"):
        launch(code, block=1)


def test_access_past_the_end_of_shared_memory(memory: EmulatedMemory) -> None:
    code = Code()
    code.store(code.shared(code.binary("mul", code.thread(), 4)), 0)
    with expect_fault("thread 16", "writes shared memory[64], past the end of its 64 bytes"):
        launch(code, memory.zeros(1, np.int32), grid=3, block=17, shared_bytes=64)


def test_misaligned_access(memory: EmulatedMemory) -> None:
    code = Code()
    code.load(code.add(code.argument(0), 2))
    with expect_fault("reads a[0], 4 bytes at address 0x", "not a multiple of 4"):
        launch(code, memory.zeros(4, np.int32), block=1)


def test_uninitialised_memory(memory: EmulatedMemory) -> None:
    a = memory.empty(8, np.int32)
    a[0:5].fill(0)
    for atomic in (False, True):
        code = Code()
        place = code.element(code.argument(0), code.thread())
        _ = code.atomic(at.ADD, place, 1) if atomic else code.load(place)
        launch(code, a, block=5)
        with expect_fault("thread 5", "a[5] before a write to it is visible"):
            launch(code, a, block=6)


@pytest.mark.parametrize("seed", range(6))
def test_shared_memory_uninitialised_in_one_block(memory: EmulatedMemory, seed: int) -> None:
    code = Code()
    place = code.element(code.shared(), code.thread())
    with code.when(code.compare("ne", code.block(), 3)):
        code.store(place, 1)
    code.load(place)
    with expect_fault("block 3", "reads shared memory["):
        launch(code, grid=6, shared_bytes=128, seed=seed)


def test_constants_are_read_only(memory: EmulatedMemory) -> None:
    values = np.arange(4, dtype=np.int64)
    constant = Region("table", values.ctypes.data, values.nbytes, 8)
    code = Code()
    code.store(code.element(code.argument(0), code.thread(), 8), code.load(code.argument(1), 8), 8)
    a = memory.empty(32, np.int64)
    launch(code, a, numbers=[int(values.ctypes.data) + 24], regions=[constant])
    assert a.get().tolist() == [3] * 32
    code.store(code.argument(1), 0, 8)
    with expect_fault("line 12", "writes table[3], which is read-only"):
        launch(code, a, numbers=[int(values.ctypes.data) + 24], regions=[constant])


def test_too_much_local_memory(memory: EmulatedMemory) -> None:
    code = Code()
    local = code.do("alloca i64, i64 9000")
    with code.repeat(8192) as place:
        pointer = code.do(f"getelementptr i64, ptr {local}, i64 {place}")
        code.lines.append(f"store volatile i64 1, ptr {pointer}")
    code.sync(at.WARP_SYNC, 1)
    with expect_fault("needs more than 65536 bytes of local memory, the limit per thread"):
        launch(code, block=1)


def test_local_memory_is_private(memory: EmulatedMemory) -> None:
    code = Code()
    local = code.do(f"ptrtoint ptr {code.do('alloca i64')} to i64")
    code.store(local, code.thread(), 8)
    code.barrier()
    code.store(code.element(code.argument(0), code.thread(), 8), code.load(local, 8), 8)
    a = memory.empty(64, np.int64)
    launch(code, a, block=64)
    np.testing.assert_array_equal(a.get(), np.arange(64))


# --- Synchronisation.
def test_a_barrier_in_divergent_branches(memory: EmulatedMemory) -> None:
    code = Code()
    odd = code.binary("and", code.thread(), 1)
    with code.when(code.compare("ne", odd, 0)):
        code.barrier()
    with code.when(code.compare("eq", odd, 0)):
        code.barrier()
    with expect_fault("reaches this barrier, but thread", "kernel.py line 1"):
        launch(code, block=64)


@pytest.mark.parametrize("seed", range(4))
def test_a_barrier_that_some_threads_never_reach(memory: EmulatedMemory, seed: int) -> None:
    code = Code()
    with code.when(code.compare("ult", code.thread(), 40)):
        code.barrier()
    with expect_fault("kernel.py line 10", "waits at a barrier that thread", "has exited"):
        launch(code, block=64, seed=seed)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", [at.BARRIER, at.WARP_SYNC, at.GRID_BARRIER])
def test_a_thread_waits_for_a_thread_that_exits(memory: EmulatedMemory, kind: int, seed: int) -> None:
    """The fault is detected whichever thread is first."""
    code = Code()
    with code.when(code.compare("eq", code.everyone(), 0)):
        code.sync(kind, 0b11)
    blocks = 2 if kind == at.GRID_BARRIER else 1
    with expect_fault("kernel.py line 10, block 0, thread 0: waits", "has exited"):
        launch(code, grid=blocks, block=2 // blocks, cooperative=True, seed=seed)


@pytest.mark.parametrize("seed", range(4))
def test_a_ballot_with_lanes_that_have_exited(memory: EmulatedMemory, seed: int) -> None:
    code = Code()
    with code.when(code.compare("ult", code.thread(), 31)):
        code.sync(at.BALLOT, FULL, 1)
    with expect_fault("kernel.py line 10", "waits for lanes 0xffffffff, but thread 31 has exited"):
        launch(code, seed=seed)


def test_lanes_that_do_not_exist(memory: EmulatedMemory) -> None:
    code = Code()
    code.sync(at.BALLOT, FULL, 1)
    with expect_fault("but lane 8 does not exist: the block has too few threads"):
        launch(code, block=40)


def test_a_caller_outside_its_mask(memory: EmulatedMemory) -> None:
    code = Code()
    code.sync(at.WARP_SYNC, 0b10)
    with expect_fault("its own lane is not in the mask 0x00000002"):
        launch(code)


@pytest.mark.parametrize("seed", range(6))
def test_operations_with_different_masks_complete_in_turn(memory: EmulatedMemory, seed: int) -> None:
    """Lane 2 may synchronise with lane 3 first, while others wait for it with a mask that excludes lane 3."""
    code = Code()
    lane = code.thread()
    with code.when(code.compare("uge", lane, 2)):
        code.sync(at.WARP_SYNC, 0b1100)
    with code.when(code.compare("ult", lane, 3)):
        code.store(code.element(code.argument(0), lane), code.sync(at.BALLOT, 0b111, lane))
    a = memory.zeros(4, np.int32)
    launch(code, a, block=4, seed=seed)
    assert a.get().tolist() == [0b110] * 3 + [0]


def test_a_warp_operation_in_divergent_branches(memory: EmulatedMemory) -> None:
    code = Code()
    low = code.compare("ult", code.thread(), 16)
    high = code.compare("uge", code.thread(), 16)
    with code.when(low):
        code.sync(at.SHUFFLE_XOR, FULL, 1, 1, 31)
    with code.when(high):
        code.sync(at.SHUFFLE_XOR, FULL, 1, 1, 31)
    with expect_fault("waits for it at kernel.py line 1", "all lanes of a mask must reach the same operation"):
        launch(code)


def test_different_masks_at_one_site(memory: EmulatedMemory) -> None:
    code = Code()
    mask = code.do(f"select i1 {first_only(code)}, i64 3, i64 7")
    with code.when(code.compare("ult", code.thread(), 3)):
        code.sync(at.WARP_SYNC, mask)
    with expect_fault("or with a different mask"):
        launch(code)


@pytest.mark.parametrize("seed", range(6))
def test_a_warp_operation_and_a_barrier(memory: EmulatedMemory, seed: int) -> None:
    code = Code()
    low = code.compare("ult", code.thread(), 16)
    with code.when(low):
        code.sync(at.BALLOT, FULL, 1)
    code.barrier()
    with expect_fault("neither can continue", "kernel.py line 10", "kernel.py line 11"):
        launch(code, seed=seed)


def test_a_warp_operation_and_a_barrier_in_either_order(memory: EmulatedMemory) -> None:
    code = Code()
    with code.when(first_only(code)):
        code.sync(at.WARP_SYNC, 0b11)
    with code.when(code.compare("eq", code.thread(), 1)):
        code.barrier()
    messages = set()
    for seed in range(8):
        with pytest.raises(EmulationError) as caught:
            launch(code, block=2, seed=seed)
        messages.add(str(caught.value))
    assert messages == {
        "kernel trial, kernel.py line 10, block 0, thread 0: waits for lanes 0x00000003, but thread 1 waits at the "
        "barrier at kernel.py line 11: neither can continue",
        "kernel trial, kernel.py line 11, block 0, thread 1: reaches a barrier, but thread 0 waits for it in the warp "
        "operation at kernel.py line 10: neither can continue",
    }


def test_a_shuffle_from_outside_the_mask(memory: EmulatedMemory) -> None:
    code = Code()
    with code.when(code.compare("ult", code.thread(), 8)):
        code.sync(at.SHUFFLE_DOWN, 0xFF, 1, 4, 31)
    with expect_fault("thread 4", "shuffles from lane 8, which is not in the mask 0x000000ff"):
        launch(code)


def test_a_grid_barrier_in_divergent_branches(memory: EmulatedMemory) -> None:
    code = Code()
    for block in range(2):
        with code.when(code.compare("eq", code.block(), block)):
            code.sync(at.GRID_BARRIER)
    with expect_fault("reaches this barrier, but block"):
        launch(code, grid=2, cooperative=True)


@pytest.mark.parametrize("seed", range(4))
def test_a_grid_barrier_that_a_block_never_reaches(memory: EmulatedMemory, seed: int) -> None:
    code = Code()
    with code.when(code.compare("ne", code.block(), 2)):
        code.sync(at.GRID_BARRIER)
    with expect_fault("waits at a barrier that block 2, thread", "has exited"):
        launch(code, grid=3, cooperative=True, seed=seed)


def test_a_grid_barrier_without_a_cooperative_launch(memory: EmulatedMemory) -> None:
    code = Code()
    code.sync(at.GRID_BARRIER)
    with expect_fault("launch the kernel cooperatively"):
        launch(code, grid=3)


def test_deadlock(memory: EmulatedMemory) -> None:
    """Lane 0 waits for lane 1, lane 1 for lane 2, and lane 2 for lane 0."""
    code = Code()
    for lane in range(3):
        with code.when(code.compare("eq", code.thread(), lane)):
            code.sync(at.WARP_SYNC, 1 << lane | 1 << (lane + 1) % 3)
    with expect_fault(
        "deadlock, no thread can continue", "thread 0 at a warp operation at kernel.py line 10", "line 12"
    ):
        launch(code, block=3)


def test_a_spin_loop_that_does_not_terminate(memory: EmulatedMemory) -> None:
    code = Code()
    with code.when(code.compare("eq", code.block(), 0)), code.until() as condition:
        condition.append(code.compare("eq", code.atomic(at.ADD, code.argument(0), 0), 1))
    with expect_fault("does not terminate: block 0, thread", "is still running at kernel.py line 10"):
        launch(code, memory.zeros(1, np.int32), grid=2, step_limit=1000)


# --- All kinds of faults.
def test_invalid_hook_arguments(memory: EmulatedMemory) -> None:
    unknown_sync, unknown_atomic, small_atomic = Code(), Code(), Code()
    unknown_sync.sync(16)
    unknown_atomic.atomic(13, unknown_atomic.argument(0), 0)
    small_atomic.atomic(at.ADD, small_atomic.argument(0), 0, 2)
    a = memory.zeros(1, np.int32)
    with expect_fault("unknown kind of synchronisation (16)"):
        launch(unknown_sync, a)
    for code in (unknown_atomic, small_atomic):
        with expect_fault("atomic operation of unknown kind or size"):
            launch(code, a)


def test_multidimensional_threads_are_named_by_coordinates(memory: EmulatedMemory) -> None:
    code = Code()
    with code.when(code.compare("eq", code.register(8), 1)), code.when(code.compare("eq", code.register(1), 2)):
        code.load(code.argument(0))
    with expect_fault("block (0, 0, 1), thread ("):
        launch(code, memory.empty(1, np.int32), grid=(1, 1, 2), block=(4, 3, 1))


def test_launches_work_after_a_fault(memory: EmulatedMemory) -> None:
    bad, good = Code(), Code()
    bad.barrier()
    bad.load(bad.argument(0))
    good.barrier()
    good.store(good.element(good.argument(0), good.thread()), good.thread())
    a = memory.empty(64, np.int32)
    for seed in range(3):
        with expect_fault("a[0]"):
            launch(bad, memory.empty(1, np.int32), block=64, seed=seed)
        launch(good, a, block=64, seed=seed)
        np.testing.assert_array_equal(a.get(), np.arange(64))

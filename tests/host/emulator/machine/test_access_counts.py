"""Tests of the counters of accesses, bytes and sectors."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_pregel.host.emulator.machine import layout as at
from gpu_pregel.host.emulator.machine import runtime
from gpu_pregel.host.emulator.machine.arrays import EmulatedMemory
from tests.host.emulator.machine.ir_kernels import Code, LoadedKernel, launch

SEEDS = range(4)


@pytest.fixture
def memory() -> EmulatedMemory:
    return EmulatedMemory()


def _count_loads(
    memory: EmulatedMemory, stride: int, size: int = 4, grid: int = 1, block: int = 32
) -> runtime.AccessCounts:
    code = Code()
    code.load(code.element(code.argument(0), code.everyone(), stride), size)
    counts = runtime.AccessCounts(1)
    launch(code, memory.zeros(max(stride, size) * grid * block + 64, np.uint8), grid=grid, block=block, counts=counts)
    return counts


@pytest.mark.parametrize("stride, sectors", [(4, 4), (8, 8), (32, 32), (64, 32), (0, 1)])
def test_sectors_of_a_warp(memory: EmulatedMemory, stride: int, sectors: int) -> None:
    counts = _count_loads(memory, stride)
    assert (counts.executions[0], counts.bytes[0], counts.sectors[0]) == (32, 128, sectors)


def test_sectors_of_many_warps_and_of_wide_accesses(memory: EmulatedMemory) -> None:
    assert _count_loads(memory, 4, grid=9, block=128).sectors[0] == 9 * 4 * 4
    assert _count_loads(memory, 8, size=8, grid=2).sectors[0] == 2 * 8


def test_iterations_of_a_loop_are_counted_separately(memory: EmulatedMemory) -> None:
    code = Code()
    with code.repeat(10):
        code.load(code.argument(0))
    counts = runtime.AccessCounts(1)
    kernel = LoadedKernel(code)
    for seed in SEEDS:
        launch(kernel, memory.zeros(1, np.int32), grid=3, block=64, counts=counts, seed=seed)
    assert (counts.executions[0], counts.sectors[0], counts.launches) == (4 * 3 * 64 * 10, 4 * 3 * 2 * 10, 4)


def test_sectors_are_kept_when_a_table_is_full(memory: EmulatedMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "_SECTORS", 1 << 13)
    monkeypatch.setattr(runtime, "_MEMORY", runtime._ReusedMemory())
    code = Code()
    with code.repeat(50):
        code.barrier()
        with code.repeat(20):
            code.store(code.element(code.argument(0), code.thread(), 16), 0)
    for seed in SEEDS:
        counts = runtime.AccessCounts(2)
        launch(code, memory.zeros(64 * 4, np.int32), block=64, counts=counts, seed=seed)
        assert counts.sectors[1] == 2 * 16 * 1000
        assert np.count_nonzero(runtime._MEMORY.sectors[0]) == runtime._MEMORY._sectors_used


def test_counts_by_kind(memory: EmulatedMemory) -> None:
    code = Code()
    mine = code.element(code.argument(0), code.thread())
    code.store(mine, code.load(mine))
    code.atomic(at.ADD, code.argument(1), 1, 8)
    code.store(code.element(code.shared(), code.thread()), 1)
    code.sync(at.BALLOT, 0xFFFFFFFF, 1)
    code.sync(at.WARP_SYNC, 0xFFFFFFFF)
    code.barrier()
    counts = runtime.AccessCounts(7)
    launch(code, memory.zeros(32, np.int32), memory.zeros(1, np.int64), shared_bytes=128, counts=counts)
    assert counts.of_kind("load", code.sites) == (32, 128, 4)
    assert counts.of_kind("store", code.sites) == (32, 128, 4)
    assert counts.of_kind("atomic", code.sites) == (32, 256, 1)
    assert counts.shared == 32
    # Once for all lanes; a barrier of a block is none.
    assert counts.warp_operations == 2


def test_accesses_of_the_longest_lane_and_of_all_lanes(memory: EmulatedMemory) -> None:
    code = Code()
    index = code.everyone()
    mine = code.element(code.argument(0), index)
    with code.when(code.compare("ult", index, 70)):
        code.load(mine)
    with code.when(code.compare("ult", index, 3)), code.repeat(10):
        code.store(mine, 1)
    code.store(code.element(code.shared(), code.thread()), 1)
    counts = runtime.AccessCounts(3)
    kernel = LoadedKernel(code)
    for seed in SEEDS:
        launch(kernel, memory.zeros(128, np.int32), grid=2, block=64, shared_bytes=256, counts=counts, seed=seed)
    # Threads without an access to global memory are no lanes in use.
    assert (counts.longest_lane, counts.lanes, counts.lane_accesses) == (11, 4 * 70, 4 * (70 + 30))


def test_polling_is_left_out_of_the_accesses_of_lanes(memory: EmulatedMemory) -> None:
    code = Code()
    code.load(code.argument(0))
    with code.repeat(9):
        code.load(code.argument(0))
    counts = runtime.AccessCounts(2, polling=[1])
    launch(code, memory.zeros(1, np.int32), block=32, counts=counts)
    assert (counts.longest_lane, counts.lanes, counts.lane_accesses) == (1, 32, 32)
    assert counts.executions.tolist() == [32, 32 * 9]

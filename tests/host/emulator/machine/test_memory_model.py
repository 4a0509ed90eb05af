"""Tests of the memory model: what fences, atomics, barriers and their scopes order, and what goes wrong without them.

Each kernel is correct with its fences and barriers. Without one of them the machine must report a race and, on arrays
that are exempt from race detection, compute a wrong result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gpu_pregel.errors import EmulationError
from gpu_pregel.host.emulator.machine import layout as at
from gpu_pregel.host.emulator.machine.arrays import EmulatedMemory
from tests.host.emulator.machine.ir_kernels import Code, LoadedKernel, expect_fault, first_only, launch

SEEDS = range(3)
BLOCKS = 32
TOTAL = sum(range(1, 2 * BLOCKS + 1))
EXPECTED = [(k + 4 * 37) % 256 + 4 for k in range(256)]
"""Result of four supersteps in which each thread adds 1 to the number of the 37th thread after it."""


@pytest.fixture
def memory() -> EmulatedMemory:
    return EmulatedMemory()


def _fence(code: Code, level: int | None) -> None:
    if level is not None:
        code.fence(level)


def _last_block(before: int | None = 1, after: int | None = 1, *, barrier: bool = True) -> LoadedKernel:
    """Build a sum whose last block adds up two numbers of each block: a of the numbers, b the counter, c the sum."""
    code = Code()
    thread, first = code.thread(), first_only(code)
    with code.when(code.compare("ult", code.add(thread, -30), 2)):
        place = code.add(code.binary("mul", code.block(), 2), code.add(thread, -30))
        code.store(code.element(code.argument(0), place), code.add(place, 1))
    if barrier:
        code.barrier()
    with code.when(first):
        _fence(code, before)
        code.store(code.shared(), code.atomic(at.ADD, code.argument(1), 1))
        _fence(code, after)
    code.barrier()
    with code.when(code.compare("eq", code.load(code.shared()), BLOCKS - 1)):
        code.atomic(at.ADD, code.argument(2), code.load(code.element(code.argument(0), thread)))
    return LoadedKernel(code)


def _last_sum(memory: EmulatedMemory, kernel: LoadedKernel, seed: int, racy: tuple[int, ...] = ()) -> int:
    numbers, total = memory.zeros(2 * BLOCKS, np.int32), memory.zeros(1, np.int32)
    shape: dict[str, Any] = {
        "grid": BLOCKS,
        "block": 2 * BLOCKS,
        "shared_bytes": 4,
        "shared_granule": 4,
        "cooperative": True,
    }
    launch(kernel, numbers, memory.zeros(1, np.int32), total, seed=seed, racy=racy, **shape)
    return int(total.get()[0])


def test_the_last_block_reads_what_the_others_wrote(memory: EmulatedMemory) -> None:
    kernel = _last_block()
    assert [_last_sum(memory, kernel, seed) for seed in SEEDS] == [TOTAL] * 3


@pytest.mark.parametrize(
    "kernel",
    [
        lambda: _last_block(before=None),
        lambda: _last_block(after=None),
        lambda: _last_block(None, None),
        lambda: _last_block(before=0),
        lambda: _last_block(after=0),
        lambda: _last_block(barrier=False),
    ],
    ids=["no release", "no acquire", "no fence", "block releases", "block acquires", "no barrier"],
)
def test_the_last_block_of_a_kernel_with_a_fault(memory: EmulatedMemory, kernel: Callable[[], LoadedKernel]) -> None:
    faulty = kernel()
    for seed in SEEDS:
        with expect_fault("data race", "a["):
            _last_sum(memory, faulty, seed)
    assert any(_last_sum(memory, faulty, seed, racy=(0,)) != TOTAL for seed in SEEDS)


def _grid_barriers(before: bool = True, after: bool = True, *, arrival: bool = True, departure: bool = True) -> Code:
    """Build supersteps with a grid barrier of atomics: each thread reads another one's number of the last one.

    a and b have the numbers, alternately, and c counts the arrivals. Threads after the first wait at block barriers.
    """
    code = Code()
    me, rounds = code.everyone(), 4
    for superstep in range(rounds):
        old, new = (code.argument(one) for one in ((0, 1) if superstep % 2 == 0 else (1, 0)))
        seen = code.load(code.element(old, code.binary("urem", code.add(me, 37), code.argument(3))))
        code.store(code.element(new, me), code.add(seen, 1))
        if arrival:
            code.barrier()
        with code.when(first_only(code)):
            _fence(code, 1 if before else None)
            code.atomic(at.ADD, code.argument(2), 1)
            with code.until() as condition:
                count = code.atomic(at.ATOMIC_LOAD, code.argument(2), 0)
                condition.append(code.compare("uge", count, (superstep + 1) * 8))
            _fence(code, 1 if after else None)
        if departure or superstep == rounds - 1:
            code.barrier()
    return code


def _supersteps(memory: EmulatedMemory, kernel: LoadedKernel, seed: int, racy: tuple[int, ...] = ()) -> list[int]:
    numbers, other = memory.asarray(np.arange(256, dtype=np.int32)), memory.zeros(256, np.int32)
    arguments = (numbers, other, memory.zeros(1, np.int32))
    launch(kernel, *arguments, numbers=[256], grid=8, block=32, cooperative=True, seed=seed, racy=racy)
    found: list[int] = numbers.get().tolist()
    return found


def test_a_grid_barrier_of_atomics(memory: EmulatedMemory) -> None:
    kernel = LoadedKernel(_grid_barriers())
    for seed in SEEDS:
        assert _supersteps(memory, kernel, seed) == EXPECTED


@pytest.mark.parametrize(
    "code",
    [
        lambda: _grid_barriers(before=False),
        lambda: _grid_barriers(after=False),
        lambda: _grid_barriers(arrival=False),
        lambda: _grid_barriers(departure=False),
    ],
    ids=["no release", "no acquire", "no barrier before", "no barrier after"],
)
def test_a_grid_barrier_with_a_fault(memory: EmulatedMemory, code: Callable[[], Code]) -> None:
    kernel = LoadedKernel(code())
    for seed in SEEDS:
        with expect_fault("data race"):
            _supersteps(memory, kernel, seed)
    wrong = [_supersteps(memory, kernel, seed, (0, 1)) != EXPECTED for seed in SEEDS]
    assert any(wrong)


def _handover(release: Callable[[Code], object], acquire: Callable[[Code], str], *, sender: int, receiver: int) -> Code:
    """Thread ``sender`` writes a and releases it; ``receiver`` repeats ``acquire`` until it gives 1, and reads."""
    code = Code()
    me = code.everyone()
    with code.when(code.compare("eq", me, sender)):
        code.store(code.argument(0), 5)
        release(code)
    with code.when(code.compare("eq", me, receiver)):
        with code.until() as condition:
            condition.append(code.compare("eq", acquire(code), 1))
        code.fence()
        code.fence(0)
        code.store(code.argument(2), code.load(code.argument(0)))
    return code


def _flag(code: Code, scope: int = 0) -> str:
    return code.atomic(at.ATOMIC_LOAD | scope, code.argument(1), 0)


def _set(level: int, scope: int = 0) -> Callable[[Code], object]:
    """Return the code of a fence followed by an atomic store to b."""

    def emit(code: Code) -> None:
        code.fence(level)
        code.atomic(at.ATOMIC_STORE | scope, code.argument(1), 1)

    return emit


def _set_by_swap(code: Code) -> None:
    code.fence()
    code.swap(code.argument(1), 0, 1)


def _set_in_two_steps(code: Code) -> None:
    """The fence does not precede the store that is read."""
    code.atomic(at.ATOMIC_STORE, code.argument(1), 1)
    code.fence()


def _set_again(code: Code) -> None:
    """A store is no part of what the first one releases, but follows the same fence."""
    code.fence()
    code.atomic(at.ATOMIC_STORE, code.argument(1), 2)
    code.atomic(at.ATOMIC_STORE, code.argument(1), 1)


def _run_handover(memory: EmulatedMemory, code: Code, seed: int, grid: int) -> int:
    a, b, c = (memory.zeros(2, np.int32) for _ in range(3))
    launch(code, a, b, c, grid=grid, block=64, cooperative=True, seed=seed)
    return int(c.get()[0])


@pytest.mark.parametrize(
    "release, scope, other",
    [
        (_set(1), 0, 64),
        (_set(2), 0, 64),
        (_set_by_swap, 0, 64),
        (_set_again, 0, 64),
        (_set(1), 0, 32),
        (_set(0), 0, 32),
        (_set(0, at.IN_BLOCK), at.IN_BLOCK, 32),
        (_set(1, at.IN_BLOCK), at.IN_BLOCK, 1),
    ],
    ids=["device", "system", "swap", "again", "same block", "block fence", "block scope", "same warp"],
)
def test_a_fence_and_an_atomic_hand_over(
    memory: EmulatedMemory, release: Callable[[Code], object], scope: int, other: int
) -> None:
    code = _handover(release, lambda code: _flag(code, scope), sender=0, receiver=other)
    for seed in SEEDS:
        assert _run_handover(memory, code, seed, 2) == 5


@pytest.mark.parametrize(
    "release, scope, other",
    [
        (_set(0), 0, 64),
        (_set(1, at.IN_BLOCK), 0, 64),
        (_set(1), at.IN_BLOCK, 64),
        (_set_in_two_steps, 0, 64),
        (_set_in_two_steps, 0, 32),
        (lambda code: code.atomic(at.XCHG, code.argument(1), 1), 0, 32),
    ],
    ids=["block fence", "block store", "block load", "fence after", "fence after in the block", "no fence"],
)
def test_what_does_not_hand_over(
    memory: EmulatedMemory, release: Callable[[Code], object], scope: int, other: int
) -> None:
    code = _handover(release, lambda code: _flag(code, scope), sender=0, receiver=other)
    for seed in SEEDS:
        with expect_fault("data race"):
            _run_handover(memory, code, seed, 2)


def _relay(fenced: bool) -> Code:
    """Thread 0 hands over to thread 64, and that by another flag to thread 128, which reads what thread 0 wrote."""
    code = Code()
    me = code.everyone()
    with code.when(code.compare("eq", me, 0)):
        code.store(code.argument(0), 5)
        code.fence()
        code.atomic(at.ADD, code.argument(1), 1)
    for receiver, flag in ((64, code.argument(1)), (128, code.add(code.argument(1), 4))):
        with code.when(code.compare("eq", me, receiver)):
            with code.until() as condition:
                condition.append(code.compare("eq", code.atomic(at.ATOMIC_LOAD, flag, 0), 1))
            if fenced or receiver == 128:
                code.fence()
            if receiver == 64:
                code.atomic(at.ATOMIC_STORE, code.add(code.argument(1), 4), 1)
            else:
                code.store(code.argument(2), code.load(code.argument(0)))
    return code


def test_what_was_acquired_is_released_again(memory: EmulatedMemory) -> None:
    """Only if a fence has acquired it, although that need not be another fence than the one that releases it."""
    for seed in SEEDS:
        assert _run_handover(memory, _relay(True), seed, 3) == 5
        with expect_fault("data race", "a[0]"):
            _run_handover(memory, _relay(False), seed, 3)


def test_updates_continue_what_was_released_before(memory: EmulatedMemory) -> None:
    """Thread 64 counts without a fence; thread 128 reads that count, and what thread 0 released."""
    code = Code()
    me = code.everyone()
    with code.when(code.compare("eq", me, 0)):
        code.store(code.argument(0), 5)
        code.fence()
        code.atomic(at.ADD, code.argument(1), 1)
    with code.when(code.compare("eq", me, 64)):
        with code.until() as condition:
            condition.append(code.compare("eq", _flag(code), 1))
        code.atomic(at.ADD, code.argument(1), 1)
    with code.when(code.compare("eq", me, 128)):
        with code.until() as condition:
            condition.append(code.compare("eq", _flag(code), 2))
        code.fence()
        code.store(code.argument(2), code.load(code.argument(0)))
    for seed in SEEDS:
        assert _run_handover(memory, code, seed, 3) == 5


def _warp_publishes(synchronises: bool) -> Code:
    """All lanes of the first warp write; lane 0 publishes. Another block reads what lane 5 wrote."""
    code = Code()
    me = code.everyone()
    with code.when(code.compare("ult", me, 32)):
        code.store(code.element(code.argument(3), me), code.add(me, 7))
        if synchronises:
            code.sync(at.WARP_SYNC, 0xFFFFFFFF)
        with code.when(code.compare("eq", me, 0)):
            code.fence()
            code.atomic(at.ADD, code.argument(1), 1)
    with code.when(code.compare("eq", me, 64)):
        with code.until() as condition:
            condition.append(code.compare("eq", _flag(code), 1))
        code.fence()
        code.store(code.argument(2), code.load(code.add(code.argument(3), 20)))
    return code


def test_a_lane_publishes_what_its_warp_wrote_before_a_synchronisation(memory: EmulatedMemory) -> None:
    for seed in SEEDS:
        for synchronises in (True, False):
            a, b, c = (memory.zeros(1, np.int32) for _ in range(3))
            numbers = memory.zeros(32, np.int32)
            arguments = (LoadedKernel(_warp_publishes(synchronises)), a, b, c, numbers)
            if synchronises:
                launch(*arguments, grid=2, block=64, cooperative=True, seed=seed)
                assert c.get()[0] == 12
            else:
                with expect_fault("data race", "d[5]"):
                    launch(*arguments, grid=2, block=64, cooperative=True, seed=seed)


def test_a_barrier_between_a_fence_and_the_atomic_leaves_other_threads_out(memory: EmulatedMemory) -> None:
    """PTX orders what precedes the fence of the thread that executes the atomic, not of other threads."""
    code = Code()
    me = code.everyone()
    with code.when(code.compare("eq", me, 1)):
        code.store(code.argument(0), 5)
    with code.when(code.compare("ult", me, 64)):
        code.fence()
    code.barrier()
    with code.when(code.compare("eq", me, 0)):
        code.atomic(at.ADD, code.argument(1), 1)
    with code.when(code.compare("eq", me, 64)):
        with code.until() as condition:
            condition.append(code.compare("eq", _flag(code), 1))
        code.fence()
        code.store(code.argument(2), code.load(code.argument(0)))
    for seed in SEEDS:
        with expect_fault("data race", "a[0]"):
            _run_handover(memory, code, seed, 2)


def test_atomics_of_block_scope_race_with_other_blocks(memory: EmulatedMemory) -> None:
    code = Code()
    code.atomic(at.ADD | at.IN_BLOCK, code.argument(0), 1)
    for seed in SEEDS:
        launch(code, memory.zeros(1, np.int32), block=64, seed=seed)
        with expect_fault("data race", "atomically updates a[0]"):
            launch(code, memory.zeros(1, np.int32), grid=2, seed=seed)
    by_swap = Code()
    by_swap.swap(by_swap.argument(0), 1, 0, 4 | at.IN_BLOCK)
    with expect_fault("data race", "a[0]"):
        launch(by_swap, memory.zeros(1, np.int32), grid=2)


def test_many_releases_exhaust_no_memory(memory: EmulatedMemory) -> None:
    """What is lost when the tables are full is not reported as a race."""
    code = Code()
    me = code.everyone()
    code.fence()
    with code.repeat(400) as k:
        place = code.element(code.argument(0), code.add(code.binary("mul", me, 400), k))
        code.atomic(at.ADD, place, 1)
    code.load(code.argument(1))
    a = memory.zeros(64 * 400, np.int32)
    launch(code, a, memory.zeros(1, np.int32), grid=2)
    assert set(a.get().tolist()) == {1}


def test_a_wait_that_never_ends_is_reported(memory: EmulatedMemory) -> None:
    """The first block to run waits for one that never becomes resident."""
    code = Code()
    code.atomic(at.ADD, code.argument(0), 1)
    with code.until() as condition:
        condition.append(code.compare("eq", _flag_of(code), 64))
    with pytest.raises(EmulationError, match="does not terminate"):
        launch(code, memory.zeros(1, np.int32), grid=64, block=1, step_limit=100_000)


def _flag_of(code: Code) -> str:
    return code.atomic(at.ATOMIC_LOAD, code.argument(0), 0)

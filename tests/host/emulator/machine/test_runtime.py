"""Tests of the emulated machine: threads, barriers, warp operations, atomics, memory and scheduling."""

from __future__ import annotations

import signal
from typing import Any

import numpy as np
import pytest

from gpu_pregel.host.emulator.machine import layout as at
from gpu_pregel.host.emulator.machine.arrays import EmulatedMemory
from tests.host.emulator.machine.ir_kernels import Code, LoadedKernel, expect_fault, launch

FULL = 0xFFFFFFFF
SEEDS = range(4)


@pytest.fixture
def memory() -> EmulatedMemory:
    return EmulatedMemory()


@pytest.mark.parametrize("seed", SEEDS)
def test_every_thread_of_every_block_runs_once(memory: EmulatedMemory, seed: int) -> None:
    code = Code()
    code.atomic(at.ADD, code.element(code.argument(0), code.everyone()), 1)
    a = memory.zeros(7 * 96, np.int32)
    launch(code, a, grid=7, block=96, seed=seed)
    assert a.get().tolist() == [1] * (7 * 96)


def test_special_registers_of_three_dimensions(memory: EmulatedMemory) -> None:
    code = Code()
    tid, ntid, ctaid, nctaid = ([code.register(first + axis) for axis in range(3)] for first in (0, 3, 6, 9))

    def linear(places: list[str], sizes: list[str]) -> str:
        return code.add(
            places[0],
            code.binary("mul", sizes[0], code.add(places[1], code.binary("mul", sizes[1], places[2]))),
        )

    threads = code.binary("mul", ntid[0], code.binary("mul", ntid[1], ntid[2]))
    me = code.add(code.binary("mul", linear(ctaid, nctaid), threads), linear(tid, ntid))
    for place, register in enumerate((12, 13, 14, 15, 16, 17, 18, 19)):
        address = code.element(code.argument(0), code.add(code.binary("mul", me, 8), place))
        code.store(address, code.register(register))
    count = 2 * 3 * 2 * 40
    a = memory.empty(count * 8, np.uint32)
    launch(code, a, grid=(2, 3, 2), block=(4, 5, 2))
    lane = np.tile(np.arange(40) % 32, 12).astype(np.int64)
    own = 1 << lane
    expected = np.stack([lane, 0 * lane + 32, own, own, 2 * own - 1, own - 1, 2**32 - own, 2**32 - 2 * own], 1)
    np.testing.assert_array_equal(a.get().reshape(-1, 8), expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_shared_memory_across_a_barrier(memory: EmulatedMemory, seed: int) -> None:
    code = Code()
    me = code.thread()
    code.store(code.element(code.shared(), me), code.everyone())
    code.barrier()
    other = code.load(code.element(code.shared(), code.binary("sub", 99, me)))
    code.store(code.element(code.argument(0), code.everyone()), other)
    a = memory.empty(500, np.int32)
    launch(code, a, grid=5, block=100, shared_bytes=400, seed=seed)
    np.testing.assert_array_equal(a.get().reshape(5, 100), np.arange(500).reshape(5, 100)[:, ::-1])


@pytest.mark.parametrize(
    "kind, predicates, expected",
    [
        (at.BARRIER_POPC, lambda t: t < 17, 17),
        (at.BARRIER_AND, lambda t: t < 17, 0),
        (at.BARRIER_AND, lambda t: t >= 0, 1),
        (at.BARRIER_OR, lambda t: t == 63, 1),
        (at.BARRIER_OR, lambda t: t < 0, 0),
    ],
)
def test_barriers_that_vote(memory: EmulatedMemory, kind: int, predicates: Any, expected: int) -> None:
    code = Code()
    address = code.element(code.argument(0), code.thread())
    code.store(address, code.sync(kind, a=code.load(address)))
    a = memory.asarray(predicates(np.arange(64)).astype(np.int32))
    launch(code, a, block=64)
    assert set(a.get().tolist()) == {expected}


def _warp_results(memory: EmulatedMemory, kind: int, mask: int, values: Any, b: int = 0, c: int = 0) -> list[int]:
    """Return the results of the lanes in ``mask``; other lanes do not take part and have 0."""
    code = Code()
    lane = code.thread()
    inside = code.binary("and", code.binary("lshr", mask, lane), 1)
    with code.when(code.compare("ne", inside, 0)):
        result = code.sync(kind, mask, code.load(code.element(code.argument(0), lane)), b, c)
        code.store(code.element(code.argument(1), lane, 8), result, 8)
    results = memory.zeros(32, np.int64)
    launch(code, memory.asarray(np.asarray(values, np.uint32)), results, seed=mask & 7)
    got: list[int] = results.get().tolist()
    return got


@pytest.mark.parametrize("mask", [FULL, 0x0000FF01, 1])
def test_votes(memory: EmulatedMemory, mask: int) -> None:
    lanes = [lane for lane in range(32) if mask >> lane & 1]
    values = np.arange(32) % 3
    ballot = sum(1 << lane for lane in lanes if values[lane])
    for kind, expected in (
        (at.BALLOT, ballot),
        (at.VOTE_ALL, int(ballot == mask)),
        (at.VOTE_ANY, int(ballot != 0)),
        (at.VOTE_UNI, int(ballot in (0, mask))),
    ):
        assert [_warp_results(memory, kind, mask, values)[lane] for lane in lanes] == [expected] * len(lanes)


@pytest.mark.parametrize("mask", [FULL, 0xF0F0F0F0])
def test_matches(memory: EmulatedMemory, mask: int) -> None:
    values = np.arange(32) // 5
    lanes = [lane for lane in range(32) if mask >> lane & 1]
    alike = _warp_results(memory, at.MATCH_ANY, mask, values)
    for lane in lanes:
        assert alike[lane] == sum(1 << other for other in lanes if values[other] == values[lane])
    assert _warp_results(memory, at.MATCH_ALL, mask, values)[lanes[0]] == 0
    assert _warp_results(memory, at.MATCH_ALL, mask, values * 0)[lanes[0]] == mask | 1 << 32


def _expected_shuffle(kind: int, lane: int, b: int, width: int) -> tuple[int, int]:
    """Return the source lane and the predicate as CUDA defines them for groups of ``width`` lanes."""
    first = lane // width * width
    source = {
        at.SHUFFLE_INDEX: first + b % width,
        at.SHUFFLE_UP: lane - b,
        at.SHUFFLE_DOWN: lane + b,
        at.SHUFFLE_XOR: lane ^ b,
    }[kind]
    inside = first <= source < first + width or (kind == at.SHUFFLE_XOR and source < first)
    return (source, 1) if inside else (lane, 0)


@pytest.mark.parametrize("kind", [at.SHUFFLE_INDEX, at.SHUFFLE_UP, at.SHUFFLE_DOWN, at.SHUFFLE_XOR])
@pytest.mark.parametrize("width", [32, 8])
@pytest.mark.parametrize("b", [0, 1, 5, 16])
def test_shuffles(memory: EmulatedMemory, kind: int, width: int, b: int) -> None:
    packed = (32 - width) << 8 | (0 if kind == at.SHUFFLE_UP else 31)
    results = _warp_results(memory, kind, FULL, np.arange(32) + 100, b, packed)
    for lane, result in enumerate(results):
        source, predicate = _expected_shuffle(kind, lane, b, width)
        assert (result & FULL, result >> 32) == (source + 100, predicate)


@pytest.mark.parametrize("seed", SEEDS)
def test_warp_operations_on_parts_of_a_warp(memory: EmulatedMemory, seed: int) -> None:
    """Even and odd lanes diverge and reconverge."""
    code = Code()
    lane = code.thread()
    odd = code.binary("and", lane, 1)
    mask = code.do(f"select i1 {code.compare('ne', odd, 0)}, i64 {0xAAAAAAAA}, i64 {0x55555555}")
    with code.repeat(10):
        code.atomic(at.ADD, code.argument(0), code.sync(at.VOTE_ALL, mask, odd))
    code.sync(at.WARP_SYNC, FULL)
    code.store(code.element(code.argument(1), lane), code.load(code.argument(0)))
    a, b = memory.zeros(1, np.int32), memory.empty(32, np.int32)
    launch(code, a, b, seed=seed)
    assert b.get().tolist() == [160] * 32


OPERATIONS: list[tuple[int, Any]] = [
    (at.XCHG, lambda old, new: new),
    (at.ADD, lambda old, new: old + new),
    (at.SUB, lambda old, new: old - new),
    (at.AND, lambda old, new: old & new),
    (at.OR, lambda old, new: old | new),
    (at.XOR, lambda old, new: old ^ new),
    (at.MAX, max),
    (at.MIN, min),
]


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("operation, function", OPERATIONS)
def test_atomics(memory: EmulatedMemory, dtype: Any, operation: int, function: Any) -> None:
    for old, new in ((5, -7), (-9, 3), (12, 12)):
        code = Code()
        size = np.dtype(dtype).itemsize
        unsigned = new & (1 << 8 * size) - 1
        before = code.atomic(operation, code.argument(0), code.argument(2), size)
        code.store(code.argument(1), before, size)
        a, b = memory.full(1, old, dtype), memory.empty(1, dtype)
        launch(code, a, b, block=1, numbers=[unsigned if size == 4 else new])
        assert (a.get()[0], b.get()[0]) == (function(old, new), old)


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_unsigned_atomics(memory: EmulatedMemory, dtype: Any) -> None:
    large = int(np.iinfo(dtype).max) - 1
    for operation, expected in ((at.UMAX, large), (at.UMIN, 3)):
        code = Code()
        code.atomic(operation, code.argument(0), code.argument(1), np.dtype(dtype).itemsize)
        a = memory.full(1, large, dtype)
        launch(code, a, block=1, numbers=[3])
        assert a.get()[0] == expected


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_atomic_sums_of_floats(memory: EmulatedMemory, dtype: Any) -> None:
    code = Code()
    size = np.dtype(dtype).itemsize
    value = int(np.array([0.5], dtype).view(f"u{size}")[0])
    code.atomic(at.FADD, code.argument(0), value, size)
    a = memory.full(1, 1.25, dtype)
    launch(code, a, block=64, grid=3)
    assert a.get()[0] == 1.25 + 96


def test_compare_and_swap(memory: EmulatedMemory) -> None:
    code = Code()
    old = code.swap(code.argument(0), 7, code.add(code.everyone(), 100))
    code.store(code.element(code.argument(1), code.everyone()), old)
    a, b = memory.full(1, 7, np.int32), memory.empty(64, np.int32)
    launch(code, a, b, grid=2)
    won = np.flatnonzero(b.get() == 7)
    assert won.size == 1
    assert a.get()[0] == won[0] + 100


def test_a_grid_barrier_orders_all_blocks(memory: EmulatedMemory) -> None:
    code = Code()
    me = code.everyone()
    with code.repeat(3):
        code.store(code.element(code.argument(0), me), me)
        code.sync(at.GRID_BARRIER)
        other = code.load(code.element(code.argument(0), code.binary("sub", 319, me)))
        code.store(code.element(code.argument(1), me), other)
        code.sync(at.GRID_BARRIER)
    a, b = memory.empty(320, np.int32), memory.empty(320, np.int32)
    launch(code, a, b, grid=5, block=64, cooperative=True, grid_barrier=True)
    np.testing.assert_array_equal(b.get(), np.arange(320)[::-1])


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_loads_and_stores_of_all_sizes(memory: EmulatedMemory, size: int) -> None:
    code = Code()
    me = code.everyone()
    code.store(
        code.element(code.argument(1), me, size), code.load(code.element(code.argument(0), me, size), size), size
    )
    values = np.arange(64).astype(f"u{size}") * 3
    b = memory.empty(64, f"u{size}")
    launch(code, memory.asarray(values), b, grid=2)
    np.testing.assert_array_equal(b.get(), values)


def test_a_thread_sees_its_own_stores_of_other_sizes(memory: EmulatedMemory) -> None:
    code = Code()
    code.store(code.argument(0), 0x01020304)
    code.store(code.add(code.argument(0), 1), 0xFF, 1)
    code.store(code.argument(1), code.load(code.argument(0)))
    a, b = memory.empty(1, np.uint32), memory.empty(1, np.uint32)
    launch(code, a, b, block=1)
    assert b.get()[0] == 0x0102FF04


@pytest.mark.parametrize("seed", SEEDS)
def test_a_thread_sees_its_own_stores_and_atomics_in_order(memory: EmulatedMemory, seed: int) -> None:
    code = Code()
    places = [code.element(code.argument(0), code.add(code.binary("mul", code.everyone(), 6), k)) for k in range(6)]
    for number in (5, 7):
        for k, place in enumerate(places):
            code.store(place, number + k)
        for place in places:
            code.store(place, code.add(code.load(place), 10))
    for place in places:
        code.atomic(at.ADD, place, 100)
    a = memory.zeros(64 * 6, np.int32)
    launch(code, a, block=64, seed=seed)
    np.testing.assert_array_equal(a.get().reshape(64, 6), np.tile(np.arange(6) + 117, (64, 1)))


def _message_kernel(before: bool, after: bool) -> LoadedKernel:
    """Build pairs of blocks: one writes a number and sets a flag, the other waits for the flag and reads the number.

    There may be a fence ``before`` the flag is set, and another ``after`` it has been read.
    """
    code = Code()
    pair = code.element(code.argument(0), code.binary("lshr", code.block(), 1))
    flag = code.element(code.argument(1), code.binary("lshr", code.block(), 1))
    second = code.compare("ne", code.binary("and", code.block(), 1), 0)
    first = code.compare("eq", code.binary("and", code.block(), 1), 0)
    with code.when(first):
        code.store(pair, 77)
        if before:
            code.fence()
        code.atomic(at.XCHG, flag, 1)
    with code.when(second):
        with code.until() as condition:
            condition.append(code.compare("eq", code.atomic(at.ATOMIC_LOAD, flag, 0), 1))
        if after:
            code.fence()
        code.store(code.element(code.argument(2), code.binary("lshr", code.block(), 1)), code.load(pair))
    return LoadedKernel(code)


def _received_numbers(memory: EmulatedMemory, kernel: LoadedKernel, seed: int, racy: tuple[int, ...]) -> list[int]:
    numbers, flags, seen = memory.zeros(16, np.int32), memory.zeros(16, np.int32), memory.empty(16, np.int32)
    launch(kernel, numbers, flags, seen, grid=32, block=1, racy=racy, seed=seed, cooperative=True)
    result: list[int] = seen.get().tolist()
    return result


def test_messages_need_a_fence_on_both_sides(memory: EmulatedMemory) -> None:
    fenced = _message_kernel(before=True, after=True)
    assert all(_received_numbers(memory, fenced, seed, ()) == [77] * 16 for seed in SEEDS)
    for before, after in ((False, False), (True, False), (False, True)):
        kernel = _message_kernel(before, after)
        assert any(0 in _received_numbers(memory, kernel, seed, racy=(0,)) for seed in SEEDS)
        for seed in SEEDS:
            with expect_fault("data race", "a["):
                _received_numbers(memory, kernel, seed, ())


@pytest.mark.parametrize("seed", SEEDS)
def test_stores_of_a_waiting_thread_become_visible_eventually(memory: EmulatedMemory, seed: int) -> None:
    code = Code()
    with code.when(code.compare("eq", code.thread(), 0)):
        code.store(code.argument(0), 1)
    with code.when(code.compare("eq", code.thread(), 1)), code.until() as condition:
        condition.append(code.compare("eq", code.load(code.argument(0)), 1))
    code.sync(at.BALLOT, 0b11, 1)
    launch(code, memory.zeros(1, np.int32), block=2, racy=(0,), seed=seed, step_limit=100_000)


def test_the_order_depends_only_on_seed_and_launch(memory: EmulatedMemory) -> None:
    code = Code()
    ticket = code.atomic(at.ADD, code.argument(0), 1)
    code.store(code.element(code.argument(1), code.everyone()), ticket)
    kernel = LoadedKernel(code)

    def order(seed: int, number: int) -> list[int]:
        tickets = memory.empty(256, np.int32)
        launch(kernel, memory.zeros(1, np.int32), tickets, grid=4, block=64, seed=seed, launch=number)
        result: list[int] = tickets.get().tolist()
        return result

    first = order(3, 5)
    assert sorted(first) == list(range(256)) != first
    assert order(3, 5) == first
    assert order(3, 6) != first
    assert order(4, 5) != first


def test_empty_kernels_do_not_affect_later_launches(memory: EmulatedMemory) -> None:
    a = memory.zeros(64, np.int32)
    code = Code()
    code.load(code.element(code.argument(0), code.everyone()))
    for _ in range(3):
        launch(code, a, grid=2)
        launch(Code(), grid=64, block=256)


def test_signals_are_handled_while_a_kernel_spins(memory: EmulatedMemory) -> None:
    class AlarmError(Exception):
        pass

    def ring(*_: object) -> None:
        raise AlarmError

    code = Code()
    with code.until() as condition:
        condition.append(code.compare("eq", code.atomic(at.ADD, code.argument(0), 0), 1))
    kernel = LoadedKernel(code)
    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(AlarmError):
            launch(kernel, memory.zeros(1, np.int32))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    launch(kernel, memory.full(1, 1, np.int32))

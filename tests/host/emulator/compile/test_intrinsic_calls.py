"""Tests of all supported intrinsics in Numba-CUDA kernels with known results."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from llvmlite import ir
from numba import cuda
from numba.cuda import types
from numba.cuda.extending import intrinsic

from gpu_pregel.kernels.library.atomics_cuda import load_relaxed, store_relaxed
from tests.host.emulator.launcher import SEEDS, launch, memory, on_device

LANES = np.arange(32)


@pytest.mark.parametrize("grid, block", [((2, 1, 1), (32, 1, 1)), ((2, 3, 1), (4, 2, 5)), ((1, 2, 2), (8, 4, 2))])
def test_special_registers(grid: tuple[int, int, int], block: tuple[int, int, int]) -> None:
    def kernel(out: Any, width: Any) -> None:
        t, b, d, g = cuda.threadIdx, cuda.blockIdx, cuda.blockDim, cuda.gridDim
        thread = t.x + d.x * (t.y + d.y * t.z)
        row = (b.x + g.x * (b.y + g.y * b.z)) * (d.x * d.y * d.z) + thread
        values = (t.x, t.y, t.z, b.x, b.y, b.z, d.x, d.y, d.z, g.x, g.y, g.z, cuda.laneid, cuda.warpsize)
        for k in range(width):
            out[row * width + k] = values[k]

    threads, blocks = math.prod(block), math.prod(grid)
    out = memory.empty(threads * blocks * 14, np.int32)
    launch(kernel, out, 14, grid=grid, block=block)
    found = out.get().reshape(blocks, threads, 14)
    for number in range(blocks):
        for thread in range(threads):
            own = [thread % block[0], thread // block[0] % block[1], thread // (block[0] * block[1])]
            place = [number % grid[0], number // grid[0] % grid[1], number // (grid[0] * grid[1])]
            assert found[number, thread].tolist() == [*own, *place, *block, *grid, thread % 32, 32]


def test_grid_positions() -> None:
    def kernel(out: Any) -> None:
        x, y = cuda.grid(2)
        width, height = cuda.gridsize(2)
        if x < width and y < height:
            out[y * width + x] = width * 1000 + height * 100 + x * 10 + y

    out = memory.empty(6 * 4, np.int64)
    launch(kernel, out, grid=(2, 2, 1), block=(3, 2, 1))
    x, y = np.meshgrid(np.arange(6), np.arange(4))
    np.testing.assert_array_equal(out.get().reshape(4, 6), 6400 + 10 * x + y)


@pytest.mark.parametrize("seed", SEEDS)
def test_block_barriers(seed: int) -> None:
    def kernel(flags: Any, out: Any) -> None:
        shared = cuda.shared.array(96, types.int32)
        t = cuda.threadIdx.x
        shared[t] = flags[t]
        cuda.syncthreads()
        out[t] = shared[95 - t]
        out[96 + t] = cuda.syncthreads_count(flags[t])
        out[192 + t] = cuda.syncthreads_and(flags[t])
        out[288 + t] = cuda.syncthreads_or(flags[t])

    for flags in (LANES.repeat(3) % 3, np.zeros(96, int), np.ones(96, int)):
        out = memory.empty(4 * 96, np.int32)
        launch(kernel, on_device(flags, np.int32), out, block=96, seed=seed)
        mirrored, count, every, some = out.get().reshape(4, 96)
        np.testing.assert_array_equal(mirrored, flags[::-1])
        assert set(count) == {np.count_nonzero(flags)}
        assert set(every.astype(bool)) == {bool(flags.all())}
        assert set(some.astype(bool)) == {bool(flags.any())}


@pytest.mark.parametrize("seed", SEEDS)
def test_votes(seed: int) -> None:
    def kernel(flags: Any, masks: Any, out: Any) -> None:
        lane = cuda.threadIdx.x
        mask = masks[lane]
        flag = flags[lane]
        out[lane] = np.uint32(cuda.ballot_sync(mask, flag))
        out[32 + lane] = cuda.all_sync(mask, flag)
        out[64 + lane] = cuda.any_sync(mask, flag)
        out[96 + lane] = cuda.eq_sync(mask, flag)

    low = np.uint32(0x0000FFFF)
    for mask in (np.full(32, 0xFFFFFFFF, np.uint32), np.where(LANES < 16, low, ~low).astype(np.uint32)):
        for flags in (LANES % 3 == 0, LANES < 16, LANES >= 0, LANES < 0):
            out = memory.empty(128, np.uint32)
            launch(kernel, on_device(flags.astype(np.int32)), on_device(mask), out, seed=seed)
            for lane in LANES:
                own = (mask[lane] >> LANES.astype(np.uint32)) & 1 == 1
                ballot = int((1 << LANES[flags & own]).sum())
                expected = [ballot, flags[own].all(), flags[own].any(), len(set(flags[own])) == 1]
                assert out.get().reshape(4, 32)[:, lane].tolist() == expected


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
def test_matches(dtype: Any) -> None:
    def kernel(values: Any, out: Any) -> None:
        lane = cuda.threadIdx.x
        mask = np.int32(-1)
        out[lane] = np.uint32(cuda.match_any_sync(mask, values[lane]))
        every, same = cuda.match_all_sync(mask, values[lane])
        out[32 + lane] = np.uint32(every)
        out[64 + lane] = same

    for values in (LANES % 5, LANES // 16, np.full(32, 7)):
        out = memory.empty(96, np.uint32)
        launch(kernel, on_device(values.astype(dtype)), out)
        some, every, same = out.get().reshape(3, 32)
        assert some.tolist() == [int((1 << LANES[values == value]).sum()) for value in values]
        alike = len(set(values)) == 1
        assert set(same) == {int(alike)}
        assert set(every) == {0xFFFFFFFF if alike else 0}


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
def test_shuffles(dtype: Any) -> None:
    def kernel(values: Any, lanes: Any, out: Any) -> None:
        lane = cuda.threadIdx.x
        mask = 0xFFFFFFFF
        value = values[lane]
        out[lane] = cuda.shfl_sync(mask, value, lanes[lane])
        out[32 + lane] = cuda.shfl_up_sync(mask, value, 3)
        out[64 + lane] = cuda.shfl_down_sync(mask, value, 5)
        out[96 + lane] = cuda.shfl_xor_sync(mask, value, 9)

    values = (LANES * (1 << 33 if np.dtype(dtype).itemsize == 8 else 1000) + LANES).astype(dtype)
    sources = (LANES * 7 + 3) % 32
    out = memory.empty(128, dtype)
    launch(kernel, on_device(values), on_device(sources.astype(np.int32)), out)
    expected = [
        values[sources],
        values[np.where(LANES < 3, LANES, LANES - 3)],
        values[np.where(LANES > 26, LANES, LANES + 5)],
        values[LANES ^ 9],
    ]
    np.testing.assert_array_equal(out.get().reshape(4, 32), expected)


def test_shuffles_within_segments() -> None:
    @intrinsic  # type: ignore[untyped-decorator]
    def shuffle_down(typingctx: Any, value: Any, distance: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            i32 = ir.IntType(32)
            result = ir.LiteralStructType((i32, ir.IntType(1)))
            function = cuda.cgutils.get_or_insert_function(
                builder.module, ir.FunctionType(result, [i32] * 5), "llvm.nvvm.shfl.sync.i32"
            )
            # Segments of 8 lanes: clamp 31, segment mask 24.
            call = builder.call(function, [i32(-1), i32(2), arguments[0], arguments[1], i32(24 << 8 | 31)])
            moved, inside = builder.extract_value(call, 0), builder.extract_value(call, 1)
            return builder.select(inside, moved, i32(-1))

        return types.int32(types.int32, types.int32), codegen

    def kernel(out: Any) -> None:
        lane = cuda.threadIdx.x
        out[lane] = shuffle_down(np.int32(lane), np.int32(3))

    out = memory.empty(32, np.int32)
    launch(kernel, out)
    assert out.get().tolist() == [lane + 3 if lane % 8 < 5 else -1 for lane in range(32)]


def test_lane_masks() -> None:
    def kernel(out: Any) -> None:
        lane = cuda.threadIdx.x
        out[lane] = cuda.lanemask_lt()
        out[32 + lane] = cuda.activemask()

    out = memory.empty(64, np.uint32)
    launch(kernel, out)
    assert out.get()[:32].tolist() == [(1 << lane) - 1 for lane in range(32)]
    assert all(mask >> lane & 1 for lane, mask in enumerate(out.get()[32:].tolist()))


def _assembly(text: str) -> Any:
    @intrinsic  # type: ignore[untyped-decorator]
    def read(typingctx: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            function = ir.FunctionType(ir.IntType(32), [])
            return builder.call(ir.InlineAsm(function, text, "=r", side_effect=True), [])

        return types.uint32(), codegen

    return read


@pytest.mark.parametrize(
    "register, expected",
    [
        ("laneid", lambda lane: lane),
        ("lanemask_eq", lambda lane: 1 << lane),
        ("lanemask_le", lambda lane: (2 << lane) - 1),
        ("lanemask_lt", lambda lane: (1 << lane) - 1),
        ("lanemask_ge", lambda lane: 0xFFFFFFFF & ~((1 << lane) - 1)),
        ("lanemask_gt", lambda lane: 0xFFFFFFFF & ~((2 << lane) - 1)),
    ],
)
def test_registers_read_by_inline_assembly(register: str, expected: Callable[[int], int]) -> None:
    read = _assembly(f"mov.u32 $0, %{register};")

    def kernel(out: Any) -> None:
        out[cuda.threadIdx.x] = read()

    out = memory.empty(32, np.uint32)
    launch(kernel, out)
    assert out.get().tolist() == [expected(lane) for lane in range(32)]


@pytest.mark.parametrize("seed", SEEDS)
def test_relaxed_accesses_by_inline_assembly_are_atomic(seed: int) -> None:
    def kernel(numbers: Any, out: Any) -> None:
        t = cuda.grid(1)
        store_relaxed(numbers, 0, t % 2)
        out[t] = load_relaxed(numbers, 0)

    for dtype in (np.uint32, np.float64):
        out = memory.empty(64, dtype)
        launch(kernel, on_device([0], dtype), out, grid=2, block=32, seed=seed)
        assert set(out.get().tolist()) == {0, 1}


def test_syncwarp_and_fences() -> None:
    def kernel(out: Any) -> None:
        shared = cuda.shared.array(32, types.int32)
        lane = cuda.threadIdx.x
        shared[lane] = lane
        cuda.syncwarp()
        cuda.threadfence_block()
        cuda.threadfence()
        cuda.threadfence_system()
        out[lane] = shared[31 - lane]
        cuda.syncwarp(np.int32(-1))

    out = memory.empty(32, np.int32)
    launch(kernel, out)
    assert out.get().tolist() == list(range(31, -1, -1))


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64])
@pytest.mark.parametrize("seed", SEEDS)
def test_integer_atomics(dtype: Any, seed: int) -> None:
    def kernel(values: Any, out: Any, old: Any) -> None:
        t = cuda.grid(1)
        value = values[t]
        old[t] = cuda.atomic.add(out, 0, value)
        cuda.atomic.sub(out, 1, value)
        cuda.atomic.min(out, 2, value)
        cuda.atomic.max(out, 3, value)
        cuda.atomic.and_(out, 4, value)
        cuda.atomic.or_(out, 5, value)
        cuda.atomic.xor(out, 6, value)
        if t == 5:
            cuda.atomic.exch(out, 7, value)
            old[64] = cuda.atomic.cas(out, 8, value, 77)
            old[65] = cuda.atomic.cas(out, 9, value, 77)

    values = np.random.default_rng(seed).integers(1, 1 << 20, 64).astype(dtype)
    if np.dtype(dtype).kind == "i":
        values[::3] *= -1
    limits = np.iinfo(dtype)
    out = on_device([0, 1 << 30, limits.max, limits.min, limits.max, 0, 0, 0, values[5], 1], dtype)
    old = memory.empty(66, dtype)
    launch(kernel, on_device(values), out, old, grid=2, block=32, seed=seed)
    total = values.sum(dtype=dtype)
    expected = [
        total,
        dtype(1 << 30) - total,
        values.min(),
        values.max(),
        np.bitwise_and.reduce(values) & limits.max,
        np.bitwise_or.reduce(values),
        np.bitwise_xor.reduce(values),
        values[5],
        77,
        1,
    ]
    np.testing.assert_array_equal(out.get(), np.array(expected, dtype))
    seen = old.get()
    assert seen[64] == values[5]
    assert seen[65] == 1
    # One thread was first, and one was last.
    assert 0 in seen[:64]
    assert total in seen[:64] + values


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_wrapping_atomics(dtype: Any) -> None:
    def kernel(out: Any) -> None:
        cuda.atomic.inc(out, 0, 20)
        cuda.atomic.dec(out, 1, 20)

    out = on_device([0, 0], dtype)
    launch(kernel, out, block=50)
    assert out.get().tolist() == [50 % 21, 20 - 49 % 21]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", SEEDS)
def test_float_atomics(dtype: Any, seed: int) -> None:
    def kernel(values: Any, out: Any) -> None:
        value = values[cuda.grid(1)]
        cuda.atomic.add(out, 0, value)
        cuda.atomic.sub(out, 1, value)
        cuda.atomic.min(out, 2, value)
        cuda.atomic.max(out, 3, value)
        cuda.atomic.nanmin(out, 4, value)
        cuda.atomic.nanmax(out, 5, value)

    values = np.random.default_rng(seed).integers(-1000, 1000, 64).astype(dtype)
    values[7] = np.nan
    out = on_device([0, 0, 5000, -5000, np.nan, -5000], dtype)
    launch(kernel, on_device(values), out, grid=2, seed=seed)
    finite = values[~np.isnan(values)]
    found = out.get()
    assert np.isnan(found[:2]).all()
    assert found[2:].tolist() == [finite.min(), finite.max(), finite.min(), finite.max()]


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.uint64, np.float32, np.float64])
def test_cache_hints_are_loads_and_stores(dtype: Any) -> None:
    def kernel(values: Any, out: Any) -> None:
        i = cuda.grid(1)
        cuda.stcg(out, i, cuda.ldcg(values, i))
        cuda.stcs(out, 8 + i, cuda.ldcs(values, i))
        cuda.stwb(out, 16 + i, cuda.ldca(values, i))
        cuda.stwt(out, 24 + i, cuda.ldcv(values, i))

    values = np.arange(8).astype(dtype)
    out = memory.empty(32, dtype)
    kernel_of, counts = launch(kernel, on_device(values), out, block=8, counts=True)
    np.testing.assert_array_equal(out.get().reshape(4, 8), np.broadcast_to(values, (4, 8)))
    assert counts is not None
    assert counts.of_kind("load", kernel_of.sites)[0] == counts.of_kind("store", kernel_of.sites)[0] == 32


@pytest.mark.parametrize("seed", SEEDS)
def test_grid_barrier(seed: int) -> None:
    def kernel(values: Any, out: Any) -> None:
        group = cuda.cg.this_grid()
        i = cuda.grid(1)
        values[i] = i
        group.sync()
        out[i] = values[cuda.gridsize(1) - 1 - i]

    values, out = memory.empty(128, np.int32), memory.empty(128, np.int32)
    compiled_kernel, _ = launch(kernel, values, out, grid=4, cooperative=True, seed=seed)
    assert compiled_kernel.uses_grid_barrier
    assert out.get().tolist() == list(range(127, -1, -1))


def test_nanosleep() -> None:
    def kernel(out: Any) -> None:
        cuda.nanosleep(np.uint32(100))
        out[0] = 1

    out = memory.empty(1, np.int32)
    launch(kernel, out, block=1)
    assert out.get().tolist() == [1]

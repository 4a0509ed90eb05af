"""Tests of the rewriting of loads, stores and atomics: types, source lines and counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from llvmlite import ir
from numba import cuda, types
from numba.cuda.extending import intrinsic

from gpu_pregel.errors import EmulationError
from tests.host.emulator.launcher import SEEDS, compile_cached, launch, line_of, memory, on_device

NUMBERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.float32, np.float64]
TABLE = np.array([2, 3, 5, 7, 11, 13, 17, 19], np.uint16)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_numbers_are_accessed_as_a_whole(dtype: Any) -> None:
    def kernel(values: Any, out: Any) -> None:
        i = cuda.grid(1)
        out[i] = values[i]

    values = np.random.default_rng(3).integers(0, 256, 32 * np.dtype(dtype).itemsize, np.uint8).view(dtype)
    out = memory.empty(32, dtype)
    made, counts = launch(kernel, on_device(values), out, counts=True)
    assert out.get().tobytes() == values.tobytes()
    assert [site.kind for site in made.sites] == ["load", "store"]
    assert counts is not None
    assert counts.bytes.tolist() == [32 * np.dtype(dtype).itemsize] * 2


def test_booleans() -> None:
    def kernel(values: Any, out: Any, flip: Any) -> None:
        i = cuda.grid(1)
        out[i] = values[i] != flip

    values = np.arange(32) % 3 == 0
    out = memory.empty(32, np.bool_)
    launch(kernel, on_device(values), out, True)
    np.testing.assert_array_equal(out.get(), ~values)


def test_complex_numbers_are_accessed_by_member() -> None:
    def kernel(values: Any, out: Any) -> None:
        i = cuda.grid(1)
        out[i] = values[i] * 2

    values = (np.arange(32) + 1j).astype(np.complex64)
    out = memory.empty(32, np.complex64)
    launch(kernel, on_device(values), out)
    np.testing.assert_array_equal(out.get(), values * 2)


def two_lines(values: Any, out: Any) -> None:
    i = cuda.grid(1)
    x = values[i]  # load
    if x > 3:
        cuda.atomic.add(out, 0, x)  # atomic
    cuda.threadfence()  # fence
    out[i + 1] = x  # store


def test_sites_have_source_lines() -> None:
    made = compile_cached(two_lines, (types.int64[::1], types.int64[::1]))
    assert {site.file for site in made.sites} == {__file__}
    lines = {kind: line_of(two_lines, f"# {kind}") for kind in ("load", "atomic", "fence", "store")}
    assert {site.kind: site.line for site in made.sites} == lines


def test_accesses_removed_by_the_optimiser_are_not_counted() -> None:
    def kernel(values: Any, out: Any) -> None:
        i = cuda.grid(1)
        unused = values[i + 100]
        out[i] = values[i] * values[i] + 0 * unused

    made, counts = launch(kernel, on_device(np.arange(200)), memory.empty(32, np.int64), counts=True)
    assert counts is not None
    assert counts.of_kind("load", made.sites)[0] == 32


def test_loops_are_neither_vectorised_nor_replaced_by_memset() -> None:
    def kernel(values: Any, out: Any, n: Any) -> None:
        for i in range(n):
            out[i] = 0
        for i in range(n):
            out[i] += values[i]
        for i in range(n):
            out[n + i] = values[i]

    values = np.arange(1000)
    out = memory.empty(2000, np.int64)
    made, counts = launch(kernel, on_device(values), out, 1000, block=1, counts=True)
    np.testing.assert_array_equal(out.get(), np.concatenate([values, values]))
    assert counts is not None
    assert counts.of_kind("store", made.sites)[:2] == (3000, 24000)
    assert counts.of_kind("load", made.sites)[:2] == (3000, 24000)


@pytest.mark.parametrize("dtype", [np.int16, np.float64])
def test_accesses_to_local_arrays_are_not_sites(dtype: Any) -> None:
    kind = types.int16 if dtype is np.int16 else types.float64

    def kernel(values: Any, out: Any, n: Any) -> None:
        i = cuda.grid(1)
        own = cuda.local.array(16, kind)
        for k in range(16):
            own[k] = values[k] + i
        for k in range(n):
            own[k], own[15 - k] = own[15 - k], own[k]
        out[i] = own[i % n]

    out = memory.empty(32, dtype)
    made, counts = launch(kernel, on_device(np.arange(16), dtype), out, 8, counts=True)
    assert out.get().tolist() == [15 - i % 8 + i for i in range(32)]
    assert made.local_bytes == 16 * np.dtype(dtype).itemsize
    assert counts is not None
    assert counts.of_kind("store", made.sites)[0] == 32
    place = r"kernel kernel, test_access_calls.py line \d+, block 0, thread \d+: "
    with pytest.raises(EmulationError, match=rf"{place}reads"):
        launch(kernel, on_device(np.arange(16), dtype), out, 17)


def test_writes_past_the_end_of_local_arrays() -> None:
    def kernel(values: Any, out: Any, n: Any) -> None:
        own = cuda.local.array(16, types.int32)
        for k in range(n):
            own[values[k]] = k
        out[0] = own[values[n]]

    values = on_device(np.arange(20) % 18)
    launch(kernel, values, memory.empty(1, np.int64), 15, block=1)
    place = r"kernel kernel, test_access_calls.py line \d+, block 0, thread 0: "
    with pytest.raises(EmulationError, match=rf"{place}writes"):
        launch(kernel, values, memory.empty(1, np.int64), 18, block=1)


def test_large_local_arrays_raise() -> None:
    def kernel(out: Any, n: Any) -> None:
        own = cuda.local.array(8192, types.int64)
        for k in range(n):
            own[k] = out[k]
        out[0] = own[n // 2]

    def smaller(out: Any, n: Any) -> None:
        own = cuda.local.array(2048, types.int64)
        for k in range(n):
            own[k] = out[k]
        out[0] = own[n // 2] + own[n]

    with pytest.raises(EmulationError, match=r"kernel kernel, .*: local arrays need 65536 bytes per thread"):
        launch(kernel, on_device([0, 1]), 2, block=1)
    out = on_device([7, 1])
    launch(smaller, out, 2, block=1)
    assert out.get()[0] == 1


def test_constant_tables() -> None:
    def kernel(out: Any) -> None:
        i = cuda.grid(1)
        table = cuda.const.array_like(TABLE)
        out[i] = table[i % 8] + TABLE[i // 8]

    out = memory.empty(32, np.int64)
    made, _ = launch(kernel, out)
    assert out.get().tolist() == [int(TABLE[i % 8]) + int(TABLE[i // 8]) for i in range(32)]
    assert [site.kind for site in made.sites if site.kind != "check"] == ["store"]
    with pytest.raises(
        EmulationError, match=r"kernel kernel, test_access_calls.py line \d+, block 2, thread \d+: reads"
    ):
        launch(kernel, memory.empty(96, np.int64), grid=3)


def _pointer(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    return builder.gep(array.data, [arguments[1]])


@intrinsic  # type: ignore[untyped-decorator]
def load_atomic(typingctx: Any, array: Any, index: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(_pointer(context, builder, signature, arguments), "acquire", 8)

    return types.int64(array, types.int64), codegen


@intrinsic  # type: ignore[untyped-decorator]
def store_atomic(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature, arguments)
        builder.store_atomic(arguments[2], pointer, "release", 8)
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64), codegen


@intrinsic  # type: ignore[untyped-decorator]
def swap_if(typingctx: Any, array: Any, index: Any, expected: Any, desired: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature, arguments)
        pair = builder.cmpxchg(pointer, arguments[2], arguments[3], "seq_cst", "monotonic")
        return builder.zext(builder.extract_value(pair, 1), ir.IntType(64))

    return types.int64(array, types.int64, types.int64, types.int64), codegen


def hand_over(data: Any, flags: Any, out: Any) -> None:
    b = cuda.blockIdx.x
    if cuda.threadIdx.x == 0:
        data[b] = b + 10
        store_atomic(flags, b, 1)
        other = cuda.gridDim.x - 1 - b
        while load_atomic(flags, other) == 0:
            pass
        out[b] = data[other]


@pytest.mark.parametrize("seed", range(10))
def test_atomic_loads_and_stores_with_ordering(seed: int) -> None:
    out = memory.empty(2, np.int64)
    data, flags = memory.empty(2, np.int64), on_device([0, 0])
    launch(hand_over, data, flags, out, grid=2, racy=("data",), cooperative=True, seed=seed)
    assert out.get().tolist() == [11, 10]


@pytest.mark.parametrize("seed", SEEDS)
def test_compare_and_swap_reports_success(seed: int) -> None:
    def kernel(out: Any) -> None:
        won = swap_if(out, 0, 0, cuda.grid(1) + 1)
        cuda.atomic.add(out, 1, won)

    out = on_device([0, 0])
    launch(kernel, out, seed=seed)
    first, wins = out.get().tolist()
    assert wins == 1
    assert 1 <= first <= 32


def test_no_arguments() -> None:
    def kernel() -> None:
        cuda.syncthreads()

    made, _ = launch(kernel)
    assert [site.kind for site in made.sites] == ["sync"]


def test_loops_with_an_exit_are_compiled() -> None:
    def kernel(out: Any, n: Any) -> None:
        i = 0
        while True:
            i += 1
            if i % 3 == 0:
                continue
            if out[i] == n:
                break
            if out[i] == n + 1:
                return
        out[0] = i

    out = on_device(np.arange(32))
    launch(kernel, out, 7, block=1)
    assert out.get()[0] == 7


def test_tuples_of_arrays_and_numbers() -> None:
    def kernel(pairs: Any, scale: Any, nothing: Any) -> None:
        i = cuda.grid(1)
        pairs[0][i] = pairs[1][0][i] * scale[1] + scale[0]

    x, y = memory.empty(32, np.float64), on_device(np.arange(32, dtype=np.int16))
    launch(kernel, (x, (y,)), (np.float32(0.5), np.uint8(3)), 0)
    assert x.get().tolist() == [3 * i + 0.5 for i in range(32)]

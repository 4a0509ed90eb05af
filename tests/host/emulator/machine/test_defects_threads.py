"""Planted defects in how threads meet, launch and compute, each refused by kernel, line and thread; twins that run."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from llvmlite import ir
from numba import cuda
from numba.cuda import types
from numba.cuda.extending import intrinsic

from gpu_pregel.errors import ArgumentTypeError, EmulationError
from tests.host.emulator.launcher import SEEDS, launch, line_of, memory, on_device

ALL = np.uint32(0xFFFFFFFF)


def refused(kernel: Any, *arguments: Any, mark: str = "# fault", **options: Any) -> str:
    """The message of the refusal, which must name the kernel, the line with the mark and the thread."""
    messages = set()
    for seed in SEEDS:
        with pytest.raises(EmulationError) as raised:
            launch(kernel, *arguments, seed=seed, **options)
        message = str(raised.value)
        place = rf"kernel {kernel.__name__}, {re.escape(__file__.rsplit('/', 1)[-1])} line {line_of(kernel, mark)}, "
        assert re.match(place + r"block \(?\d+.*?, thread \(?\d+.*?: ", message), message
        messages.add(message.split(": ", 1)[1])
    return messages.pop()


def thread_of(message: str) -> int:
    match = re.search(r"thread (\d+)", message)
    assert match is not None
    return int(match[1])


# --- Warp operations.
def ballot_of_some(out: Any) -> None:
    lane = cuda.threadIdx.x
    if lane < 16:
        return
    out[lane] = np.uint32(cuda.ballot_sync(ALL, lane > 20))  # fault


def test_ballot_with_lanes_that_have_ended() -> None:
    message = refused(ballot_of_some, memory.empty(32, np.uint32))
    assert re.search(r"waits for lanes 0xffffffff, but thread (\d|1[0-5]) has exited", message)


def ballot_by_outsiders(out: Any) -> None:
    lane = cuda.threadIdx.x
    out[lane] = np.uint32(cuda.ballot_sync(np.uint32(0x0000FFFF), lane > 20))  # fault


def test_caller_outside_its_mask() -> None:
    assert "not in the mask 0x0000ffff" in refused(ballot_by_outsiders, memory.empty(32, np.uint32))


def shuffle_in_branches(out: Any) -> None:
    lane = cuda.threadIdx.x
    if lane % 2 == 0:
        out[lane] = cuda.shfl_sync(ALL, lane, 0)
    else:
        out[lane] = cuda.shfl_sync(ALL, lane, 1)


def test_warp_operation_split_over_branches() -> None:
    for seed in SEEDS:
        with pytest.raises(
            EmulationError, match=r"kernel shuffle_in_branches, .* line \d+, block 0, thread \d+: waits"
        ):
            launch(shuffle_in_branches, memory.empty(32, np.int32), seed=seed)


def shuffle_from_outside(out: Any) -> None:
    lane = cuda.threadIdx.x
    if lane < 16:
        out[lane] = cuda.shfl_down_sync(np.uint32(0x0000FFFF), lane, 4)  # fault


def test_shuffle_from_a_lane_outside_of_the_mask() -> None:
    assert "shuffles from lane 1" in refused(shuffle_from_outside, memory.empty(32, np.int32))


def ballot_of_short_warp(out: Any) -> None:
    lane = cuda.threadIdx.x
    out[lane] = np.uint32(cuda.ballot_sync(ALL, lane > 3))  # fault


def test_mask_with_lanes_that_do_not_exist() -> None:
    assert "does not exist" in refused(ballot_of_short_warp, memory.empty(20, np.uint32), block=20)


def ballot_of_those_here(out: Any) -> None:
    lane = cuda.threadIdx.x
    mask = np.uint32(0xFFFF0000)
    if lane < 16:
        mask = np.uint32(0x0000FFFF)
    if lane < 16:
        out[lane] = np.uint32(cuda.ballot_sync(mask, lane > 7))
    else:
        out[lane] = np.uint32(cuda.ballot_sync(mask, lane > 20))


@pytest.mark.parametrize("seed", SEEDS)
def test_ballots_with_the_right_masks(seed: int) -> None:
    out = memory.empty(32, np.uint32)
    launch(ballot_of_those_here, out, seed=seed)
    assert out.get().tolist() == [0xFF00] * 16 + [0xFFE00000] * 16


# --- Barriers.
def barrier_in_branches(out: Any) -> None:
    t = cuda.threadIdx.x
    if t < 40:
        out[t] = 1
        cuda.syncthreads()  # one
    else:
        out[t] = 2
        cuda.syncthreads()  # other


def test_barrier_split_over_branches() -> None:
    lines = {line_of(barrier_in_branches, "# one"), line_of(barrier_in_branches, "# other")}
    for seed in SEEDS:
        with pytest.raises(EmulationError) as raised:
            launch(barrier_in_branches, memory.empty(64, np.int32), block=64, seed=seed)
        message = str(raised.value)
        assert re.match(r"kernel barrier_in_branches, .* line \d+, block 0, thread \d+: reaches this barrier", message)
        assert {int(line) for line in re.findall(r"line (\d+)", message)} == lines


def barrier_after_some_returned(out: Any) -> None:
    t = cuda.threadIdx.x
    if t == 63:
        return
    out[t] = t
    cuda.syncthreads()  # fault


def test_barrier_after_some_threads_returned() -> None:
    message = refused(barrier_after_some_returned, memory.empty(64, np.int32), block=64)
    assert "waits at a barrier that thread 63 never reaches" in message


def barrier_and_ballot(out: Any) -> None:
    lane = cuda.threadIdx.x
    if lane == 0:
        cuda.syncthreads()
    out[lane] = np.uint32(cuda.ballot_sync(ALL, lane > 20))


def test_barrier_against_warp_operation() -> None:
    for seed in SEEDS:
        with pytest.raises(EmulationError, match=r"kernel barrier_and_ballot, .* line \d+, block 0, thread \d+: "):
            launch(barrier_and_ballot, memory.empty(32, np.uint32), seed=seed)


def barrier_for_all(out: Any) -> None:
    shared = cuda.shared.array(64, types.int32)
    t = cuda.threadIdx.x
    if t < 40:
        shared[t] = 1
    else:
        shared[t] = 2
    cuda.syncthreads()
    out[t] = shared[63 - t]


@pytest.mark.parametrize("seed", SEEDS)
def test_barrier_that_all_reach(seed: int) -> None:
    out = memory.empty(64, np.int32)
    launch(barrier_for_all, out, block=64, seed=seed)
    assert out.get().tolist() == [2] * 24 + [1] * 40


# --- Arithmetic.
def divide(values: Any, by: Any, out: Any) -> None:
    i = cuda.grid(1)
    out[i] = values[i] // by[i]  # fault


def remainder_unsigned(values: Any, by: Any, out: Any) -> None:
    i = cuda.grid(1)
    out[i] = values[i] % by[i]  # fault


@pytest.mark.parametrize("kernel", [divide, remainder_unsigned])
@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64])
def test_division_by_zero(kernel: Any, dtype: Any) -> None:
    values, by = np.arange(32).astype(dtype), np.ones(32, dtype)
    by[13] = 0
    out = memory.empty(32, dtype)
    assert "divides 13 by zero" in refused(kernel, on_device(values), on_device(by), out)
    by[13] = 5
    for seed in SEEDS:
        launch(kernel, on_device(values), on_device(by), out, seed=seed)
        np.testing.assert_array_equal(out.get(), values // by if kernel is divide else values % by)


def shift_left(values: Any, by: Any, out: Any) -> None:
    i = cuda.grid(1)
    out[i] = values[i] << by[i]  # fault


def shift_right(values: Any, by: Any, out: Any) -> None:
    i = cuda.grid(1)
    out[i] = values[i] >> by[i]  # fault


@pytest.mark.parametrize("kernel", [shift_left, shift_right])
@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_shift_past_the_width(kernel: Any, dtype: Any) -> None:
    by = np.arange(32).astype(dtype)
    by[9] = 64
    values, out = np.arange(100, 132).astype(dtype), memory.empty(32, dtype)
    message = refused(kernel, on_device(values), on_device(by), out)
    assert "shifts by 64" in message
    by[9] = 63
    for seed in SEEDS:
        launch(kernel, on_device(values), on_device(by), out, seed=seed)
        np.testing.assert_array_equal(out.get(), values << by if kernel is shift_left else values >> by)


def shift_by_a_constant(out: Any) -> None:
    out[0] = out[1] << 64  # fault


def test_shift_by_a_constant_past_the_width() -> None:
    assert "shifts by 64" in refused(shift_by_a_constant, on_device([1, 1]), block=1)


def to_int32(values: Any, out: Any) -> None:
    i = cuda.grid(1)
    out[i] = np.int32(values[i])  # fault


def to_uint32(values: Any, out: Any) -> None:
    i = cuda.grid(1)
    out[i] = np.uint32(values[i])  # fault


def to_int64(values: Any, out: Any) -> None:
    i = cuda.grid(1)
    out[i] = np.int64(values[i])  # fault


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "kernel, bad, good",
    [
        (to_int32, [np.nan, 1e20, -np.inf, 2.0**31, -(2.0**31) - 256], [2.0**31 - 128, -(2.0**31), -0.9, 7.9]),
        (to_uint32, [np.nan, 1e20, np.inf, -1.0, 2.0**32], [2.0**32 - 256, -0.75, 0.0, 3.5]),
        (to_int64, [np.nan, 1e20, np.inf, 2.0**63, -(2.0**63) - 2.0**40], [-(2.0**63), 2.0**62, -1.5, 0.5]),
    ],
)
def test_float_to_integer_out_of_range(kernel: Any, bad: list[float], good: list[float], dtype: Any) -> None:
    integer = kernel.__name__.removeprefix("to_")
    for value in bad:
        values = np.full(32, 2.5, dtype)
        values[11] = value
        message = refused(kernel, on_device(values), memory.empty(32, integer))
        assert f"converts {float(dtype(value))!r}" in message
    out = memory.empty(len(good), integer)
    launch(kernel, on_device(good, dtype), out, block=len(good))
    assert out.get().tolist() == [int(dtype(value)) for value in good]


# --- What cannot be compiled.
@intrinsic  # type: ignore[untyped-decorator]
def brief_pause(typingctx: Any) -> Any:
    """An instruction of the GPU that has no meaning here."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        function = ir.FunctionType(ir.IntType(64), [])
        return builder.call(
            cuda.cgutils.get_or_insert_function(builder.module, function, "llvm.nvvm.read.ptx.sreg.clock64"), []
        )

    return types.int64(), codegen


def reads_the_clock(out: Any) -> None:
    out[0] = brief_pause()  # fault


def prints(out: Any) -> None:
    print(out[0])  # fault


@intrinsic  # type: ignore[untyped-decorator]
def by_assembly(typingctx: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        function = ir.FunctionType(ir.IntType(32), [])
        return builder.call(ir.InlineAsm(function, "mov.u32 $0, %smid;", "=r", side_effect=True), [])

    return types.int32(), codegen


def asks_its_multiprocessor(out: Any) -> None:
    out[0] = by_assembly()  # fault


def shared_of_any_size(out: Any) -> None:
    shared = cuda.shared.array(0, types.int32)  # fault
    out[0] = shared[0]


@cuda.jit(device=True, lineinfo=True)  # type: ignore[untyped-decorator]
def factorial(n: Any) -> Any:
    if n < 2:
        return 1
    return n * factorial(n - 1)


def recurses(out: Any) -> None:
    out[0] = factorial(out[0])  # fault


def waits_for_a_plain_load(out: Any) -> None:
    while out[0] == 0:  # fault
        pass


@pytest.mark.parametrize(
    "kernel, what",
    [
        (reads_the_clock, r"uses llvm\.nvvm\.read\.ptx\.sreg\.clock64, which the emulated device does not support"),
        (prints, "uses vprintf"),
        (
            asks_its_multiprocessor,
            "uses the inline assembly 'mov.u32 .0, %smid;', which the emulated device does not support",
        ),
        (shared_of_any_size, "dynamic shared memory is not supported: declare a fixed size"),
        (recurses, "function factorial is recursive, which the emulated device does not support"),
        (waits_for_a_plain_load, "infinite loop: its condition is loaded only once"),
    ],
)
def test_what_the_device_does_not_know(kernel: Any, what: str) -> None:
    line = line_of(kernel)
    with pytest.raises(EmulationError, match=rf"^kernel {kernel.__name__}, \S+ line {line}: {what}"):
        launch(kernel, on_device([0], np.int64), block=1)


# --- Launches.
def fill(out: Any) -> None:
    out[cuda.grid(1)] = 1


def much_shared(out: Any) -> None:
    shared = cuda.shared.array(16384, types.int32)
    shared[cuda.threadIdx.x] = 1
    cuda.syncthreads()
    out[0] = shared[0]


def enough_shared(out: Any) -> None:
    shared = cuda.shared.array(12288, types.int32)
    shared[cuda.threadIdx.x] = 1
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        out[0] = shared[0]


def grid_barrier(out: Any) -> None:
    out[cuda.grid(1)] = 1
    cuda.cg.this_grid().sync()


@pytest.mark.parametrize(
    "kernel, size, options, what",
    [
        (fill, 32, {"grid": 0}, "a grid of 0"),
        (fill, 2048, {"block": 2048}, "a block of 2048"),
        (fill, 32, {"block": 0}, "a block of 0"),
        (much_shared, 1, {}, "65536 bytes of static shared memory"),
        (grid_barrier, 257 * 32, {"grid": 257, "cooperative": True, "block": 1024}, "a cooperative launch of 257"),
        (grid_barrier, 32, {}, "a grid barrier: launch it cooperatively"),
    ],
)
def test_launches_that_a_gpu_refuses(kernel: Any, size: int, options: dict[str, Any], what: str) -> None:
    with pytest.raises(EmulationError, match=f"kernel {kernel.__name__} cannot be launched: .*{what}"):
        launch(kernel, memory.empty(size, np.int32), **options)


@pytest.mark.parametrize(
    "kernel, size, options",
    [
        (fill, 2048, {"grid": 2, "block": 1024}),
        (enough_shared, 1, {"block": 64}),
        (grid_barrier, 256, {"grid": 8, "cooperative": True}),
    ],
)
@pytest.mark.parametrize("seed", SEEDS)
def test_launches_that_a_gpu_accepts(kernel: Any, size: int, options: dict[str, Any], seed: int) -> None:
    out = memory.empty(size, np.int32)
    launch(kernel, out, seed=seed, **options)
    assert out.get().tolist() == [1] * size


def test_host_arrays_are_refused() -> None:
    kernel_of, _ = launch(fill, memory.empty(32, np.int32))
    from gpu_pregel.host.emulator.machine.launch_arguments import flatten

    for argument, what in (
        (np.zeros(32, np.int32), "not a host array of int32: copy it to the device first"),
        ([0] * 32, "not a list: copy it to the device first"),
        (memory.empty(32, np.int64), "not an array of int64 on the device"),
        (memory.empty(32, np.int32)[0], "not a single element of int32 on the device"),
        (7, "not 7"),
        (None, "not a NoneType"),
    ):
        with pytest.raises(
            ArgumentTypeError, match=f"kernel fill: out must be an array of int32 on the device, {what}"
        ):
            flatten(kernel_of, (argument,))

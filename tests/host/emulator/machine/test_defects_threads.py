"""Tests of kernels with defects in warp operations, barriers and launches, and of correct counterparts."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from numba import cuda
from numba.cuda import types

from gpu_pregel.errors import ArgumentTypeError, EmulationError
from tests.host.emulator.launcher import SEEDS, fault_of, launch, line_of, memory

ALL = np.uint32(0xFFFFFFFF)


# --- Warp operations.
def ballot_of_some(out: Any) -> None:
    lane = cuda.threadIdx.x
    if lane < 16:
        return
    out[lane] = np.uint32(cuda.ballot_sync(ALL, lane > 20))  # fault


def test_ballot_with_lanes_that_have_exited() -> None:
    message = fault_of(ballot_of_some, memory.empty(32, np.uint32))
    assert re.search(r"waits for lanes 0xffffffff, but thread (\d|1[0-5]) has exited", message)


def ballot_by_outsiders(out: Any) -> None:
    lane = cuda.threadIdx.x
    out[lane] = np.uint32(cuda.ballot_sync(np.uint32(0x0000FFFF), lane > 20))  # fault


def test_caller_outside_its_mask() -> None:
    assert "not in the mask 0x0000ffff" in fault_of(ballot_by_outsiders, memory.empty(32, np.uint32))


def shuffle_in_branches(out: Any) -> None:
    lane = cuda.threadIdx.x
    if lane % 2 == 0:
        out[lane] = cuda.shfl_sync(ALL, lane, 0)
    else:
        out[lane] = cuda.shfl_sync(ALL, lane, 1)


def test_warp_operation_in_divergent_branches() -> None:
    for seed in SEEDS:
        with pytest.raises(
            EmulationError, match=r"kernel shuffle_in_branches, .* line \d+, block 0, thread \d+: waits"
        ):
            launch(shuffle_in_branches, memory.empty(32, np.int32), seed=seed)


def shuffle_from_outside(out: Any) -> None:
    lane = cuda.threadIdx.x
    if lane < 16:
        out[lane] = cuda.shfl_down_sync(np.uint32(0x0000FFFF), lane, 4)  # fault


def test_shuffle_from_a_lane_outside_the_mask() -> None:
    assert "shuffles from lane 1" in fault_of(shuffle_from_outside, memory.empty(32, np.int32))


def ballot_of_short_warp(out: Any) -> None:
    lane = cuda.threadIdx.x
    out[lane] = np.uint32(cuda.ballot_sync(ALL, lane > 3))  # fault


def test_mask_with_lanes_that_do_not_exist() -> None:
    assert "does not exist" in fault_of(ballot_of_short_warp, memory.empty(20, np.uint32), block=20)


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
def test_ballots_with_correct_masks(seed: int) -> None:
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


def test_barrier_in_divergent_branches() -> None:
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
    message = fault_of(barrier_after_some_returned, memory.empty(64, np.int32), block=64)
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


def test_invalid_arguments_raise() -> None:
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

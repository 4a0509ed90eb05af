"""Tests of the detection of spin loops, with kernels that poll a plain load and kernels that do not."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("numba_cuda")

import numpy as np
from numba import cuda
from numba.cuda import types

from gpu_pregel.kernels.library.atomics_cuda import compare_and_swap, fetch_and_or
from tests.kernels.ptx import to_ptx
from tests.kernels.spins import find_spins

pytestmark = pytest.mark.nvidia

WORDS = types.uint32[::1]


def waits(flags: Any, out: Any) -> None:
    while flags[0] == 0:
        pass
    out[0] = 1


def waits_and_writes(flags: Any, out: Any) -> None:
    count = np.uint32(0)
    while flags[0] == 0:
        count += np.uint32(1)
        out[cuda.threadIdx.x] = count


def waits_and_sleeps(flags: Any, out: Any) -> None:
    while flags[cuda.blockIdx.x] == 0:
        cuda.nanosleep(100)
    out[0] = 1


def waits_in_shared_memory(flags: Any, out: Any) -> None:
    ready = cuda.shared.array(1, types.uint32)
    if cuda.threadIdx.x == 0:
        ready[0] = flags[0]
    while ready[0] == 0:
        out[cuda.threadIdx.x] = 2


def waits_for_two(flags: Any, out: Any) -> None:
    while flags[0] == 0 or flags[1] != flags[2]:
        out[cuda.threadIdx.x] = 2


def waits_through_an_index(flags: Any, out: Any) -> None:
    while flags[flags[0]] == 0:
        out[cuda.threadIdx.x] = 2


def waits_for_each(flags: Any, out: Any) -> None:
    for i in range(np.uint32(len(flags))):
        while flags[np.uint32(i)] == 0:
            out[cuda.threadIdx.x] = i


def waits_as_a_warp(flags: Any, out: Any) -> None:
    while cuda.ballot_sync(0xFFFFFFFF, flags[0] == 0):
        out[cuda.threadIdx.x] = 2


def looks_before_it_swaps(flags: Any, out: Any) -> None:
    while True:
        out[cuda.threadIdx.x] = 2
        if flags[0] == 0 and compare_and_swap(flags, 0, np.uint32(0), np.uint32(1)) == np.uint32(0):
            break


def waits_past_the_caches(flags: Any, out: Any) -> None:
    # Numba's uncached load is not volatile, and LLVM hoists it out of the loop.
    while cuda.ldcv(flags, 0) == 0:
        pass
    out[0] = 1


def swaps(flags: Any, out: Any) -> None:
    old = flags[0]
    while True:
        found = compare_and_swap(flags, 0, old, np.uint32(old + np.uint32(3)))
        if found == old:
            break
        old = found


def waits_by_atomics(flags: Any, out: Any) -> None:
    while fetch_and_or(flags, 0, np.uint32(0)) == np.uint32(0):
        pass
    out[0] = 1


def waits_with_a_fence(flags: Any, out: Any) -> None:
    while flags[0] == 0:
        cuda.threadfence()
    out[0] = 1


def waits_at_a_barrier(flags: Any, out: Any) -> None:
    left = cuda.shared.array(1, types.uint32)
    left[0] = 5
    cuda.syncthreads()
    while left[0] != 0:
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            left[0] -= 1
        cuda.syncthreads()


def follows_pointers(flags: Any, out: Any) -> None:
    parent = np.uint32(cuda.grid(1))
    while parent != flags[parent]:
        parent = flags[parent]
    out[0] = parent


def follows_and_writes(flags: Any, out: Any) -> None:
    v = np.uint32(cuda.grid(1))
    parent = flags[v]
    grandparent = flags[parent]
    while parent != grandparent:
        flags[v] = grandparent
        v = parent
        parent = grandparent
        grandparent = flags[parent]


def counts(flags: Any, out: Any) -> None:
    total = np.uint32(0)
    for i in range(flags[0], flags[1], np.uint32(32)):
        for k in range(np.uint32(flags[2])):
            total += flags[np.uint32(i + k)]
    out[0] = total


def searches(flags: Any, out: Any) -> None:
    i = np.uint32(0)
    while i < np.uint32(len(flags)) and flags[i] != out[0]:
        i = np.uint32(i + np.uint32(1))
    out[0] = i


def counts_in_memory(flags: Any, out: Any) -> None:
    while out[0] < flags[0]:
        out[0] += np.uint32(2)


def waits_until_a_time(flags: Any, out: Any) -> None:
    tries = np.uint32(0)
    while flags[0] == 0 and tries < np.uint32(1000):
        out[cuda.threadIdx.x] = tries
        tries = np.uint32(tries + np.uint32(1))


SPINS = (
    waits,
    waits_and_writes,
    waits_and_sleeps,
    waits_in_shared_memory,
    waits_for_two,
    waits_through_an_index,
    waits_for_each,
    waits_as_a_warp,
    looks_before_it_swaps,
    waits_past_the_caches,
)
OTHERS = (
    swaps,
    waits_by_atomics,
    waits_with_a_fence,
    waits_at_a_barrier,
    follows_pointers,
    follows_and_writes,
    counts,
    searches,
    counts_in_memory,
    waits_until_a_time,
)


@pytest.mark.parametrize("cc", [(7, 5), (9, 0)])
@pytest.mark.parametrize("function", SPINS)
def test_spin_loops_are_found(function: Any, cc: tuple[int, int]) -> None:
    assert len(find_spins(to_ptx(function, (WORDS, WORDS), cc))) == 1


@pytest.mark.parametrize("cc", [(7, 5), (9, 0)])
@pytest.mark.parametrize("function", OTHERS)
def test_other_loops_are_not_reported(function: Any, cc: tuple[int, int]) -> None:
    ptx = to_ptx(function, (WORDS, WORDS), cc)
    assert "bra" in ptx
    assert find_spins(ptx) == []

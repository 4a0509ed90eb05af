"""Tests of the machine code of atomic operations: one instruction each, for the GPU only."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tests.kernels import chips
from tests.kernels.chips import CHIPS
from tests.packages import needs

needs("numba_cuda", "test")

from numba.cuda import types  # noqa: E402

from gpu_pregel.host.devices import launches  # noqa: E402 (it needs numba-cuda)
from gpu_pregel.kernels.library import atomics_cuda as atomics  # noqa: E402
from gpu_pregel.kernels.library.jit_cuda import kernel  # noqa: E402
from tests.kernels.ptx import to_ptx  # noqa: E402

pytestmark = pytest.mark.nvidia

WORDS, LONG_WORDS = types.uint32[::1], types.uint64[::1]


@kernel(WORDS, LONG_WORDS, WORDS)
def every_operation(words: Any, long_words: Any, found: Any) -> None:
    """Call each operation on words of both sizes: eight whose results are used, then eight whose results are not."""
    one = np.uint32(found[0])
    found[1] = atomics.fetch_and_add(words, 0, one)
    found[2] = atomics.fetch_and_or(words, 1, one)
    found[3] = atomics.fetch_and_and(words, 2, one)
    found[4] = atomics.fetch_and_min(words, 3, one)
    found[5] = atomics.fetch_and_max(words, 4, one)
    found[6] = atomics.fetch_and_umin(words, 5, one)
    found[7] = atomics.fetch_and_umax(words, 6, one)
    found[8] = atomics.compare_and_swap(words, 7, one, found[9])
    atomics.fetch_and_add(long_words, 0, one)
    atomics.fetch_and_or(long_words, 1, one)
    atomics.fetch_and_and(long_words, 2, one)
    atomics.fetch_and_min(long_words, 3, one)
    atomics.fetch_and_max(long_words, 4, one)
    atomics.fetch_and_umin(long_words, 5, one)
    atomics.fetch_and_umax(long_words, 6, one)
    atomics.fetch_and_add(words, 8, one)


_ATOMIC = re.compile(r"^\s*(?:atom|red)\.(\S+)", re.MULTILINE)
_RED = 0x98E
"""The opcode of a reduction, an atomic operation without a result, in the low 12 bits of an instruction."""


@pytest.mark.parametrize("chip", CHIPS)
def test_one_instruction_of_the_scope_of_the_gpu(chip: str) -> None:
    signature = every_operation.signature
    ptx = to_ptx(every_operation.function, signature, CHIPS[chip], block=every_operation.block)
    found = [name.removeprefix("relaxed.gpu.") for name in _ATOMIC.findall(ptx)]
    # From sm_100 an atomic operation without a scope would be one of the whole system.
    assert found == [f"global.{name}" for name in _NAMES]
    assert not re.search(r"\.sys\b", ptx)
    code, entry, _ = launches.link(every_operation, CHIPS[chip])
    assert chips.opcodes_in(code, entry).count(_RED) == 8


_NAMES = [
    *("add.u32", "or.b32", "and.b32", "min.s32", "max.s32", "min.u32", "max.u32", "cas.b32"),
    *("add.u64", "or.b64", "and.b64", "min.s64", "max.s64", "min.u64", "max.u64", "add.u32"),
]

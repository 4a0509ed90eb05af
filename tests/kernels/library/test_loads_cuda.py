"""Tests of loads whose sectors the L1 cache replaces first: their machine code, and their results when emulated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu_pregel.host.devices.emulated import EmulatedDevice
from tests.devices import EMULATED
from tests.kernels import chips
from tests.kernels.chips import CHIPS
from tests.packages import needs

needs("numba_cuda", "test")

from numba import cuda  # noqa: E402
from numba.cuda import types  # noqa: E402

from gpu_pregel.errors import GpuPregelError  # noqa: E402
from gpu_pregel.kernels.library.jit_cuda import kernel  # noqa: E402
from gpu_pregel.kernels.library.loads_cuda import load_once  # noqa: E402
from tests.kernels.ptx import to_ptx  # noqa: E402

WORDS = types.uint32[::1]


@kernel(WORDS, WORDS)
def copy_backwards(words: Any, found: Any) -> None:
    """Copy with positions of both types, from the last word to the first."""
    i, n = cuda.grid(1), np.int64(len(words))
    if i < len(found):
        found[i] = load_once(words, n - 1 - i) + load_once(words, np.uint32(0))


@pytest.mark.nvidia
@pytest.mark.parametrize("chip", CHIPS)
def test_one_instruction(chip: str) -> None:
    ptx = to_ptx(copy_backwards.function, copy_backwards.signature, CHIPS[chip], block=copy_backwards.block)
    loads = [line.split()[0] for line in ptx.splitlines() if line.strip().startswith("ld.global")]
    assert loads == ["ld.global.nc.L1::evict_first.u32"] * 2
    assert chips.assemble(ptx, chip).spilled == 0


@EMULATED
def test_values_and_bounds_when_emulated() -> None:
    device = EmulatedDevice()
    words, found = np.arange(10, 310, dtype=np.uint32), device.empty(300, np.uint32)
    device.launch(copy_backwards, 300, device.upload(words), found)
    assert device.download(found).tolist() == (words[::-1] + 10).tolist()
    with pytest.raises(GpuPregelError, match="words"):
        device.launch(copy_backwards, 300, device.upload(words[:299]), found)

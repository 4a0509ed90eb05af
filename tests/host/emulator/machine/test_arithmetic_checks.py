"""Tests of the checks of divisions, shifts and conversions."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_pregel.host.emulator.machine.arrays import EmulatedMemory
from tests.host.emulator.machine.ir_kernels import Code, expect_fault, launch


@pytest.fixture
def memory() -> EmulatedMemory:
    return EmulatedMemory()


@pytest.mark.parametrize(
    "divisor, dividend, bits, signed, text",
    [
        (0, 7, 32, 1, "divides 7 by zero"),
        (0xFFFFFFFF, 0x80000000, 32, 1, "divides the smallest integer by -1"),
        (-1, -(1 << 63), 64, 1, "divides the smallest integer by -1"),
        (0, 5, 64, 0, "divides 5 by zero"),
    ],
)
def test_invalid_divisions(
    memory: EmulatedMemory, divisor: int, dividend: int, bits: int, signed: int, text: str
) -> None:
    code = Code()
    code.call("emu_check_division", dividend, divisor, bits, signed, code.site("check"))
    with expect_fault("kernel.py line 10", "block 0, thread", text):
        launch(code)


def test_valid_divisions_and_shifts(memory: EmulatedMemory) -> None:
    code = Code()
    for dividend, divisor, bits, signed in (
        (0x80000000, 0xFFFFFFFF, 32, 0),
        (0x80000000, 0xFFFFFFFF, 64, 1),
        (5, 0xFFFFFFFF, 32, 1),
        (0x80000000, 1, 32, 1),
    ):
        code.call("emu_check_division", dividend, divisor, bits, signed, code.site("check"))
    for amount, bits in ((0, 32), (31, 32), (63, 64)):
        code.call("emu_check_shift", amount, bits, code.site("check"))
    launch(code)


@pytest.mark.parametrize("amount, bits", [(32, 32), (64, 64), (0xFFFFFFFF, 32), (-1, 64)])
def test_invalid_shifts(memory: EmulatedMemory, amount: int, bits: int) -> None:
    code = Code()
    code.call("emu_check_shift", amount, bits, code.site("check"))
    with expect_fault(f"shifts by {amount}, which is not less than the width of the integer"):
        launch(code)


def _convert(value: float, bits: int, signed: int) -> Code:
    code = Code()
    raw = int(np.array(value, np.float64).view(np.int64))
    code.call("emu_check_float", raw, bits, signed, code.site("check"))
    return code


@pytest.mark.parametrize(
    "value, bits, signed",
    [
        (float("nan"), 32, 1),
        (float("inf"), 64, 0),
        (2.0**31, 32, 1),
        (-(2.0**31) - 1, 32, 1),
        (-1.0, 32, 0),
        (2.0**32, 32, 0),
        (2.0**63, 64, 1),
        (-(2.0**63) * 1.1, 64, 1),
        (2.0**64, 64, 0),
        (128.0, 8, 1),
    ],
)
def test_conversions_out_of_range(value: float, bits: int, signed: int) -> None:
    with expect_fault(f"converts {value!r}"):
        launch(_convert(value, bits, signed))


@pytest.mark.parametrize(
    "value, bits, signed",
    [
        (2.0**31 - 1, 32, 1),
        (-(2.0**31) - 0.5, 32, 1),
        (-0.9, 32, 0),
        (2.0**32 - 0.5, 32, 0),
        (-(2.0**63), 64, 1),
        (2.0**63, 64, 0),
        (127.9, 8, 1),
        (-128.9, 8, 1),
    ],
)
def test_conversions_that_truncate(value: float, bits: int, signed: int) -> None:
    launch(_convert(value, bits, signed))

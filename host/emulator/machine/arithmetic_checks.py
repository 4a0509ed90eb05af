"""Checks of arithmetic that is undefined on a GPU or has a different result there than on a CPU."""

from __future__ import annotations

from gpu_pregel.host.emulator.machine import layout as at
from gpu_pregel.host.emulator.machine.hooks import hook
from gpu_pregel.host.emulator.machine.scheduler import fail
from gpu_pregel.host.emulator.machine.words import as_float, less_unsigned

_BIAS, _FRACTION = 1023, 52
"""Exponent bias and fraction bits of a float64."""


@hook("emu_check_division")
def _check_division(state: int, dividend: int, divisor: int, bits: int, signed: int, site: int) -> int:
    """Fail on a division by zero, or of the smallest integer by -1."""
    unused = 64 - bits
    # Only the low bits are significant.
    if divisor << unused == 0:
        fail(state, at.DIVISION_BY_ZERO, site, dividend)
    elif signed and (divisor << unused) >> unused == -1 and dividend << unused == -(1 << 63):
        fail(state, at.DIVISION_OVERFLOW, site, dividend)
    return 0


@hook("emu_check_shift")
def _check_shift(state: int, amount: int, bits: int, site: int) -> int:
    """Fail on a shift by at least the width of the integer."""
    if less_unsigned(amount, bits) == 0:
        fail(state, at.SHIFT_TOO_FAR, site, amount)
    return 0


@hook("emu_check_float")
def _check_float(state: int, value_bits: int, bits: int, signed: int, site: int) -> int:
    """Fail on a conversion of NaN, or of a value outside the integer's range."""
    value = as_float(value_bits)
    above = as_float((_BIAS + bits - (1 if signed else 0)) << _FRACTION)
    # The fraction is truncated: -0.5 becomes 0.
    fits = value < above and (value > -1.0 if signed == 0 else value > -above - 1.0 or value == -above)
    if not fits:
        fail(state, at.FLOAT_RANGE, site, value_bits)
    return 0

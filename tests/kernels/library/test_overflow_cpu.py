"""Checked integer arithmetic, compared with Python's exact integers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpu_pregel.kernels.library.overflow_cpu import OverflowChecker

checked = numba.njit(pipeline_class=OverflowChecker)
OPERATORS = {
    operator.add: checked(lambda a, b: a + b),
    operator.sub: checked(lambda a, b: a - b),
    operator.mul: checked(lambda a, b: a * b),
}
PAIRS = [(np.int64, np.int64), (np.uint64, np.uint64), (np.uint8, np.int32), (np.uint32, np.uint32)]


def _numbers(dtype: Any) -> Any:
    limits = np.iinfo(dtype)
    return st.integers(int(limits.min), int(limits.max)) | st.integers(0, 100)


@pytest.mark.parametrize(("left", "right"), PAIRS)
@pytest.mark.parametrize("exact", OPERATORS, ids=lambda one: one.__name__)
def test_results_are_exact_or_an_error_and_unsigned_ones_wrap(
    exact: Callable[[int, int], int], left: Any, right: Any
) -> None:
    limits, wraps = np.iinfo(np.int64), np.dtype(left).kind == np.dtype(right).kind == "u"

    @given(_numbers(left), _numbers(right))
    @example(int(np.iinfo(left).max), int(np.iinfo(right).max))
    @example(int(np.iinfo(left).min), int(np.iinfo(right).max))
    @example(0, 1)
    def check(a: int, b: int) -> None:
        if wraps:
            assert int(OPERATORS[exact](left(a), right(b))) == exact(a, b) % 2**64
        elif limits.min <= exact(a, b) <= limits.max:
            assert OPERATORS[exact](left(a), right(b)) == exact(a, b)
        else:
            with pytest.raises(OverflowError, match="integer overflow"):
                OPERATORS[exact](left(a), right(b))

    check()


POWERS_AND_SHIFTS = {
    operator.pow: checked(lambda a, b: a**b),
    operator.lshift: checked(lambda a, b: a << b),
    operator.rshift: checked(lambda a, b: a >> b),
}


@given(st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9), st.integers(0, 70))
def test_powers_and_shifts_are_exact_or_an_error(a: int, b: int) -> None:
    for exact, compiled in POWERS_AND_SHIFTS.items():
        if -(2**63) <= exact(a, b) < 2**63:
            assert compiled(a, b) == exact(a, b)
        else:
            with pytest.raises(OverflowError, match="integer overflow"):
                compiled(a, b)


def test_powers_and_shifts_of_other_types_are_unchanged() -> None:
    cube, power, shift = (lambda a, b: a**3), (lambda a, b: a**b), (lambda a, b: a << b)
    for a, b in (
        (1.1, 3),
        (0.3, 7),
        (2, 0.5),
        (np.float32(1.1), 5),
        (True, 2),
        (3.0, -2),
        (np.uint64(2), np.uint64(9)),
    ):
        assert checked(power)(a, b) == numba.njit(power)(a, b)
        assert checked(cube)(a, b) == numba.njit(cube)(a, b)
    assert checked(shift)(np.uint64(1), 63) == 2**63
    for count in (-1, -64):
        with pytest.raises(OverflowError):
            checked(shift)(1, count)


def test_in_place_operators_are_checked_and_other_types_are_unchanged() -> None:
    def multiply(base: int, exponent: int) -> int:
        result = 1
        for _ in range(exponent):
            result *= base
        return result

    power = checked(multiply)
    assert power(2, 62) == 2**62
    with pytest.raises(OverflowError):
        power(2, 63)
    add, subtract = OPERATORS[operator.add], OPERATORS[operator.sub]
    assert add(1e308, 1e308) == np.inf
    assert add(2, 0.5) == 2.5
    assert add(True, True) == 2
    assert add((1, 2.0), (3,)) == (1, 2.0, 3)
    assert subtract(np.arange(3), 1).tolist() == [-1, 0, 1]

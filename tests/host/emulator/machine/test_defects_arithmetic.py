"""Tests of arithmetic that is undefined on a GPU, and of similar kernels without a defect."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import cuda

from tests.host.emulator.launcher import SEEDS, fault_of, launch, memory, on_device


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
    assert "divides 13 by zero" in fault_of(kernel, on_device(values), on_device(by), out)
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
def test_shift_by_the_width_or_more(kernel: Any, dtype: Any) -> None:
    by = np.arange(32).astype(dtype)
    by[9] = 64
    values, out = np.arange(100, 132).astype(dtype), memory.empty(32, dtype)
    message = fault_of(kernel, on_device(values), on_device(by), out)
    assert "shifts by 64" in message
    by[9] = 63
    for seed in SEEDS:
        launch(kernel, on_device(values), on_device(by), out, seed=seed)
        np.testing.assert_array_equal(out.get(), values << by if kernel is shift_left else values >> by)


def shift_by_a_constant(out: Any) -> None:
    out[0] = out[1] << 64  # fault


def test_shift_by_a_constant_equal_to_the_width() -> None:
    assert "shifts by 64" in fault_of(shift_by_a_constant, on_device([1, 1]), block=1)


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
        message = fault_of(kernel, on_device(values), memory.empty(32, integer))
        assert f"converts {float(dtype(value))!r}" in message
    out = memory.empty(len(good), integer)
    launch(kernel, on_device(good, dtype), out, block=len(good))
    assert out.get().tolist() == [int(dtype(value)) for value in good]

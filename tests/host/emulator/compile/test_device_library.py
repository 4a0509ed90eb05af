"""Tests of the functions of libdevice against the host's math library."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import cuda
from numba.cuda import libdevice

from tests.host.emulator.launcher import launch, memory, on_device


def test_bit_operations() -> None:
    def kernel(small: Any, large: Any, out: Any) -> None:
        i = cuda.grid(1)
        out[i] = cuda.popc(small[i])
        out[32 + i] = cuda.clz(small[i])
        out[64 + i] = cuda.ffs(small[i])
        out[96 + i] = cuda.brev(small[i])
        out[128 + i] = cuda.popc(large[i])
        out[160 + i] = cuda.clz(large[i])
        out[192 + i] = cuda.ffs(large[i])
        out[224 + i] = cuda.brev(large[i])
        out[256 + i] = cuda.selp(small[i] > 5, np.int64(small[i]), np.int64(i))

    random = np.random.default_rng(1)
    large = random.integers(0, 1 << 64, 32, np.uint64) >> random.integers(0, 64, 32).astype(np.uint64)
    large[0] = 0
    small = large.astype(np.uint32)
    out = memory.empty(9 * 32, np.uint64)
    launch(kernel, on_device(small), on_device(large), out)

    def ffs(value: int) -> int:
        return (value & -value).bit_length()

    expected: list[list[int]] = []
    for values, width in ((small.tolist(), 32), (large.tolist(), 64)):
        expected += [
            [value.bit_count() for value in values],
            [width - value.bit_length() for value in values],
            [ffs(value) for value in values],
            [int(f"{value:0{width}b}"[::-1], 2) for value in values],
        ]
    expected.append([value if value > 5 else i for i, value in enumerate(small.tolist())])
    assert out.get().reshape(9, 32).tolist() == expected


UNARY: dict[str, tuple[Callable[[float], Any], float]] = {
    "sqrt": (math.sqrt, 0.0), "fabs": (abs, 0.0), "floor": (math.floor, 0.0), "ceil": (math.ceil, 0.0),
    "trunc": (math.trunc, 0.0), "rint": (round, 0.0), "nearbyint": (round, 0.0),
    "exp": (math.exp, 4e-16), "exp2": (lambda x: 2.0**x, 4e-16), "exp10": (lambda x: 10.0**x, 1e-15),
    "expm1": (math.expm1, 4e-16), "log": (math.log, 4e-16), "log2": (math.log2, 4e-16),
    "log10": (math.log10, 4e-16), "log1p": (math.log1p, 4e-16), "sin": (math.sin, 4e-16), "cos": (math.cos, 4e-16),
    "tan": (math.tan, 4e-16), "atan": (math.atan, 4e-16), "sinh": (math.sinh, 1e-15), "cosh": (math.cosh, 1e-15),
    "tanh": (math.tanh, 4e-16), "asinh": (math.asinh, 1e-15), "cbrt": (math.cbrt, 4e-16), "erf": (math.erf, 4e-16),
    "erfc": (math.erfc, 1e-15), "tgamma": (math.gamma, 2e-15), "lgamma": (math.lgamma, 2e-15),
    "rsqrt": (lambda x: 1 / math.sqrt(x), 4e-16), "rcbrt": (lambda x: 1 / math.cbrt(x), 4e-16),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(UNARY))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_unary_functions(name: str, dtype: Any) -> None:
    reference, tolerance = UNARY[name]
    function = getattr(libdevice, name + ("f" if dtype is np.float32 else ""))

    def kernel(values: Any, out: Any) -> None:
        i = cuda.grid(1)
        out[i] = function(values[i])

    values = np.array([0.25, 0.5, 0.75, 1.5, 2.5, 3.25, 7.0, 11.5], dtype)
    out = memory.empty(8, dtype)
    launch(kernel, on_device(values), out, block=8)
    expected = np.array([float(reference(float(value))) for value in values]).astype(dtype)
    if tolerance == 0.0:
        np.testing.assert_array_equal(out.get(), expected)
    else:
        np.testing.assert_allclose(out.get(), expected, rtol=tolerance if dtype is np.float64 else 5e-7, atol=1e-15)


def test_binary_functions() -> None:
    def kernel(x: Any, y: Any, out: Any) -> None:
        out[0] = math.pow(x[0], y[0])
        out[1] = math.atan2(x[0], y[0])
        out[2] = math.fmod(x[0], y[0])
        out[3] = math.copysign(x[0], y[0])
        out[4] = min(x[0], y[0])
        out[5] = max(x[0], y[0])
        out[6] = cuda.fma(x[0], y[0], 1.0)
        out[7] = math.hypot(x[0], y[0])
        out[8] = x[0] % y[0]
        out[9] = x[0] / y[0]
        out[10] = libdevice.ldexp(x[0], np.int32(3))
        out[11] = x[0] // y[0]
        out[12] = x[0] ** 3
        out[13] = libdevice.fmax(x[0], math.nan)

    out = memory.empty(14, np.float64)
    launch(kernel, on_device([7.25]), on_device([-2.5]), out, block=1)
    expected = [
        math.pow(7.25, -2.5), math.atan2(7.25, -2.5), math.fmod(7.25, -2.5), -7.25, -2.5, 7.25, -17.125,
        math.hypot(7.25, 2.5), 7.25 % -2.5, -2.9, 58.0, -3.0, 7.25**3, 7.25,
    ]  # fmt: skip
    np.testing.assert_allclose(out.get(), expected, rtol=1e-15)


def test_conversions() -> None:
    def kernel(values: Any, out: Any) -> None:
        i = cuda.grid(1)
        x = values[i]
        out[i] = np.int32(x)
        out[4 + i] = round(x)
        out[8 + i] = libdevice.double2int_rd(x)
        out[12 + i] = libdevice.double2int_ru(x)
        out[16 + i] = libdevice.double2int_rn(x)
        out[20 + i] = libdevice.double_as_longlong(x)
        out[24 + i] = math.isnan(x) + 2 * math.isinf(x)
        out[28 + i] = np.int64(np.float32(x))

    values = np.array([2.5, -2.5, 1e9, -0.75])
    out = memory.empty(32, np.int64)
    launch(kernel, on_device(values), out, block=4)
    expected = [
        [2, -2, 10**9, 0], [2, -2, 10**9, -1], [2, -3, 10**9, -1], [3, -2, 10**9, 0], [2, -2, 10**9, -1],
        values.view(np.int64).tolist(), [0] * 4, [2, -2, 10**9, 0],
    ]  # fmt: skip
    assert out.get().reshape(8, 4).tolist() == expected

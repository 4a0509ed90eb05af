"""Tests that random expressions and branches have the same results as Numba on the CPU."""

from __future__ import annotations

import linecache
from typing import Any

import numba
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_pregel.kernels.library.jit_cuda import device
from tests.devices import EXHAUSTIVE
from tests.host.emulator.launcher import launch, memory, on_device

_INTEGERS = np.array([0, 1, -1, 2, 7, -13, 63, 1 << 31, -(1 << 40), (1 << 63) - 1])
_FLOATS = np.array([0.0, -0.0, 1.5, -2.25, 1e10, 1e-300, np.inf, -np.inf, 3.0, 0.1])


def _expressions() -> st.SearchStrategy[str]:
    leaves = st.sampled_from(["x", "y", "i", "np.int32(x)", "np.uint8(y)", "np.uint32(i)", "3", "-2", "f", "g", "0.5"])

    def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        pairs = st.tuples(inner, st.sampled_from(["+", "-", "*", "/"]), inner).map(lambda p: f"({p[0]} {p[1]} {p[2]})")
        choices = st.tuples(inner, st.sampled_from(["<", "==", ">="]), inner, inner, inner).map(
            lambda c: f"({c[3]} if {c[0]} {c[1]} {c[2]} else {c[4]})"
        )
        functions = st.tuples(st.sampled_from(["abs", "min", "max"]), inner, inner).map(
            lambda c: f"{c[0]}({c[1]})" if c[0] == "abs" else f"{c[0]}({c[1]}, {c[2]})"
        )
        return pairs | choices | functions

    return st.recursive(leaves, grown, max_leaves=8)


def _compile(source: str, **names: Any) -> Any:
    """Compile a function from source that Numba and debuggers can read."""
    file = f"<random {hash(source)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec"), names)
    return names["generated"]


@settings(max_examples=60 if EXHAUSTIVE else 15)
@given(first=_expressions(), second=_expressions(), bits=st.sampled_from(["x & y", "x ^ i", "(x | 5) >> 3", "~y << 2"]))
def test_results_equal_those_on_the_cpu(first: str, second: str, bits: str) -> None:
    source = (
        "def generated(x, y, i, f, g):\n"
        f"    a = {first}\n"
        f"    b = {second}\n"
        f"    c = {bits}\n"
        "    total = 0.0\n"
        "    for k in range(i):\n"
        "        if a < b:\n"
        "            total += a\n"
        "        else:\n"
        "            total -= c * 0.5\n"
        "    return float(a), float(b), float(total)\n"
    )
    plain = _compile(source, np=np)
    helper = device(plain)
    on_cpu = numba.njit(error_model="numpy")(plain)

    def kernel(x: Any, y: Any, f: Any, g: Any, out: Any) -> None:
        i = numba.cuda.grid(1)
        a, b, c = helper(x[i], y[i], i, f[i], g[i])
        out[i], out[10 + i], out[20 + i] = a, b, c

    y, g = np.roll(_INTEGERS, 3), np.roll(_FLOATS, 4)
    out = memory.empty(30, np.float64)
    launch(kernel, on_device(_INTEGERS), on_device(y), on_device(_FLOATS), on_device(g), out, block=10)
    expected = [on_cpu(_INTEGERS[i], y[i], np.int64(i), _FLOATS[i], g[i]) for i in range(10)]
    np.testing.assert_array_equal(out.get().reshape(3, 10), np.array(expected).T)

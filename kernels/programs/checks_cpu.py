"""A program's functions with checks that their results fit the declared dtypes, for ``check=True`` on the CPU."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np

from gpu_pregel.kernels.library.jit_cpu import device
from gpu_pregel.kernels.programs.functions import Functions
from gpu_pregel.kernels.traverse.fields import Fields, generated, make_cast


def with_checks(functions: Functions) -> Functions:
    """Return functions that raise ``OverflowError`` if a result does not fit its dtype; unsigned messages wrap."""
    value, message = functions.value, functions.message
    aggregators = []
    for name, function, combine, dtype, start in functions.aggregators:
        fields = Fields((dtype,), False)
        aggregators.append((name, _fitted(function, 3, fields), _fitted(combine, 2, fields), dtype, start))
    send = _fitted(functions.send, 3 if functions.per_edge else 2, message)
    return replace(
        functions,
        init=_fitted(functions.init, 1, value),
        send=send if functions.per_edge else _make_send_if_edges(send, functions),
        combine=_fitted(functions.combine, 2, message, wraps=True),
        apply=_fitted(functions.apply, 3, value),
        aggregators=tuple(aggregators),
    )


def _make_send_if_edges(send: Any, functions: Functions) -> Any:
    """``send(value, ctx)``, which is not called for a vertex without out-edges: it may divide by their number."""
    identity, cast = functions.identity, make_cast(device, functions.message)

    @device
    def send_if_edges(value, ctx):
        # Both results have the declared type: of int64 and uint64, for example, Numba would make float64.
        if ctx.out_degree == 0:
            return cast(identity)
        return cast(send(value, ctx))

    return send_if_edges


def _fitted(function: Any, arity: int, fields: Fields, *, wraps: bool = False) -> Any:
    """Return a function that checks the result of ``function``, but unsigned fields not if it ``wraps``."""
    checked = {k: dtype for k, dtype in enumerate(fields.dtypes) if not (wraps and dtype.kind == "u")}
    names = {f"check{k}": _make_check(dtype) for k, dtype in checked.items()}
    arguments = ", ".join("abc"[:arity])
    checks = [f"    check{k}({f'x[{k}]' if fields.is_tuple else 'x'})\n" for k in checked]
    source = f"def fitted({arguments}):\n    x = function({arguments})\n{''.join(checks)}    return x\n"
    return generated(device, "fitted", source, function=function, **names)


@functools.cache
def _make_check(dtype: np.dtype[Any]) -> Any:
    """``check(x)``: raise an error if a number does not fit a dtype."""
    if dtype == np.int64:

        def check(x):
            # Numba compares uint64 with int64 as floats, which do not tell 2**63 from the largest int64.
            if x > 0 and np.int64(x) < 0:
                raise OverflowError("a result does not fit its dtype")

    elif dtype.kind in "iu":
        low, high = dtype.type(np.iinfo(dtype).min), dtype.type(np.iinfo(dtype).max)

        def check(x):
            if x < low or x > high:
                raise OverflowError("a result does not fit its dtype")

    elif dtype == np.float32:

        def check(x):
            if np.isinf(np.float32(x)) and not np.isinf(x):
                raise OverflowError("a result does not fit its dtype")

    else:

        def check(x):
            pass

    return device(check)

"""Users' functions in the Python interpreter: how NumPy treats their arithmetic, and where they fail."""

from __future__ import annotations

import linecache
import math
from types import TracebackType
from typing import Any

import numpy as np

from gpu_pregel.host.traverse.combiners import field_names
from gpu_pregel.host.traverse.compiled_arithmetic import Elements
from gpu_pregel.host.traverse.unsigned import on_overflow
from gpu_pregel.kernels.traverse.fields import Fields

STRICT: dict[str, Any] = {
    "divide": "raise",
    "over": "call",
    "invalid": "raise",
    "under": "ignore",
    "call": on_overflow,
}
"""How NumPy treats the arithmetic of NumPy scalars in a program's functions: what it would warn about is an error.

Unsigned integers wrap around, as in compiled code.
"""


def indexed_expression(trace: TracebackType | None) -> str:
    """Return the expression with an index at which a traceback ends, as in ``table[ctx.vertex]: ``, or nothing."""
    elements = Elements.__getitem__.__code__
    while trace is not None and trace.tb_next is not None and trace.tb_next.tb_frame.f_code is not elements:
        trace = trace.tb_next
    if trace is None:
        return ""
    code = trace.tb_frame.f_code
    line, last, begin, end = list(code.co_positions())[trace.tb_lasti // 2]
    text = linecache.getline(code.co_filename, line or 0)
    if not text or line != last or begin is None or end is None:
        return ""
    return f"{text.encode()[begin:end].decode()}: "


BOOL = Fields((np.dtype(np.bool_),), False)
"""The result of a function that answers yes or no."""


class MisfitError(Exception):
    """What a function returns, and why it cannot be stored."""


def fit(result: Any, fields: Fields, *, wraps: bool = False) -> Any:
    """Return a function's result as Python numbers, rounded to the declared dtypes, or raise ``MisfitError``.

    With ``wraps``, as for combined messages, unsigned integers wrap around.
    """
    if fields.data is not None:
        if not isinstance(result, fields.data):
            raise MisfitError(f"{result!r:.80} of type {type(result).__name__}, but {fields.data.__name__} is declared")
        return result
    if not fields.is_tuple:
        return _fit_number(result, fields.dtypes[0], wraps=wraps)
    if not isinstance(result, tuple) or len(result) != len(fields.dtypes):
        found = f"a tuple of {len(result)}" if isinstance(result, tuple) else f"{result!r:.80}"
        raise MisfitError(f"{found}, but {field_names(fields)} is declared")
    parts = zip(result, fields.dtypes, strict=True)
    return fields.pack([_fit_number(part, dtype, wraps=wraps) for part, dtype in parts])


def _fit_number(number: Any, dtype: np.dtype[Any], *, wraps: bool) -> bool | int | float:
    number = number.item() if isinstance(number, np.generic) else number
    if not isinstance(number, (bool, int, float)):
        raise MisfitError(f"{number!r:.80} of type {type(number).__name__}, but {dtype} is declared")
    if dtype.kind == "f":
        return _fit_float(number, dtype)
    if isinstance(number, float):
        raise MisfitError(
            f"the float {number!r}, but {dtype} is declared, and floats are not converted to integers silently: "
            f"convert the result, as with int(x), or declare float64"
        )
    if dtype.kind == "b":
        return bool(number)
    limits = np.iinfo(dtype)
    if wraps and dtype.kind == "u":
        return int(number) & int(limits.max)
    if not limits.min <= number <= limits.max:
        raise MisfitError(f"{_shown(number)}, which does not fit {dtype} ({limits.min} to {limits.max})")
    return int(number)


def _fit_float(number: int | float, dtype: np.dtype[Any]) -> float:
    try:
        with np.errstate(over="ignore"):
            rounded = float(dtype.type(number))
    except OverflowError:  # an integer beyond the largest float
        rounded = math.inf
    if math.isinf(rounded) and not (isinstance(number, float) and math.isinf(number)):
        raise MisfitError(f"{_shown(number)}, which does not fit {dtype} (at most {np.finfo(dtype).max:.4g})")
    return rounded


def _shown(number: int | float) -> str:
    """Format a number; Python refuses to format integers of thousands of digits."""
    is_long = isinstance(number, int) and number.bit_length() > 256
    return "an integer of more than 256 bits" if is_long else repr(number)

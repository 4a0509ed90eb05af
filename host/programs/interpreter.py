"""Calls of a program's functions by the Python interpreter, and checks of what they return.

Functions get and return Python numbers: integers are exact, and floats have 64 bits. Only a result is rounded to its
declared dtype, as in compiled code.
"""

from __future__ import annotations

import linecache
import math
from collections.abc import Callable
from types import TracebackType
from typing import Any

import numpy as np

from gpu_pregel.errors import VertexError
from gpu_pregel.host.programs.combiners import field_names
from gpu_pregel.host.programs.compiled_arithmetic import Elements
from gpu_pregel.host.programs.functions import interpreted_function
from gpu_pregel.host.programs.unsigned import on_overflow
from gpu_pregel.kernels.programs.fields import Fields, VertexContext
from gpu_pregel.kernels.programs.stages import stage_of

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

BOOL = Fields((np.dtype(np.bool_),), False)
"""The result of a function that answers yes or no."""


class UserFunction:
    """A function of a program, which is called as it is.

    Parameters
    ----------
    role : str
        What the function is in the program, such as "apply".
    function : callable
    fields : Fields
        The declared type of its result.
    id_of : callable
        Returns the user's id of a vertex.
    number : int
        That of an aggregator.
    copies_arrays : bool
        As in :func:`interpreted_function`.
    """

    def __init__(
        self,
        role: str,
        function: Any,
        fields: Fields,
        id_of: Callable[[int], Any],
        number: int = 0,
        *,
        copies_arrays: bool = False,
    ) -> None:
        self.role, self._stage = role, stage_of(role, number)
        self._function = interpreted_function(function, copies_arrays=copies_arrays)
        self._fields, self._id_of = fields, id_of

    def __call__(self, vertex: int, superstep: int, *arguments: Any) -> Any:
        """Call the function for a vertex, and return its result as Python numbers that fit the declared type.

        Raises
        ------
        VertexError
            The function divides by zero, indexes out of range or calls itself too deeply, or its result does not fit.
            Any other exception of the function is raised as it is, with a note that names the vertex.
        """
        if isinstance(arguments[-1], VertexContext):
            arguments = (*arguments[:-1], arguments[-1].at_stage(self._stage))
        try:
            result = self._function(*arguments)
        except (ArithmeticError, IndexError, RecursionError) as error:
            subject = indexed_expression(error.__traceback__) if "out of bounds for axis" in str(error) else ""
            failure, trace = f"{type(error).__name__}: {subject}{error}", error.__traceback__
        except Exception as error:
            place = line_of(self._function, error.__traceback__)
            error.add_note(
                f"raised by {self.role} for vertex {self._id_of(vertex)!r} in superstep {superstep} ({place})"
            )
            raise
        else:
            try:
                return fit(result, self._fields, wraps=self.role == "combine")
            except MisfitError as error:
                failure, trace = f"it returns {error}", None
        place = line_of(self._function, trace)
        failed = VertexError(self.role, self._id_of(vertex), superstep, failure, place)
        # With this traceback a debugger starts in the function.
        raise failed.with_traceback(trace)


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


def line_of(function: Any, trace: TracebackType | None = None) -> str:
    """Return the file and line in which a traceback leaves the user's code, or those of the function, with its text."""
    code = getattr(function, "py_func", function).__code__
    file, line = code.co_filename, code.co_firstlineno
    while trace is not None:
        name = trace.tb_frame.f_globals.get("__name__", "").split(".")[0]
        if name not in ("numpy", "collections", "gpu_pregel") or trace.tb_frame.f_code is code:
            file, line = trace.tb_frame.f_code.co_filename, trace.tb_lineno
        trace = trace.tb_next
    if file == "<string>":  # a built-in combiner
        return ""
    text = linecache.getline(file, line).strip()
    return f"{file}, line {line}{f': {text}' if text else ''}"


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

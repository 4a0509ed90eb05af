"""Users' functions in the Python interpreter: how NumPy treats their arithmetic, and where they fail."""

from __future__ import annotations

import linecache
from types import TracebackType
from typing import Any

from gpu_pregel.host.traverse.unsigned import on_overflow

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
    while trace is not None and trace.tb_next is not None:
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


def text_of(error: Exception) -> str:
    """Return the class and text of an error."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__

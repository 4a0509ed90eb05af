"""Unsigned integers of NumPy wrap around in interpreted functions, as they do in compiled ones; signed ones do not.

NumPy reports both as an overflow. The operands are looked up in the source of the expression that overflows.
"""

from __future__ import annotations

import ast
import linecache
import sys
import textwrap
from types import FrameType
from typing import Any

import numpy as np


def on_overflow(kind: str, flag: int) -> None:  # noqa: ARG001 (NumPy calls it so)
    """Raise ``FloatingPointError`` unless the operation that overflows is one of unsigned integers that wraps."""
    frame = sys._getframe(1)
    dtype = _unsigned_dtype(frame)
    if dtype is None:
        raise FloatingPointError(f"{kind} encountered")
    if dtype.itemsize == 8 or frame.f_globals.get("__name__", "").startswith("gpu_pregel.kernels."):
        return
    before, _ = _source(frame)
    if not before.rstrip().endswith(f"{dtype}("):
        raise FloatingPointError(
            f"a result exceeds {dtype}, in which NumPy wraps around; compiled code computes in 64 bits: convert the "
            f"operands by np.uint64, or the result of each operation, as in np.{dtype}(a * b)"
        )


def _source(frame: FrameType) -> tuple[str, str]:
    """Return the text of the running expression, after what stands before it on its line; empty if unknown."""
    line, last, begin, end = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    if line is None or last is None or begin is None or end is None:
        return "", ""
    lines = [linecache.getline(frame.f_code.co_filename, k).encode() for k in range(line, last + 1)]
    lines[-1] = lines[-1][:end]
    before, lines[0] = lines[0][:begin], lines[0][begin:]
    return before.decode(), b"".join(lines).decode()


def _unsigned_dtype(frame: FrameType) -> np.dtype[Any] | None:
    """Return the dtype of the running operation if its operands are unsigned integers of NumPy, or None."""
    _, text = _source(frame)
    try:
        (node,) = ast.parse(f"({text})" if "\n" in text else textwrap.dedent(text)).body
    except (SyntaxError, ValueError):
        return None
    if isinstance(node, ast.AugAssign):
        sides: list[Any] = [node.target, node.value]
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.BinOp):
        sides = [node.value.left, node.value.right]
    else:
        return None
    found = []
    for side in sides:
        try:
            found.append(eval(ast.unparse(side), frame.f_globals, dict(frame.f_locals)))
        except Exception:  # it depends on what is gone
            return None
    arrays = [one for one in found if isinstance(one, np.generic)]
    if not arrays or any(one.dtype.kind != "u" for one in arrays):
        return None
    # A Python integer takes the dtype of the other operand, as NumPy checks.
    if any(not isinstance(one, (np.generic, int)) for one in found):
        return None
    return np.result_type(*arrays)

"""Arithmetic of compiled code in the interpreter, where Python's differs: of captured float32 scalars, and ``~``."""

from __future__ import annotations

import ast
import dis
import linecache
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType
from typing import Any

import numpy as np

_OPERATORS = ["add", "sub", "mul", "truediv", "floordiv", "mod", "divmod"]
_BINARY = [f"__{prefix}{name}__" for name in _OPERATORS for prefix in ("", "r")]
_POWERS = ["__pow__", "__rpow__"]
_COMPARISONS = [f"__{name}__" for name in ("lt", "le", "eq", "ne", "gt", "ge")]
_UNARY = ["__neg__", "__pos__", "__abs__"]


class Float32(np.float32):
    """A float32 that a function has captured: its results with numbers of Python have 64 bits, as in compiled code.

    NumPy rounds the numbers of Python, which have no dtype there, to 32 bits.

    Examples
    --------
    >>> np.float32(0.1) * 3.0, Float32(0.1) * 3.0
    (np.float32(0.3), np.float64(0.30000000447034836))
    """

    __slots__ = ()
    __hash__ = np.float32.__hash__

    def __array_ufunc__(self, function: Any, method: str, *operands: Any, **options: Any) -> Any:
        """Call a function of NumPy such as ``np.sqrt``."""
        plain = [_plain(one) for one in operands]
        return _kept(getattr(function, method)(*plain, **options))


def _widened(name: str) -> Any:
    plain, wide = getattr(np.float32, name), getattr(np.float64, name)

    def operate(self: Any, other: Any, *modulus: Any) -> Any:
        if name == "__pow__" and isinstance(other, (int, np.integer)):
            return _kept(plain(np.float32(self), int(other), *modulus))
        if isinstance(other, (int, float)) and type(other) is not bool:
            return wide(np.float64(self), other, *modulus)
        return _kept(plain(np.float32(self), other, *modulus))

    return operate


def _unchanged(name: str) -> Any:
    plain = getattr(np.float32, name)
    return lambda self: _kept(plain(np.float32(self)))


def _plain(operand: Any) -> Any:
    """Return an operand of a function of NumPy with the type that it has in compiled code."""
    if type(operand) is Float32:
        return np.float32(operand)
    return np.float64(operand) if type(operand) in (int, float) else operand


def _kept(result: Any) -> Any:
    """Return a result of 32 bits as a ``Float32``."""
    if type(result) is tuple:
        return tuple(map(_kept, result))
    return Float32(result) if type(result) is np.float32 else result


for _name in (*_BINARY, *_POWERS, *_COMPARISONS):
    setattr(Float32, _name, _widened(_name))
for _name in _UNARY:
    setattr(Float32, _name, _unchanged(_name))


def inverting_bools(code: CodeType) -> CodeType:
    """Return code in which ``~`` is ``not`` for bools, as in compiled code; Python gives -1 or -2, which are true.

    It is the code itself if it has no ``~``, or if its source is not known.
    """
    if not _inverts(code):
        return code
    return _inverting(code, code.co_filename)


@lru_cache(1000)
def _inverts(code: CodeType) -> bool:
    """Whether a function, or one inside it, has a ``~``."""
    return any(one.opname == "UNARY_INVERT" for each in _nested(code) for one in dis.get_instructions(each))


@lru_cache(1000)
def _inverting(code: CodeType, file: str) -> CodeType:
    """Return the code that inverts bools; code of two files may be equal, so that the file is part of the key."""
    text = "".join(linecache.getlines(file))
    try:
        tree = ast.parse(text)
        before = compile(text, file, "exec", dont_inherit=True)
        after = compile(ast.fix_missing_locations(_Inversions().visit(tree)), file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return code
    pairs = zip(_nested(before), _nested(after), strict=True)
    return next((new for old, new in pairs if old == code and old.co_freevars == new.co_freevars), code)


def _nested(code: CodeType) -> Iterator[CodeType]:
    """Yield code and that of the functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


class _Inversions(ast.NodeTransformer):
    """Replaces ``~x`` by ``(not y) if (y := x) is True or y is False else ~y``."""

    def __init__(self) -> None:
        self._count = 0

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Invert) or isinstance(node.operand, ast.Constant):
            return node  # Python computes ~True when it compiles
        self._count += 1
        name = f"_inverted_{self._count}"

        def read() -> ast.Name:
            return ast.Name(name, ast.Load())

        stored = ast.NamedExpr(ast.Name(name, ast.Store()), node.operand)
        is_bool = ast.BoolOp(
            ast.Or(),
            [
                ast.Compare(stored, [ast.Is()], [ast.Constant(True)]),
                ast.Compare(read(), [ast.Is()], [ast.Constant(False)]),
            ],
        )
        chosen = ast.IfExp(is_bool, ast.UnaryOp(ast.Not(), read()), ast.UnaryOp(ast.Invert(), read()))
        return ast.copy_location(chosen, node)

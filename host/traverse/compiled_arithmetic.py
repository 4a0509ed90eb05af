"""Arithmetic of compiled code in the interpreter, where Python's and NumPy's differ.

Captured scalars and elements of arrays that are bools or float32, ``~`` of bools, shifts, and powers of integers.
"""

from __future__ import annotations
import __future__

import ast
import dis
import linecache
import operator
from collections.abc import Callable, Iterator
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


class Elements(np.ndarray[Any, Any]):
    """A view of an array of bools or float32, whose elements compute as in compiled code.

    Examples
    --------
    >>> flags = np.array([True, True])
    >>> flags[0] + flags[1], compiled_value(flags)[0] + compiled_value(flags)[1]
    (np.True_, 2)
    """

    def __getitem__(self, index: Any) -> Any:
        """Return an element, or a view."""
        return compiled_value(super().__getitem__(index))

    def __iter__(self) -> Iterator[Any]:
        """Yield the elements, or views."""
        return (self[k] for k in range(len(self)))

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """Return the result of a function of NumPy, such as ``np.sum``."""
        plain = np.asarray(array)
        return compiled_value(plain[()]) if return_scalar else plain


def compiled_value(value: Any) -> Any:
    """Return a value of NumPy as one that computes as in compiled code; anything else as it is."""
    if type(value) is np.float32:
        return Float32(value)
    if isinstance(value, np.bool_):
        return bool(value)
    if type(value) in (np.ndarray, np.memmap) and value.ndim > 0 and value.dtype in (np.bool_, np.float32):
        return value.view(Elements)
    return value


def _inverted(number: Any) -> Any:
    """Return ``~number``; of a bool, Python gives -1 or -2, which are true."""
    return not number if number is True or number is False else ~number


def _left_shifted(number: Any, count: Any) -> Any:
    """Return ``number << count``."""
    return _shifted(number, count, operator.lshift)


def _right_shifted(number: Any, count: Any) -> Any:
    """Return ``number >> count``."""
    return _shifted(number, count, operator.rshift)


def _shifted(number: Any, count: Any, shift: Callable[[Any, Any], Any]) -> Any:
    """Shift in 64 bits; NumPy does in those of the dtypes."""
    if isinstance(count, (int, np.integer)) and not 0 <= count < 64:
        raise OverflowError(f"a shift by {count}, but compiled code shifts by 0 to 63")
    if not isinstance(number, np.integer) and not isinstance(count, np.integer):
        return shift(number, count)
    kind = _wide_type(number)
    return _result(shift(kind(number), kind(count)), number)


def _power(number: Any, exponent: Any) -> Any:
    """Return ``number**exponent``, of integers of NumPy in 64 bits."""
    if not isinstance(number, (int, np.integer)) or not isinstance(exponent, (int, np.integer)):
        return number**exponent
    if exponent < 0:
        raise OverflowError(f"an integer to the power {exponent}, which is 0 in compiled code: convert it by float")
    if not isinstance(number, np.integer) and not isinstance(exponent, np.integer):
        return number**exponent
    limits = np.iinfo(_wide_type(number, exponent))
    if exponent < 64 or abs(int(number)) < 2:
        exact = int(number) ** int(exponent)
        if limits.min <= exact <= limits.max:
            return _result(exact, number)
    raise OverflowError(f"{number}**{exponent} exceeds 64 bits")


def _wide_type(*numbers: Any) -> Any:
    """Return the type of the result of an operation of integers in compiled code, where only uint64 has large ones."""

    def is_unsigned(number: Any) -> bool:
        return isinstance(number, np.unsignedinteger) or int(number) > np.iinfo(np.int64).max

    return np.uint64 if all(map(is_unsigned, numbers)) else np.int64


def _result(integer: Any, number: Any) -> Any:
    """Return an integer as one of Python, unless it is to wrap around."""
    return np.uint64(integer) if isinstance(number, np.uint64) else int(integer)


_HELPERS: dict[type, Callable[..., Any]] = {
    ast.Invert: _inverted,
    ast.LShift: _left_shifted,
    ast.RShift: _right_shifted,
    ast.Pow: _power,
}
HELPERS = {f"_gpu_pregel{function.__name__}": function for function in _HELPERS.values()}
"""What code of :func:`compiled_operators` calls, by the names of the globals."""


def compiled_operators(code: CodeType) -> CodeType:
    """Return code in which ``~``, ``<<``, ``>>`` and ``**`` are calls of functions that compute as compiled code.

    It is the code itself if it has no such operator, or if its source is not known.
    """
    if not _has_operators(code):
        return code
    file = code.co_filename
    twins = _twins(file, "".join(linecache.getlines(file)), code.co_flags & __future__.annotations.compiler_flag)
    return twins.get(code, code)


@lru_cache(1000)
def _has_operators(code: CodeType) -> bool:
    """Whether a function, or one inside it, has an operator that becomes a call."""
    return any(
        one.opname == "UNARY_INVERT" or (one.opname == "BINARY_OP" and one.argrepr.rstrip("=") in ("<<", ">>", "**"))
        for each in _nested(code)
        for one in dis.get_instructions(each)
    )


@lru_cache(16)
def _twins(file: str, text: str, flags: int) -> dict[CodeType, CodeType]:
    """Return the code of each function of a file, with that which calls functions instead of operators.

    ``flags`` are those of features that the file need not import itself, as in notebooks.
    """
    try:
        tree = ast.parse(text)
        before = compile(text, file, "exec", flags, dont_inherit=True)
        after = compile(ast.fix_missing_locations(_Calls().visit(tree)), file, "exec", flags, dont_inherit=True)
    except (SyntaxError, ValueError):
        return {}
    return dict(zip(_nested(before), _nested(after), strict=True))


def _nested(code: CodeType) -> Iterator[CodeType]:
    """Yield code and that of the functions inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


_NAMED = (ast.Name, ast.Attribute, ast.Call)
"""Nodes of which expressions that are not constant have at least one."""


class _Calls(ast.NodeTransformer):
    """Replaces operators by calls; those of constants, which Python computes when it compiles, remain."""

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        self.generic_visit(node)
        return self._call(node, node.op, node.operand)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        self.generic_visit(node)
        return self._call(node, node.op, node.left, node.right)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        self.generic_visit(node)
        if type(node.op) not in _HELPERS or not isinstance(node.target, ast.Name):
            return node
        value = self._call(node, node.op, ast.copy_location(ast.Name(node.target.id, ast.Load()), node), node.value)
        return ast.copy_location(ast.Assign([node.target], value), node)

    @staticmethod
    def _call(node: Any, sign: ast.AST, *operands: ast.expr) -> Any:
        if type(sign) not in _HELPERS or not any(
            isinstance(one, _NAMED) for each in operands for one in ast.walk(each)
        ):
            return node
        name = ast.Name(f"_gpu_pregel{_HELPERS[type(sign)].__name__}", ast.Load())
        return ast.copy_location(ast.Call(name, [*operands], []), node)

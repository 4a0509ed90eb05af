"""Unsigned integers of NumPy wrap around in interpreted functions, as they do in compiled ones; signed ones do not.

NumPy reports both as an overflow, without the operands. Their types are inferred from the bytecode of the function that
is running, whose variables are known; nothing of it is called or evaluated again.
"""

from __future__ import annotations

import dis
import sys
from functools import lru_cache
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import numpy as np

_MOST_CALLS = 8
"""Depth of nested calls whose results are inferred."""
_JUMPS = frozenset(dis.hasjrel) | frozenset(dis.hasjabs)
_ENDS = ("RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE")
_VARIABLES = ("LOAD_FAST", "LOAD_DEREF", "LOAD_NAME", "LOAD_CLASSDEREF", "LOAD_GLOBAL")
_SKIPPED = ("CACHE", "PRECALL", "RESUME", "NOP", "EXTENDED_ARG", "NOT_TAKEN", "KW_NAMES")
_UINT64 = np.dtype(np.uint64)


class _Unknown:
    """A value of unknown type, or the place of a call that has no object."""


_UNKNOWN: Any = _Unknown()
_NOTHING: Any = _Unknown()


class _OfType:
    """A value of which only the dtype is known."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype


def on_overflow(kind: str, flag: int) -> None:  # noqa: ARG001 (NumPy calls it so)
    """Raise ``FloatingPointError`` unless the operation that overflows is one of unsigned integers that wraps."""
    frame = sys._getframe(1)
    if frame.f_globals.get("__name__", "").startswith("gpu_pregel.kernels."):
        return
    names = {**frame.f_builtins, **frame.f_globals, **frame.f_locals}
    operation = _Inference(frame.f_code, names, 0).operation_at(frame)
    if operation is None:
        raise FloatingPointError(f"{kind} encountered")
    operands, converted = operation
    dtypes = [_dtype_of(one) for one in operands]
    dtype = _result(operands)
    if dtype is None and None in dtypes and not any(one is not None and one.kind in "if" for one in dtypes):
        raise FloatingPointError(
            f"{kind} encountered in an operation with the result of a call, whose type is not known here; if it is "
            f"unsigned, and is to wrap around, assign it to a variable first"
        )
    if dtype is None or dtype.kind != "u":
        raise FloatingPointError(f"{kind} encountered")
    if dtype.itemsize < 8 and converted is not dtype.type:
        raise FloatingPointError(
            f"a result exceeds {dtype}, in which NumPy wraps around; compiled code computes in 64 bits: convert the "
            f"operands by np.uint64, or the result of each operation, as in np.{dtype}(a * b)"
        )


def _dtype_of(operand: Any) -> np.dtype[Any] | None:
    """Return the dtype of a scalar of NumPy; None of anything else."""
    return operand.dtype if isinstance(operand, (np.generic, _OfType)) else None


def _result(operands: list[Any]) -> np.dtype[Any] | None:
    """Return the dtype of the result of an operation, if it is one of NumPy's and known."""
    if any(isinstance(one, float) for one in operands):
        return np.dtype(np.float64)
    dtypes = [dtype for dtype in map(_dtype_of, operands) if dtype is not None]
    # uint64 and a signed integer make a float; an unknown operand then is unsigned or an integer of Python.
    is_known = all(isinstance(one, (np.generic, _OfType, int)) for one in operands) or _UINT64 in dtypes
    return np.result_type(*dtypes) if dtypes and is_known else None


@lru_cache(1000)
def _instructions(code: CodeType) -> list[dis.Instruction]:
    return [one for one in dis.get_instructions(code) if one.opname not in _SKIPPED]


class _Inference:
    """Follows the bytecode of a function once, with its values where they are known, or only their types.

    Parameters
    ----------
    code : CodeType
    names : dict
        Values of variables, or ``_OfType``.
    depth : int
        Number of calls around it.
    """

    def __init__(self, code: CodeType, names: dict[str, Any], depth: int) -> None:
        self._code, self._names, self._depth = code, names, depth
        self._stack: list[Any] = []

    def operation_at(self, frame: FrameType) -> tuple[list[Any], Any] | None:
        """Return the operands of the running operation, and what is called with its result; None if it is another."""
        operation = None
        for one in self._follow():
            if operation is not None:  # the stack has the result
                called = one.opname == "CALL" and one.arg == 1 and len(self._stack) > 2
                callees = [each for each in self._stack[-3:-1] if each is not _NOTHING] if called else []
                return operation, callees[-1] if callees else None
            if one.offset == frame.f_lasti:
                if one.opname not in ("BINARY_OP", "UNARY_NEGATIVE"):
                    return None
                operation = self._stack[-2:] if one.opname == "BINARY_OP" else self._stack[-1:]
        return None

    def result(self) -> Any:
        """Return what the function returns, or ``_OfType``."""
        results = []
        for one in self._follow():
            if one.opname == "RETURN_CONST":
                results.append(one.argval)
            elif one.opname == "RETURN_VALUE":
                results.append(self._pop())
        kinds = {_dtype_of(one) for one in results if isinstance(one, (np.generic, _OfType))}
        return _OfType(kind) if len(kinds) == 1 and (kind := kinds.pop()) is not None else _UNKNOWN

    def _follow(self) -> Any:
        """Yield each instruction before it is followed."""
        waiting: dict[int, list[Any]] = {}
        is_reached = True
        for one in _instructions(self._code):
            if one.offset in waiting:
                before = waiting[one.offset]
                self._stack = _merged(self._stack, before) if is_reached else before
            is_reached = True
            yield one
            name = one.opname
            if one.opcode in _JUMPS:
                effect = dis.stack_effect(one.opcode, one.arg, jump=True)
                there = self._stack[:effect] if effect < 0 else [*self._stack, *[_UNKNOWN] * effect]
                waiting[one.argval] = _merged(waiting[one.argval], there) if one.argval in waiting else there
            is_reached = name not in _ENDS and not name.startswith("JUMP_")
            if is_reached:
                self._execute(one)

    def _pop(self) -> Any:
        return self._stack.pop() if self._stack else _UNKNOWN

    def _execute(self, one: dis.Instruction) -> None:
        """Change the stack as an instruction does."""
        name, stack, argument = one.opname, self._stack, one.arg or 0
        if name.startswith(_VARIABLES) and not name.startswith("LOAD_FAST_AND_CLEAR"):
            self._load(one)
        elif name in ("LOAD_CONST", "LOAD_SMALL_INT", "LOAD_CONST_IMMORTAL", "LOAD_COMMON_CONSTANT"):
            stack.append(one.argval)
        elif name == "PUSH_NULL":
            stack.append(_NOTHING)
        elif name in ("LOAD_ATTR", "LOAD_METHOD"):
            self._attribute(one)
        elif name == "CALL":
            arguments = [self._pop() for _ in range(argument)][::-1]
            callees = [callee for callee in (self._pop(), self._pop())[::-1] if callee is not _NOTHING]
            stack.append(self._called(callees, arguments))
        elif name == "BINARY_OP" and one.argrepr != "[]":
            operands = [self._pop(), self._pop()]
            dtype = _result(operands)
            stack.append(_UNKNOWN if dtype is None else _OfType(dtype))
        elif name == "BINARY_SUBSCR" or name == "BINARY_OP":
            index, whole = self._pop(), self._pop()
            stack.append(_element(whole, index))
        elif name in ("UNARY_NEGATIVE", "UNARY_INVERT"):
            stack.append(self._pop())
        elif name == "COPY":
            stack.append(stack[-argument] if argument <= len(stack) else _UNKNOWN)
        elif name == "SWAP":
            if argument <= len(stack):
                stack[-1], stack[-argument] = stack[-argument], stack[-1]
        elif name.startswith("STORE_FAST"):
            names = one.argval if isinstance(one.argval, tuple) else (one.argval,)
            for variable in names:
                value = self._pop()
                if self._depth:  # the values of the running function are known
                    self._names[variable] = value
        else:
            effect = dis.stack_effect(one.opcode, one.arg, jump=False)
            if effect > 0:
                stack.extend([_UNKNOWN] * effect)
                return
            for _ in range(-effect):
                self._pop()
            if stack and not name.startswith(("POP", "STORE", "DELETE")):
                stack[-1] = _UNKNOWN

    def _load(self, one: dis.Instruction) -> None:
        """Push variables; 3.13 and later push an empty place above a global that is called, earlier ones below."""
        has_place = one.opname == "LOAD_GLOBAL" and bool((one.arg or 0) & 1)
        if has_place and sys.version_info < (3, 13):
            self._stack.append(_NOTHING)
        for name in one.argval if isinstance(one.argval, tuple) else (one.argval,):
            self._stack.append(self._names.get(name, _UNKNOWN))
        if has_place and sys.version_info >= (3, 13):
            self._stack.append(_NOTHING)

    def _attribute(self, one: dis.Instruction) -> None:
        """Push an attribute of a module, a class or a tuple; of others it may be computed."""
        whole = self._pop()
        is_plain = isinstance(whole, (ModuleType, type, tuple))
        found = getattr(whole, one.argval, _UNKNOWN) if is_plain else _UNKNOWN
        is_method = one.opname == "LOAD_METHOD" or (sys.version_info >= (3, 12) and bool((one.arg or 0) & 1))
        places = [found, _NOTHING] if sys.version_info >= (3, 13) else [_NOTHING, found]
        self._stack.extend(places if is_method else [found])

    def _called(self, callees: list[Any], arguments: list[Any]) -> Any:
        """Return the result of a call of a scalar type of NumPy, or of a function of Python."""
        callee = callees[-1] if len(callees) == 1 else _UNKNOWN
        if isinstance(callee, type) and issubclass(callee, np.number):
            return _OfType(np.dtype(callee))
        callee = getattr(callee, "py_func", callee)
        if not isinstance(callee, FunctionType) or self._depth >= _MOST_CALLS:
            return _UNKNOWN
        code, cells = callee.__code__, callee.__closure__ or ()
        names = {**vars(sys.modules["builtins"]), **callee.__globals__}
        names.update(zip(code.co_freevars, (cell.cell_contents for cell in cells), strict=True))
        names.update(dict.fromkeys(code.co_varnames, _UNKNOWN))
        names.update(zip(code.co_varnames[: code.co_argcount], arguments, strict=False))
        return _Inference(code, names, self._depth + 1).result()


def _element(whole: Any, index: Any) -> Any:
    """Return an element of an array, by its type, or of a tuple."""
    if isinstance(whole, np.ndarray):
        return _OfType(whole.dtype)
    if isinstance(whole, tuple) and isinstance(index, int) and -len(whole) <= index < len(whole):
        return whole[index]
    return _UNKNOWN


def _merged(one: list[Any], other: list[Any]) -> list[Any]:
    """Return what is known where two ways through a function meet."""
    return [b if a is _UNKNOWN else a for a, b in zip(one, other, strict=False)]

"""Copies of a user's Python functions, and of the plain functions that they call, to be compiled or interpreted."""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Callable, Iterator, Mapping
from types import CellType, CodeType, FunctionType, MappingProxyType, TracebackType
from typing import Any

import numpy as np

from gpu_pregel.errors import ArgumentTypeError, CompileError
from gpu_pregel.host.traverse.compiled_arithmetic import HELPERS, compiled_operators, compiled_value
from gpu_pregel.kernels.library.fingerprint import all_names, is_of_library
from gpu_pregel.kernels.traverse.fields import Jit


def device_function(function: Any, jit: Jit) -> Any:
    """Compile ``function`` for use in kernels with ``jit``, and the plain functions among its globals and closures.

    The user's function and its globals do not change: the compiled function has a copy of the current globals.
    """
    return _Copies(jit).copy(getattr(function, "py_func", function))


def interpreted_function(function: Any, *, copies_arrays: bool = False) -> Any:
    """Return a function for the interpreter that computes as compiled code does, where Python's arithmetic differs.

    With ``copies_arrays``, it reads captured arrays as they are now, whatever is written to them later.

    It is ``function`` itself, or a copy like that of :func:`device_function` if one of the functions has an operator or
    has captured a value that :mod:`~gpu_pregel.host.traverse.compiled_arithmetic` replaces.
    """
    plain = getattr(function, "py_func", function)
    value = _copied_value if copies_arrays else compiled_value
    if not isinstance(plain, FunctionType) or not any(_differs(one, value) for one in _reachable(plain)):
        return plain
    return _Copies(lambda twin: twin, compiled_operators, value, HELPERS).copy(plain)


def is_recursive(function: Any) -> bool:
    """Return whether a function, or a plain function that it uses, may call itself."""
    plain = getattr(function, "py_func", function)
    return isinstance(plain, FunctionType) and any(
        one in _reachable(callee)
        for one in _reachable(plain)
        for callee in captured_values(one)
        if isinstance(callee, FunctionType) and not is_of_library(callee)
    )


def _copied_value(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value = value.copy()
        value.flags.writeable = False
    return compiled_value(value)


def _differs(function: FunctionType, replaced: Callable[[Any], Any]) -> bool:
    """Whether a function computes otherwise than compiled code."""
    if any(replaced(value) is not value for value in captured_values(function)):
        return True
    return compiled_operators(function.__code__) is not function.__code__


def captured_values(function: FunctionType) -> Iterator[Any]:
    """Yield the values of the globals and closures that a function uses."""
    names = all_names(function.__code__)
    yield from (function.__globals__[name] for name in names & function.__globals__.keys())
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not yet assigned
            continue


def check_cells(function: FunctionType) -> None:
    """Raise ``CompileError`` if a variable of a closure of a function, or of one that it uses, has no value yet."""
    for one in _reachable(function):
        for name, cell in zip(one.__code__.co_freevars, one.__closure__ or (), strict=True):
            try:
                _ = cell.cell_contents
            except ValueError:
                place = f"{one.__code__.co_filename}, line {one.__code__.co_firstlineno}"
                raise CompileError(f"the variable {name!r} of {one.__name__} ({place}) has no value yet") from None


def _reachable(function: FunctionType) -> Iterator[FunctionType]:
    """Yield a function and the plain functions that it uses."""
    waiting, seen = [function], {id(function)}
    while waiting:
        one = waiting.pop()
        yield one
        for value in captured_values(one):
            if isinstance(value, FunctionType) and id(value) not in seen and not is_of_library(value):
                seen.add(id(value))
                waiting.append(value)


def positional_count(function: Callable[..., Any]) -> int | None:
    """Return the number of arguments of a function, or None if it is not fixed."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if any(parameter.kind not in kinds for parameter in parameters):
        return None
    return len(parameters)


def check_callable(role: str, function: object, arities: tuple[int, ...], wanted: str) -> None:
    """Raise ``ArgumentTypeError`` unless ``function`` is a plain one with one of these numbers of arguments."""
    if not callable(function):
        raise ArgumentTypeError(f"{role} must be a function of {wanted}, not {function!r}")
    code = getattr(getattr(function, "py_func", function), "__code__", None)
    if code is None:
        raise ArgumentTypeError(f"{role} must be a Python function (def or lambda) of {wanted}, not {function!r}")
    kind = special_kind(function)
    if kind is not None:
        raise ArgumentTypeError(f"{role} must be a plain function (def or lambda) of {wanted}, but is {kind}")
    count = positional_count(getattr(function, "py_func", function))
    if count not in arities:
        place = f"{code.co_filename}, line {code.co_firstlineno}"
        given = "a variable number of arguments" if count is None else f"{count} argument{'s' * (count != 1)}"
        raise ArgumentTypeError(f"{role} takes {given}, but must take {wanted} ({place})")


def special_kind(function: Any) -> str | None:
    """Return what a function is that Numba cannot compile, or would compile as a plain function."""
    if inspect.ismethod(function):
        return "a method"
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        return "asynchronous"
    return "a generator" if inspect.isgeneratorfunction(function) else None


class _Copies:
    """Copies functions, each once.

    Parameters
    ----------
    finish : callable
        Returns what stands for a copy, such as the compiled function.
    code : callable
        Returns the code of a copy.
    value : callable
        Returns what a copy captures instead of a value that is no function.
    helpers : dict
        Globals of the copies beside those of the functions.
    """

    def __init__(
        self,
        finish: Callable[[Any], Any],
        code: Callable[[CodeType], CodeType] = lambda code: code,
        value: Callable[[Any], Any] = lambda value: value,
        helpers: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self._finish, self._code, self._value, self._helpers = finish, code, value, helpers
        self._known: dict[int, Any] = {}

    def copy(self, function: Any) -> Any:
        """Return what stands for the copy of a function."""
        if id(function) in self._known:
            return self._known[id(function)]
        names = all_names(function.__code__)
        namespace = {name: value for name, value in function.__globals__.items() if name in names or name[:2] == "__"}
        cells = tuple(CellType() for _ in function.__closure__ or ())
        code = self._code(function.__code__)
        twin = FunctionType(code, namespace, function.__name__, function.__defaults__, cells or None)
        twin.__kwdefaults__ = function.__kwdefaults__
        twin.__qualname__, twin.__doc__ = function.__qualname__, function.__doc__
        # Code loaded from the cache imports its functions' module, and the user's may be missing in the next process.
        twin.__module__ = __name__
        finished = self._known[id(function)] = self._finish(twin)
        for name in names & namespace.keys():
            namespace[name] = self._copy_value(namespace[name])
        namespace.update(self._helpers)
        for cell, original in zip(cells, function.__closure__ or (), strict=True):
            cell.cell_contents = self._copy_value(original.cell_contents)
        return finished

    def _copy_value(self, value: Any) -> Any:
        """Return the copy of a user's plain function, and what stands for any other value."""
        if isinstance(value, FunctionType) and not is_of_library(value):
            return self.copy(value)
        return self._value(value)


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

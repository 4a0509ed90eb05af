"""Compilation of a user's Python functions and the plain Python functions that they call."""

from __future__ import annotations

from types import CellType, FunctionType
from typing import Any

from gpu_pregel.kernels.library.fingerprint import all_names, is_of_library
from gpu_pregel.kernels.programs.fields import Jit


def device_function(function: Any, jit: Jit) -> Any:
    """Compile ``function`` for use in kernels with ``jit``, and the plain functions among its globals and closures.

    The user's function and its globals do not change: the compiled function has a copy of the current globals.
    """
    return _compiled(getattr(function, "py_func", function), jit, {})


def _compiled(function: Any, jit: Jit, known: dict[int, Any]) -> Any:
    if id(function) in known:
        return known[id(function)]
    names = all_names(function.__code__)
    namespace = {name: value for name, value in function.__globals__.items() if name in names or name[:2] == "__"}
    cells = tuple(CellType() for _ in function.__closure__ or ())
    twin = FunctionType(function.__code__, namespace, function.__name__, function.__defaults__, cells or None)
    twin.__kwdefaults__ = function.__kwdefaults__
    twin.__qualname__, twin.__doc__ = function.__qualname__, function.__doc__
    # Code loaded from the cache imports its functions' module, and the user's may be missing in the next process.
    twin.__module__ = __name__
    dispatcher = known[id(function)] = jit(twin)
    for name in names & namespace.keys():
        namespace[name] = _callable(namespace[name], jit, known)
    for cell, original in zip(cells, function.__closure__ or (), strict=True):
        cell.cell_contents = _callable(original.cell_contents, jit, known)
    return dispatcher


def _callable(value: Any, jit: Jit, known: dict[int, Any]) -> Any:
    """Return the compiled version of a user's plain function, and any other value unchanged."""
    if isinstance(value, FunctionType) and not is_of_library(value):
        return _compiled(value, jit, known)
    return value

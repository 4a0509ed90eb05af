"""Turns a user's Python functions into compiled ones, with the plain Python functions that they call."""

from __future__ import annotations

from types import CellType, FunctionType
from typing import Any

from gpu_pregel.kernels.library.fingerprint import all_names, is_of_library
from gpu_pregel.kernels.programs.fields import Jit


def device_function(function: Any, jit: Jit) -> Any:
    """Compile ``function`` by ``jit`` for use in kernels, and the plain functions among its globals and closures too.

    The user's function and its globals stay as they are: the compiled one has globals of its own, taken now.
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
    # What is loaded from the cache imports the module that its functions name: the user's may not be there next time.
    twin.__module__ = __name__
    dispatcher = known[id(function)] = jit(twin)
    for name in names & namespace.keys():
        namespace[name] = _callable(namespace[name], jit, known)
    for cell, original in zip(cells, function.__closure__ or (), strict=True):
        cell.cell_contents = _callable(original.cell_contents, jit, known)
    return dispatcher


def _callable(value: Any, jit: Jit, known: dict[int, Any]) -> Any:
    """A plain function of the user's compiled; anything else as it is."""
    if isinstance(value, FunctionType) and not is_of_library(value):
        return _compiled(value, jit, known)
    return value

"""Arrays that a program's functions use by name: its kernels take them as arguments, whatever they contain."""

from __future__ import annotations

import dis
from dataclasses import replace
from functools import lru_cache
from types import CellType, CodeType, FunctionType
from typing import Any

import numpy as np

from gpu_pregel.errors import CompileError
from gpu_pregel.host.programs.program import VertexProgram, WakingProgram
from gpu_pregel.host.traverse.functions import captured_values, check_cells
from gpu_pregel.kernels.library.captured import Captured, can_pass
from gpu_pregel.kernels.library.fingerprint import all_names

Array = np.ndarray[Any, Any]


def pass_arrays(program: VertexProgram) -> tuple[VertexProgram, tuple[Array, ...]]:
    """Return a program whose functions have a ``Captured`` in place of arrays, and read-only copies of the arrays.

    Arrays remain constants in functions without ``ctx``, such as combiners and the functions that they call, and if
    they are used by a function inside another one.

    Raises
    ------
    CompileError
        An array is masked, or holds times or numbers that no compiled function can read; or a variable has no value.
    """
    arrays: dict[int, Array] = {}

    def twin(function: Any, arguments: int) -> Any:
        return None if function is None else _twin(function, arguments, arrays)

    changes: dict[str, Any] = {
        "init": twin(program.init, 1),
        "initially_active": twin(program.initially_active, 1),
        "message": twin(program.message, 3 if program.sends_per_edge else 2),
        "apply": twin(program.apply, 3),
        "receives": twin(program.receives, 2),
        "active": twin(program.active, 3) if callable(program.active) else program.active,
        "aggregators": {
            name: replace(one, function=twin(one.function, 3)) for name, one in program.aggregators.items()
        },
    }
    if isinstance(program, WakingProgram):
        changes["wakes"] = twin(program.wakes, 3)
    return (replace(program, **changes), tuple(arrays.values())) if arrays else (program, ())


def _twin(function: Any, arguments: int, arrays: dict[int, Array]) -> Any:
    """Return a copy of a function that has ``Captured`` objects, or the function itself if there are no arrays.

    Its last argument is ``ctx``; ``arrays`` are those found so far, by identity, to which its own are added.
    """
    plain = getattr(function, "py_func", function)
    if not isinstance(plain, FunctionType) or plain.__code__.co_argcount != arguments:
        return function
    check_cells(plain)
    if not any(isinstance(value, np.ndarray) for value in captured_values(plain)):
        return function
    code, names = plain.__code__, all_names(plain.__code__)
    read, used_inside = _names_read(code), _names_read_inside(code)
    has_arrays = False

    def passed(name: str, value: Any) -> Any:
        nonlocal has_arrays
        if isinstance(value, np.ndarray) and name in read:
            _check_array(plain, name, value)
        if name not in read or name in used_inside or not can_pass(value):
            return value
        has_arrays = True
        if id(value) not in arrays:
            array = np.array(value, order="C")  # a copy, as the program's master may change the user's
            array.flags.writeable = False
            arrays[id(value)] = array
        return Captured([*arrays].index(id(value)), value.dtype)

    namespace = {
        name: passed(name, value) for name, value in plain.__globals__.items() if name in names or name[:2] == "__"
    }
    closure = plain.__closure__ or ()
    cells = tuple(
        CellType(passed(name, cell.cell_contents)) for name, cell in zip(code.co_freevars, closure, strict=True)
    )
    if not has_arrays:
        return function
    twin = FunctionType(code, namespace, plain.__name__, plain.__defaults__, cells or None)
    twin.__kwdefaults__, twin.__qualname__, twin.__module__ = plain.__kwdefaults__, plain.__qualname__, plain.__module__
    return twin


@lru_cache(1000)
def _names_read(code: CodeType) -> frozenset[str]:
    """Return the globals and variables of closures that a function, or one inside it, reads, but no attributes."""
    own = (one.argval for one in dis.get_instructions(code) if one.opname in ("LOAD_GLOBAL", "LOAD_DEREF"))
    return _names_read_inside(code).union(own)


def _names_read_inside(code: CodeType) -> frozenset[str]:
    """Return those that functions inside it read."""
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return frozenset[str]().union(*map(_names_read, inner))


def _check_array(function: FunctionType, name: str, array: Array) -> None:
    """Raise ``CompileError`` if compiled functions would not read an array as Python does."""
    if isinstance(array, np.ma.MaskedArray):
        problem = "is masked, and compiled functions do not see the mask: pass filled()"
    elif array.dtype.kind in "mM":
        problem = f"has the dtype {array.dtype}, no numbers: pass numbers, as with astype('int64')"
    elif array.dtype.kind in "iuf" and (not array.dtype.isnative or array.dtype == np.float16):
        wide = array.dtype.newbyteorder("=") if array.dtype != np.float16 else np.dtype(np.float32)
        problem = f"has the dtype {array.dtype.str}, which compiled functions cannot read: pass astype({wide.name!r})"
    else:
        return
    place = f"{function.__code__.co_filename}, line {function.__code__.co_firstlineno}"
    raise CompileError(f"the array {name!r} of {function.__name__} ({place}) {problem}")

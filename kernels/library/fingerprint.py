"""A digest of functions and everything their result depends on: code, constants, closures, globals and callees.

Comments and line numbers are not part of it. Numba's own key omits globals and callees, so that it would return stale
code after an edit of either.
"""

from __future__ import annotations

import builtins
import dis
import enum
import functools
import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba import types

_LIBRARIES = ("numpy", "numba", "math", "cmath", "operator", "builtins", "llvmlite")
_REDIRECTED = {"numba.types": "numba.core.types"}
"""A module that is replaced by another if a program imports it."""
_PACKAGE = "gpu_pregel"
_PORTABLE = f"{_PACKAGE}.kernels.library.atomics"
"""The module of the functions that are compiled for each device by overloads."""
_OVERLOADS = ("atomics*.py", "portable_*.py", "bits_*.py")
"""The files of the overloads and of what they call."""


OF_PROCESS = "@"
"""Stands in the name of a compiled function before the process that compiled it."""


class Fingerprint:
    """Collects what functions depend on.

    Parameters
    ----------
    with_package : bool
        Digest the package's functions too, and all that compiled code depends on, as its key requires. Without it, the
        package's functions are identified by name, and names of fields, values of enumerations and the content of
        submodules are left out: checkpoints store this digest, which survives an update of the package.
    with_lines : bool
        Digest the files and line numbers of functions too, for compiled code that contains them.

    Attributes
    ----------
    names : set of str
        All global and attribute names that the code and its callees use.
    has_loops : bool
        Whether a function outside the package has a loop, which may never end.
    large_integers : list of int
        Constants of functions outside the package that exceed 64 bits; Numba would truncate them.
    is_complete : bool
        False if some object's content is unknown; the digest is then valid in this process only.
    unknown : list of str
        The types of such objects.
    """

    def __init__(self, *, with_package: bool = False, with_lines: bool = False) -> None:
        self._with_package = with_package
        self._with_lines = with_lines
        self._libraries = _LIBRARIES if with_package else (*_LIBRARIES, _PACKAGE)
        self._content = bytearray()
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []
        self._modules: set[tuple[int, frozenset[str]]] = set()
        self.names: set[str] = set()
        self.has_loops = False
        self.large_integers: list[int] = []
        self.is_complete = True
        self.unknown: list[str] = []
        self._bindings: list[tuple[Any, str, Any]] = []
        self._cells: list[tuple[CellType, Any]] = []
        self._has_arrays = False

    def is_current(self) -> bool:
        """Whether all names still refer to the objects that were added; quicker than another digest.

        False if one of them is an array, whose content may have changed.
        """
        return (
            not self._has_arrays
            and all(namespace.get(name) is value for namespace, name, value in self._bindings)
            and all(cell.cell_contents is value for cell, value in self._cells)
        )

    def add(self, *things: Any) -> None:
        """Add functions, constants or containers of them."""
        for thing in things:
            self._visit(thing)

    def hexdigest(self) -> str:
        """The digest of everything that was added."""
        return hashlib.sha256(self._content).hexdigest()

    def _note(self, *words: object) -> None:
        for word in words:
            text = word if isinstance(word, bytes) else str(word).encode()
            self._content += len(text).to_bytes(8, "little")
            self._content += text

    def _visit(self, thing: Any) -> None:
        if type(thing) is str or thing is None or isinstance(thing, (int, float, complex, str, bytes)):
            self._note(type(thing).__name__, repr(thing))
        elif isinstance(thing, (tuple, list)):
            self._visit_all(type(thing).__name__, thing)
            if self._with_package and hasattr(thing, "_fields"):
                self._visit(thing._fields)
        elif isinstance(thing, (set, frozenset)):
            self._visit_all(type(thing).__name__, sorted(thing, key=repr))
        elif isinstance(thing, dict):
            self._visit_all("dict", (part for item in thing.items() for part in item))
        elif isinstance(thing, CodeType):
            self._visit_code(thing)
        elif not self._note_value(thing):
            self._visit_object(thing)

    def _note_value(self, thing: Any) -> bool:
        """Add an array, a type or a module; return False for anything else."""
        if isinstance(thing, np.dtype):
            self._note("dtype", thing.str)
            self._note_fields(thing)
        elif isinstance(thing, types.Type):
            self._note("numba type", repr(thing.key))
        elif isinstance(thing, (np.ndarray, np.generic)) and thing.dtype.kind != "O":
            array = np.asarray(thing)
            self._has_arrays = self._has_arrays or array.ndim > 0
            self._note("array", array.dtype.str, array.shape, array.tobytes())
            self._note_fields(array.dtype)
        elif isinstance(thing, ModuleType):
            self._note("module", _REDIRECTED.get(thing.__name__, thing.__name__), getattr(thing, "__version__", ""))
        else:
            return False
        return True

    def _note_fields(self, dtype: np.dtype[Any]) -> None:
        if self._with_package and dtype.names is not None:
            self._note("fields", repr(dtype))

    def _visit_all(self, kind: str, things: Iterable[Any]) -> None:
        parts = list(things)
        self._note(kind, len(parts))
        for part in parts:
            self._visit(part)

    def _visit_object(self, thing: Any) -> None:
        function = _python_function(thing)
        if id(function) in self._seen:
            self._note("again", self._seen[id(function)])
            return
        self._seen[id(function)] = len(self._seen)
        self._kept.append(function)
        is_opaque = _module_of(function) in self._libraries
        if isinstance(function, FunctionType) and not is_opaque:
            if self._with_package and function is not thing:
                self._visit(getattr(thing, "targetoptions", None))
            self._visit_function(function)
        elif isinstance(thing, (type, BuiltinFunctionType, np.ufunc)) or is_opaque:
            self._note(
                "library",
                getattr(function, "__module__", None),
                plain_name(function),
            )
            if self._with_package and isinstance(thing, type):
                self._visit(getattr(thing, "_fields", None))
                if issubclass(thing, enum.Enum):
                    self._visit({name: member.value for name, member in thing.__members__.items()})
        else:
            self.is_complete = False
            self.unknown.append(type(thing).__qualname__)
            self._note("unknown", id(thing))

    def _visit_function(self, function: Callable[..., Any]) -> None:
        code = function.__code__
        # The compiled twins of a user's functions have the user's globals, but not the module; generated functions have
        # the package only.
        is_ours = (function.__globals__.get("__package__") or "").split(".")[0] == _PACKAGE
        if not is_ours:
            self.has_loops = self.has_loops or _has_loop(code)
            self.large_integers += _large_integers(code)
        self._note("function")
        self._visit_code(code)
        self._visit(getattr(function, "__defaults__", None))
        self._visit(getattr(function, "__kwdefaults__", None))
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            self._note("closure", name)
            self._cells.append((cell, cell.cell_contents))
            self._visit(cell.cell_contents)
        if self._with_package and function.__module__ == _PORTABLE:
            self._note("overloads", _overloads())
        names = all_names(code)
        for name in sorted(names):
            self._visit_name(name, function.__globals__, names)

    def _visit_name(self, name: str, namespace: dict[str, Any], attributes: frozenset[str]) -> None:
        if name not in namespace:
            if hasattr(builtins, name):
                self._note("builtin", name)
            return
        value = namespace[name]
        self._bindings.append((namespace, name, value))
        self._note("global", name)
        self._visit(value)
        if isinstance(value, ModuleType):
            self._visit_module(value, attributes)

    def _visit_module(self, module: ModuleType, attributes: frozenset[str]) -> None:
        """Add those attributes of a module that the code may use."""
        if module.__name__.split(".")[0] in self._libraries:
            return
        if self._with_package:
            if (id(module), attributes) in self._modules:
                return
            self._modules.add((id(module), attributes))
        lazy = set(dir(module)) if module.__name__ == _PACKAGE else set()
        for attribute in sorted(attributes & (vars(module).keys() | lazy)):
            value = getattr(module, attribute)
            self._bindings.append((vars(module), attribute, value))
            self._note("attribute", attribute)
            self._visit(value)
            if self._with_package and isinstance(value, ModuleType):
                self._visit_module(value, attributes)

    def _visit_code(self, code: CodeType) -> None:
        self.names |= all_names(code)
        self._content += _content_of(code)
        if self._with_lines:
            self._note(code.co_filename, *_lines_of(code))


@functools.lru_cache(maxsize=1024)
def _content_of(code: CodeType) -> bytes:
    """What a digest covers of a code object; helpers are part of many kernels."""
    part = Fingerprint()
    part._note("code", code.co_code, code.co_argcount, code.co_flags & 0xFF, getattr(code, "co_exceptiontable", b""))
    part._visit_all("names", [code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars])
    part._visit_all("constants", code.co_consts)
    return bytes(part._content)


@functools.cache
def _overloads() -> bytes:
    """Return a digest of the source of all overloads, which a function that has them does not refer to."""
    files = sorted(file for pattern in _OVERLOADS for file in Path(__file__).parent.glob(pattern))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).digest()


def _lines_of(code: CodeType) -> list[object]:
    """The first line and the table of lines of a function, and of those defined inside it."""
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return [code.co_firstlineno, code.co_linetable, *(line for one in inner for line in _lines_of(one))]


def _python_function(thing: Any) -> Any:
    """The Python function of a Numba dispatcher or intrinsic; any other object itself."""
    return getattr(thing, "py_func", None) or getattr(thing, "_defn", None) or thing


def plain_name(function: Any) -> str:
    """Return the qualified name of a function, without the process that compiled it."""
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", "")
    return str(name).partition(OF_PROCESS)[0]


def _module_of(function: Any) -> str:
    """The top-level package of a function."""
    return (getattr(function, "__module__", None) or "").split(".")[0]


def may_loop(function: Any) -> bool:
    """Whether a function calls code outside the package that may never return."""
    fingerprint = Fingerprint(with_package=True)
    fingerprint.add(function)
    return fingerprint.has_loops or not fingerprint.is_complete


def large_integers(function: Any) -> list[int]:
    """Return the constants of a function and its callees outside the package that exceed 64 bits."""
    fingerprint = Fingerprint(with_package=True)
    fingerprint.add(function)
    return fingerprint.large_integers


def is_of_library(function: Any) -> bool:
    """Whether a function belongs to a library that Numba supports, or has compiled versions of its own."""
    return _module_of(function) in _LIBRARIES or getattr(function, "__module__", None) == _PORTABLE


@functools.lru_cache(maxsize=1024)
def _has_loop(code: CodeType) -> bool:
    """Whether a function, or one defined inside it, jumps backward."""
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return any("BACKWARD" in one.opname for one in dis.get_instructions(code)) or any(map(_has_loop, inner))


@functools.lru_cache(maxsize=1024)
def _large_integers(code: CodeType) -> list[int]:
    found = []
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found += _large_integers(constant)
        elif type(constant) is int and not -(1 << 63) <= constant < 1 << 64:
            found.append(constant)
    return found


@functools.lru_cache(maxsize=1024)
def all_names(code: CodeType) -> frozenset[str]:
    """Global and attribute names of a function and of the functions defined inside it."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= all_names(constant)
    return frozenset(names)


def source_digest(*paths: Path) -> str:
    """Return a digest of source files, and of those in folders."""
    digest = hashlib.sha256()
    for path in paths:
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()

"""How kernels are compiled: one decorator, and a cache on disk that notices a change in any kernel's source.

Numba's own cache looks only at the file of the compiled function, so that an edited callee in another file would go
unnoticed; here the stamp covers every file of this folder.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

import numba
from numba.core import caching

Function = TypeVar("Function", bound=Callable[..., Any])


@functools.cache
def _source_stamp() -> str:
    """Digest of all kernel sources."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].glob("*/*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


class _StampedLocator:
    """Mixed into Numba's cache locators: the stamp is that of the whole folder."""

    def get_source_stamp(self) -> str:
        return _source_stamp()


class _InUserDirectory(_StampedLocator, caching.UserProvidedCacheLocator):
    pass


class _InTree(_StampedLocator, caching.InTreeCacheLocator):
    pass


class _UserWide(_StampedLocator, caching.UserWideCacheLocator):
    pass


class _CacheImplementation(caching.CompileResultCacheImpl):
    _locator_classes: ClassVar = [_InUserDirectory, _InTree, _UserWide]


class _KernelCache(caching.FunctionCache):
    _impl_class = _CacheImplementation

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What is damaged is as if it were not there."""
        with contextlib.suppress(Exception):
            return super().load_overload(sig, target_context)
        return None


_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
"""No GIL; division by zero as NumPy has it; no second entry for C, which costs time to compile."""


def jit(function: Function) -> Function:
    """Compile ``function`` for the CPU: without the GIL, cached on disk, division by zero as NumPy has it."""
    dispatcher = numba.njit(**_OPTIONS)(function)
    # Where no cache directory can be written the kernel is compiled anew in each process.
    with contextlib.suppress(RuntimeError, OSError):
        dispatcher._cache = _KernelCache(dispatcher.py_func)
    return cast(Function, dispatcher)


class _ProgramLocator(_StampedLocator, caching.UserProvidedCacheLocator):
    """Keeps a program's kernels beside those of the package, whatever file or prompt its functions come from."""

    def __init__(self, folder: str) -> None:
        self._cache_path = folder

    def get_disambiguator(self) -> str:
        return ""


class _ProgramImplementation(caching.CompileResultCacheImpl):
    def __init__(self, name: str, folder: str) -> None:
        self._locator = _ProgramLocator(folder)
        self._filename_base = f"{name}.py{sys.version_info[0]}{sys.version_info[1]}"


class _ProgramCache(_KernelCache):
    """A cache whose key is a name that tells all that a kernel depends on."""

    def __init__(self, py_func: Callable[..., Any], name: str, folder: str) -> None:
        self._name = repr(py_func)
        self._py_func = py_func
        self._impl = _ProgramImplementation(name, folder)
        self._cache_path = folder
        self._cache_file = caching.IndexDataCacheFile(folder, self._impl.filename_base, _source_stamp())
        self.enable()

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return sig, codegen.magic_tuple()


def jit_program(function: Function, name: str | None) -> Function:
    """Compile a kernel made for one vertex program, cached on disk by ``name`` if there is one."""
    dispatcher = numba.njit(**_OPTIONS)(function)
    folder = cache_directory()
    if name is not None and folder is not None:
        dispatcher._cache = _ProgramCache(dispatcher.py_func, name, folder)
    return cast(Function, dispatcher)


@functools.cache
def cache_directory() -> str | None:
    """The folder that compiled kernels are kept in, or None where none can be written."""
    with contextlib.suppress(RuntimeError, OSError):
        return str(_KernelCache(jit_program).cache_path)
    return None


def inline(function: Function) -> Function:
    """Compile a helper that only other kernels call; it is cached as part of them."""
    return cast(Function, numba.njit(**_OPTIONS)(function))


def device(function: Function) -> Function:
    """Compile a function of a program, or made for one, that kernels alone call; never call it from Python."""
    return cast(Function, numba.njit(**_OPTIONS, no_cpython_wrapper=True)(function))

"""Compilation of hooks: functions of int64s that kernels and other hooks call through a symbol.

Compiled hooks are cached on disk under a stamp that covers all of their source files.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar, cast

import llvmlite.binding as llvm
import numba
from numba import types
from numba.core import caching, ccallback

Function = TypeVar("Function", bound=Callable[..., Any])

HOOK_MODULES = (
    "scheduler",
    "store_buffers",
    "access_counts",
    "races",
    "accesses",
    "warps",
    "barriers",
    "arithmetic_checks",
)
"""The modules of this folder that define hooks, in dependency order."""
_SOURCES = ("layout", "words", "hooks", *HOOK_MODULES)

_OPTIONS = {"error_model": "numpy", "nogil": True}


@functools.cache
def _stamp() -> str:
    """Return a digest of all source files of the hooks."""
    digest = hashlib.sha256()
    for name in _SOURCES:
        digest.update(name.encode() + b"\0" + Path(__file__).with_name(f"{name}.py").read_bytes())
    return digest.hexdigest()


class _Stamped:
    """Mixin that gives Numba's cache locators the stamp of the hooks."""

    def get_source_stamp(self) -> str:
        return _stamp()


class _InUserDirectory(_Stamped, caching.UserProvidedCacheLocator):
    pass


class _InTree(_Stamped, caching.InTreeCacheLocator):
    pass


class _UserWide(_Stamped, caching.UserWideCacheLocator):
    pass


class _CacheImplementation(caching.CompileResultCacheImpl):
    _locator_classes: ClassVar = [_InUserDirectory, _InTree, _UserWide]


class _HookCache(caching.FunctionCache):
    _impl_class = _CacheImplementation

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Treat a damaged cache entry as missing."""
        with contextlib.suppress(Exception):
            return super().load_overload(sig, target_context)
        return None


class Hook(NamedTuple):
    """A function and the symbol under which it is compiled."""

    symbol: str
    function: Callable[..., int]
    arguments: int


HOOKS: list[Hook] = []
"""All hooks in order of definition, so that each follows the hooks that it calls."""


def hook(symbol: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Register a function of int64s that returns an int64, so that compiled code can call it as ``symbol``."""

    def decorate(function: Callable[..., int]) -> Callable[..., int]:
        arguments = function.__code__.co_argcount
        HOOKS.append(Hook(symbol, function, arguments))
        return external(symbol, arguments)

    return decorate


def external(symbol: str, arguments: int) -> Callable[..., int]:
    """Declare a function that compiled code calls through a symbol."""
    signature = types.int64(*[types.int64] * arguments)
    declared: Callable[..., int] = types.ExternalFunction(symbol, signature)
    return declared


def helper(function: Function) -> Function:
    """Compile a short function that is inlined into the hooks that call it."""
    return cast(Function, numba.njit(**_OPTIONS, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function))


def compile_hook(one: Hook) -> int:
    """Compile a hook or load it from the cache, register its symbol with LLVM and return its address."""
    callback: Any = ccallback.CFunc(
        one.function, ((types.int64,) * one.arguments, types.int64), {}, {"nopython": True, **_OPTIONS}
    )
    with contextlib.suppress(RuntimeError, OSError):
        callback._cache = _HookCache(one.function)
    callback.compile()
    address = int(callback.address)
    llvm.add_symbol(one.symbol, address)
    _COMPILED.append(callback)
    return address


_COMPILED: list[Any] = []
"""Keeps the owners of the compiled code alive."""

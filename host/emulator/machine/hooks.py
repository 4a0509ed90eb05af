"""How hooks are compiled: functions on int64s that kernels and other hooks call by the name of a symbol.

They are kept on disk, under a stamp that covers all files that they are made from.
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
"""Files of this folder that hold hooks, in the order that they need one another."""
_SOURCES = ("layout", "words", "hooks", *HOOK_MODULES)

_OPTIONS = {"error_model": "numpy", "nogil": True}


@functools.cache
def _stamp() -> str:
    """Digest of all sources that hooks are made from."""
    digest = hashlib.sha256()
    for name in _SOURCES:
        digest.update(name.encode() + b"\0" + Path(__file__).with_name(f"{name}.py").read_bytes())
    return digest.hexdigest()


class _Stamped:
    """Mixed into Numba's cache locators."""

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
        """What is damaged is as if it were not there."""
        with contextlib.suppress(Exception):
            return super().load_overload(sig, target_context)
        return None


class Hook(NamedTuple):
    """A function to be compiled under the name of a symbol."""

    symbol: str
    function: Callable[..., int]
    arguments: int


HOOKS: list[Hook] = []
"""In the order of their definition, so that each comes after those it calls."""


def hook(symbol: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Let code compiled later call this function of int64s, which returns one, by the name ``symbol``."""

    def decorate(function: Callable[..., int]) -> Callable[..., int]:
        arguments = function.__code__.co_argcount
        HOOKS.append(Hook(symbol, function, arguments))
        return external(symbol, arguments)

    return decorate


def external(symbol: str, arguments: int) -> Callable[..., int]:
    """A function that compiled code calls by the name of a symbol."""
    signature = types.int64(*[types.int64] * arguments)
    declared: Callable[..., int] = types.ExternalFunction(symbol, signature)
    return declared


def helper(function: Function) -> Function:
    """Compile a short function that becomes part of the hooks that call it."""
    return cast(Function, numba.njit(**_OPTIONS, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function))


def compile_hook(one: Hook) -> int:
    """Compile a hook, or take it from the disk; make its symbol known and return its address."""
    callback: Any = ccallback.CFunc(
        one.function, ((types.int64,) * one.arguments, types.int64), {}, {"nopython": True, **_OPTIONS}
    )
    with contextlib.suppress(RuntimeError, OSError):
        callback._cache = _HookCache(one.function)
    callback.compile()
    address = int(callback.address)
    llvm.add_symbol(one.symbol, address)
    _KEPT.append(callback)
    return address


_KEPT: list[Any] = []
"""Compiled code lives as long as the object that holds it."""

"""Compilation of hooks: functions of int64s that kernels and other hooks call through a symbol.

Compiled hooks are cached on disk as kernels are. A hook calls another through its symbol, so that an edit recompiles
only the edited hook.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import llvmlite.binding as llvm
import numba
from numba import types
from numba.core import ccallback

from gpu_pregel.kernels.library.cache import KernelCache

Function = TypeVar("Function", bound=Callable[..., Any])

HOOK_MODULES = (
    "scheduler",
    "late_writes",
    "store_buffers",
    "access_counts",
    "clocks",
    "races",
    "accesses",
    "warps",
    "barriers",
    "arithmetic_checks",
)
"""The modules of this folder that define hooks, in dependency order."""

_OPTIONS = {"error_model": "numpy", "nogil": True}


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
    callback._cache = KernelCache(one.function, _OPTIONS)
    callback.compile()
    address = int(callback.address)
    llvm.add_symbol(one.symbol, address)
    _COMPILED.append(callback)
    return address


_COMPILED: list[Any] = []
"""Keeps the owners of the compiled code alive."""

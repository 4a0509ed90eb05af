"""How kernels are compiled for the CPU: decorators for kernels, which are cached on disk, and for their helpers."""

from __future__ import annotations

import os
import secrets
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import numba
from numba.core.errors import NumbaTypeSafetyWarning

from gpu_pregel.kernels.library.cache import KernelCache
from gpu_pregel.kernels.library.fingerprint import OF_PROCESS, may_loop, plain_name
from gpu_pregel.kernels.library.interrupts import deferred_interrupts
from gpu_pregel.kernels.library.overflow_cpu import OverflowChecker

Function = TypeVar("Function", bound=Callable[..., Any])

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
"""Release the GIL; divide by zero as NumPy does; omit the entry point for C, which takes time to compile."""
_CHECKS: dict[str, Any] = {**_OPTIONS, "error_model": "python", "boundscheck": True}
"""Raise errors for division by zero and for indices out of range."""


_PROCESS = secrets.token_hex(4)


def _njit(function: Any, options: dict[str, Any]) -> Any:
    """Return Numba's dispatcher of a function; Ctrl-C waits until a compilation has ended.

    Of compiled functions with one name, which loaded kernels may bring along, the first is called for all. Numba
    numbers functions within a process only, so the process is made part of the name.
    """
    function.__qualname__ = f"{plain_name(function)}{OF_PROCESS}{_PROCESS}.{os.getpid()}"
    dispatcher: Any = numba.njit(**options)(function)
    compile_now = dispatcher.compile

    @wraps(compile_now)
    def compile_to_the_end(signature: Any) -> Any:
        with deferred_interrupts(), warnings.catch_warnings():
            # It is of casts between 64-bit integers inside a function, as of the keys of a dict.
            warnings.simplefilter("ignore", NumbaTypeSafetyWarning)
            return compile_now(signature)

    dispatcher.compile = compile_to_the_end
    return dispatcher


def jit(function: Function) -> Function:
    """Compile a kernel: without the GIL, cached on disk, division by zero as in NumPy."""
    dispatcher = _njit(function, _OPTIONS)
    dispatcher._cache = KernelCache(function, _OPTIONS)
    return cast(Function, dispatcher)


def jit_holding_gil(function: Function) -> Function:
    """Compile a kernel that reads or writes Python's objects, and holds the GIL: callers bound its time."""
    options = {**_OPTIONS, "nogil": False}
    dispatcher = _njit(function, options)
    dispatcher._cache = KernelCache(function, options)
    return cast(Function, dispatcher)


def jit_program(function: Function) -> Function:
    """Compile a kernel that calls a user's functions; its attribute ``may_loop`` says whether they may never return.

    It is ``by_node``: a thread may call it once for the share of each NUMA node.
    """
    dispatcher: Any = jit(function)
    dispatcher.may_loop, dispatcher.by_node = may_loop(function), True
    return cast(Function, dispatcher)


def checked_jit_program(function: Function) -> Function:
    """Compile a kernel that calls functions compiled by ``checked_device``; its entry in the cache is another."""
    dispatcher = _njit(function, _OPTIONS)
    # Raise the number if the pass changes: it is not part of the digest of a function.
    dispatcher._cache = KernelCache(function, {**_CHECKS, "overflow": 3})
    dispatcher.may_loop, dispatcher.by_node = may_loop(function), True
    return cast(Function, dispatcher)


def inline(function: Function) -> Function:
    """Compile a helper that only kernels call; it is cached as part of them."""
    return cast(Function, _njit(function, _OPTIONS))


def always_inline(function: Function) -> Function:
    """Compile like ``inline``, and expand every call: for loops over rows so short that a call would cost too much."""
    return cast(Function, _njit(function, {**_OPTIONS, "forceinline": True}))


def device(function: Function) -> Function:
    """Compile a function of a program, or a helper made for one, that only kernels call; Python cannot call it."""
    return cast(Function, _njit(function, {**_OPTIONS, "no_cpython_wrapper": True}))


def checked_device(function: Function) -> Function:
    """Compile like ``device``, with errors for zero division, indices out of range and overflow of 64-bit integers."""
    options = {**_CHECKS, "no_cpython_wrapper": True, "pipeline_class": OverflowChecker}
    return cast(Function, _njit(function, options))

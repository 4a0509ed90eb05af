"""Calls of device functions that may raise: the caller continues, and learns which exception it was.

A device function returns a status beside its result. Numba-CUDA makes the caller return it too, so that an exception
ends the thread silently; the other threads of its warp then wait for it, or go on without it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gpu_pregel.kernels.library.compiler_cuda import callconv, cgutils, intrinsic, types

EXCEPTIONS = (
    *("Exception", "IndexError", "ValueError", "ZeroDivisionError", "AssertionError", "OverflowError", "TypeError"),
    *("KeyError", "ArithmeticError", "LookupError", "RuntimeError", "NotImplementedError", "FloatingPointError"),
)
"""The exceptions whose names are known, by status - 1; all others are "Exception"."""
_RAISES = re.compile(r"ret i32 (?!0\b|-2\b)-?\d")
"""A return of a status that is neither success nor success without a result."""


def _number(_: Any, exception: Any, *__: Any) -> int:
    """Return the status of an exception: the same in all functions, whatever they raise besides."""
    name = getattr(exception, "__name__", "")
    return 1 + (EXCEPTIONS.index(name) if name in EXCEPTIONS else 0)


@contextmanager
def _numbered_exceptions() -> Iterator[None]:
    """Number exceptions by their class; Numba numbers them by function, so that a status from a callee is ambiguous."""
    helper = callconv._MinimalCallHelper
    before = helper._add_exception
    helper._add_exception = _number
    try:
        yield
    finally:
        helper._add_exception = before


def compile_numbered(function: Any, arguments: tuple[Any, ...]) -> Any:
    """Compile a device function, and those that it calls, for these types; return Numba's result."""
    with _numbered_exceptions():
        return function.compile_device(arguments)


def may_raise(function: Any, arguments: tuple[Any, ...]) -> bool:
    """Whether a device function, or one that it calls, can return the status of an exception."""
    library = compile_numbered(function, arguments).library
    return any(_RAISES.search(str(module)) is not None for module in library.modules)


@intrinsic
def attempt(typingctx: Any, function: Any, arguments: Any) -> Any:
    """Return the result of ``function(*arguments)`` and 0, or zeros and the status of the exception that it raises."""
    kinds = tuple(arguments)
    compiled = compile_numbered(function.dispatcher, kinds)
    called, result = compiled.fndesc, compiled.signature.return_type

    def codegen(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        parts = cgutils.unpack_tuple(builder, given[1])
        context.add_linking_libs([compiled.library])
        status, found = called.call_conv.call_function(
            builder, called.declare_function(builder.module), called.restype, called.argtypes, parts
        )
        code = builder.select(status.is_error, status.code, status.code.type(0))
        return context.make_tuple(builder, signature.return_type, [found, code])

    return types.Tuple((result, types.int32))(function, arguments), codegen

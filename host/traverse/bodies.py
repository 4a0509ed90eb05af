"""Compilation of the bodies of operators: functions of a vertex or of an edge, and of the arrays passed with them."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

import numba
import numpy as np
from numba import types

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, ProgramError
from gpu_pregel.host.traverse.bounded_cache import BoundedCache
from gpu_pregel.host.traverse.compilation import place_of, result_type
from gpu_pregel.host.traverse.functions import device_function
from gpu_pregel.kernels.library import atomics
from gpu_pregel.kernels.library.cache import load_value, save_value
from gpu_pregel.kernels.library.compile_clock import compiling
from gpu_pregel.kernels.library.fingerprint import Fingerprint
from gpu_pregel.kernels.library.jit_cpu import device
from gpu_pregel.kernels.traverse.fields import generated

_MOST_KEPT = 512
"""Functions, and kernels, kept in memory."""

_SPECIAL = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
EXPECTED = {"frontier": "True or False", "sum": "a number, such as 0 where no sum is needed", "integer": "an integer"}
"""What a body must return, for each kind of result of an operator."""

assert atomics.PORTABLE  # the overloads exist before a body is compiled
Function = Callable[..., Any]


class Bodies(NamedTuple):
    """What a kernel of an operator is made from.

    Attributes
    ----------
    body, receives : callable
        The user's functions; ``receives`` is None if every vertex receives.
    kinds : tuple of Numba types
        The types of the arrays and numbers that are passed to both.
    weight : Numba type or None
        The type of a weight; None for the body of a vertex.
    has_weights : bool
        Whether the weights of the graph are read; without, every weight is 1.
    """

    body: Function
    receives: Function | None
    kinds: tuple[Any, ...]
    weight: Any = None
    has_weights: bool = False

    @property
    def key(self) -> tuple[Any, ...]:
        """What kernels of these bodies depend on."""
        return (content_key(self.body), content_key(self.receives), self.kinds, self.weight, self.has_weights)

    def arguments(self) -> tuple[Any, ...]:
        """Return the types of the arguments of ``body``."""
        vertex = (types.int64,)
        return (*vertex, *self.kinds) if self.weight is None else (*vertex, *vertex, self.weight, *self.kinds)


class CompiledBodies(NamedTuple):
    """The functions compiled for use in kernels, after checks of their results.

    Attributes
    ----------
    body, receives : callable
    total : dtype
        Of the sum of what ``body`` returns: int64 or float64; int64 if its results are not summed.
    """

    body: Any
    receives: Any
    total: np.dtype[Any]


def always(v: Any, *arrays: Any) -> bool:  # noqa: ARG001
    """Receive at every vertex."""
    return True


_fingerprints = BoundedCache(_MOST_KEPT)
_kernels = BoundedCache(_MOST_KEPT)


def content_key(function: Function | None) -> str:
    """Return a digest of a function and all it refers to; a function that has not changed is not digested again."""
    return "" if function is None else _fingerprint_of(function)[1]


def _fingerprint_of(function: Function) -> tuple[Fingerprint, str]:
    """Return the fingerprint of a function and its digest."""
    found = _fingerprints.get(id(function))
    if found is None or found[0] is not function or not found[1].is_current():
        fingerprint = Fingerprint(with_package=True)
        fingerprint.add(function)
        found = _fingerprints.keep(id(function), (function, fingerprint, fingerprint.hexdigest()))
    return found[1], found[2]


class Keyed(Protocol):
    """What kernels are made from."""

    @property
    def key(self) -> tuple[Any, ...]:
        """What the kernels depend on."""


def kernel_of(kind: Any, bodies: Keyed, make: Callable[[], Any]) -> Any:
    """Return the kernel of a kind for these bodies; ``make`` creates it at first use."""
    key = (kind, *bodies.key)
    found = _kernels.get(key)
    if found is None:
        with compiling():
            found = _kernels.keep(key, make())
    return found


def compile_bodies(bodies: Bodies, returns: str | None, jit: Any = device) -> CompiledBodies:
    """Return the functions of an operator compiled with ``jit``, after a check of their results.

    The check compiles both for the CPU, once per machine: its result is kept on disk beside the kernels.

    Raises
    ------
    ProgramError
        A function cannot be compiled, or does not return what ``returns`` needs.
    """
    digest = lasting_digest(bodies, returns)
    name = f"body-{digest}"
    total = None if digest is None else load_value(name)
    if total not in ("<i8", "<f8"):
        total = _check(bodies, returns).str
        if digest is not None:
            save_value(name, total)
    return CompiledBodies(
        device_function(bodies.body, jit), device_function(bodies.receives or always, jit), np.dtype(total)
    )


def lasting_digest(bodies: Bodies, returns: str | None) -> str | None:
    """Return a digest of what kernels of these bodies depend on; None if it is valid in this process only."""
    if not all(is_lasting(one) for one in bodies[:2] if one is not None):
        return None
    return _digest(bodies, returns)


def is_lasting(function: Function) -> bool:
    """Whether the digest of a function is valid in other processes."""
    return _fingerprint_of(function)[0].is_complete


def kept(kind: str, bodies: Keyed, functions: Iterable[Function], returns: str | None, find: Callable[[], Any]) -> Any:
    """Return what ``find`` finds of these bodies; it is kept on disk if the functions last."""
    if not all(map(is_lasting, functions)):
        return find()
    text = "\n".join([*map(str, bodies.key), str(returns), numba.__version__])
    name = f"{kind}-{hashlib.sha256(text.encode()).hexdigest()}"
    known = load_value(name)
    if known is None:
        known = find()
        save_value(name, known)
    return known


def _digest(bodies: Bodies, returns: str | None) -> str:
    kinds = [repr(kind) for kind in (*bodies.kinds, bodies.weight)]
    parts = [content_key(bodies.body), content_key(bodies.receives), str(returns), numba.__version__, *kinds]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _check(bodies: Bodies, returns: str | None) -> np.dtype[Any]:
    """Raise an error unless the functions return what is expected; return the dtype of a sum of results."""
    result, place = result_of(bodies.body, "the body", bodies.arguments(), bodies.kinds)
    check_returned("the body", result, returns, place)
    if bodies.receives is not None:
        arguments = (types.int64, *bodies.kinds)
        answer, place = result_of(bodies.receives, "receives", arguments, bodies.kinds)
        if not isinstance(answer, (types.Boolean, types.Integer)):
            raise ProgramError(f"receives returns {shown_type(answer)}, but must return {EXPECTED['frontier']}{place}")
    return np.dtype(np.float64 if returns == "sum" and isinstance(result, types.Float) else np.int64)


def check_returned(role: str, result: Any, returns: str | None, place: str) -> None:
    """Raise ``ProgramError`` unless a function returns what the operator needs."""
    kinds = (types.Boolean, types.Integer) + ((types.Float,) if returns == "sum" else ())
    if returns is not None and not isinstance(result, kinds):
        raise ProgramError(f"{role} returns {shown_type(result)}, but must return {EXPECTED[returns]}{place}")


def silenced(body: Any, count: int) -> Any:
    """Return a function of ``count`` arguments that calls ``body`` and returns 0."""
    names = ", ".join(f"a{k}" for k in range(count))
    return generated(device, "silenced", f"def silenced({names}):\n    body({names})\n    return 0\n", body=body)


def result_of(function: Function, role: str, arguments: tuple[Any, ...], kinds: tuple[Any, ...]) -> tuple[Any, str]:
    """Return the type of a function's result, and its place in the source."""
    compiled = device_function(function, device)
    code, defaults = compiled.py_func.__code__, compiled.py_func.__defaults__ or ()
    taken = code.co_argcount
    if len(arguments) < taken:
        arguments = (*arguments, *map(types.Omitted, defaults[len(arguments) - taken :]))
    if code.co_flags & inspect.CO_VARARGS:
        arguments = (*arguments[:taken], types.StarArgTuple(arguments[taken:]))
    try:
        return result_type(compiled, role, arguments), place_of(compiled)
    except ProgramError as error:
        if "Cannot modify readonly array" in str(error):
            raise read_only_error(role, kinds, place_of(compiled, error.__cause__)) from error
        raise


def read_only_error(role: str, kinds: tuple[Any, ...], place: str) -> ProgramError:
    """Return the error for a function that writes to a read-only array, of which there may be several."""
    named = [f"arrays[{k}]" for k, kind in enumerate(kinds) if isinstance(kind, types.Array) and not kind.mutable]
    verb = "is" if len(named) == 1 else "are"
    read_only = f"{' and '.join(named)} {verb} read-only" if named else "an array that it refers to is read-only"
    return ProgramError(f"{role} writes to a read-only array{place}: {read_only}; pass a copy, as from frontier.upload")


DTYPES = frozenset(map(np.dtype, ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "c8", "c16"]))
"""The dtypes of the arrays and numbers that bodies take."""
NUMBERS = "bools, integers, floats of 32 or 64 bits or complex numbers, in the machine's byte order"


def shown_type(result: Any) -> str:
    """Return the type of a function's result in words."""
    if isinstance(result, types.NoneType):
        return "nothing"
    if isinstance(result, types.Optional):
        return f"{result.type}, or nothing on some paths"
    if isinstance(result, (types.UnicodeType, types.StringLiteral)):
        return "a string"
    return str(result)


def check_function(role: str, function: Any, call: str, count: int) -> None:
    """Raise unless ``function`` is a plain Python function that takes ``count`` arguments, as in ``call``.

    Raises
    ------
    ArgumentTypeError
        It is not a function, or not a plain one.
    ProgramError
        It takes another number of arguments.
    """
    plain = getattr(function, "py_func", function)
    code = getattr(plain, "__code__", None)
    if code is None:
        raise ArgumentTypeError(f"{role} must be a function (def or lambda), not {type(function).__name__}")
    is_method = inspect.ismethod(plain)
    if is_method or code.co_flags & _SPECIAL:
        kind = "a method" if is_method else "a generator" if inspect.isgeneratorfunction(plain) else "asynchronous"
        raise ArgumentTypeError(f"{role} must be a plain function (def or lambda), but is {kind}")
    taken = code.co_argcount
    if count < taken - len(plain.__defaults__ or ()) or (count > taken and not code.co_flags & inspect.CO_VARARGS):
        place = place_of(device_function(function, device))
        given = f"{taken} argument{'s' * (taken != 1)}"
        raise ProgramError(f"{role} takes {given}, but is called with {call}: {count}{place}")


def check_bucket_number(function: Function, kinds: tuple[Any, ...]) -> None:
    """Raise ``ProgramError`` unless a function of a vertex can be compiled and returns an integer."""
    result, place = result_of(function, "number", (types.int64, *kinds), kinds)
    if not isinstance(result, (types.Boolean, types.Integer)):
        raise ProgramError(f"number returns {shown_type(result)}, but must return an integer{place}")


def kind_of(name: str, array: Any) -> Any:
    """Return the Numba type of an array or number that is passed to bodies."""
    if type(array) is float or (type(array) is int and -(1 << 63) <= array < 1 << 63):
        return types.float64 if type(array) is float else types.int64
    if isinstance(array, int) and not -(1 << 63) <= array < 1 << 64:
        raise ArgumentError(f"{name} is {array}, which does not fit 64 bits: pass a smaller number or a float")
    if isinstance(array, (bool, int, float)):
        return numba.typeof(array)
    dtype = getattr(array, "dtype", None)
    if dtype is None or not isinstance(dtype, np.dtype):
        raise ArgumentTypeError(
            f"{name} must be an array on the frontier's device or a number, not {type(array).__name__}"
        )
    if dtype not in DTYPES:
        raise ArgumentTypeError(f"{name} has dtype {dtype}, but bodies take {NUMBERS}: convert it by astype")
    return numba.typeof(array) if isinstance(array, (np.generic, np.ndarray)) else _array_type(dtype)


@functools.cache
def _array_type(dtype: np.dtype[Any]) -> Any:
    return numba.from_dtype(dtype)[::1]

"""The function, identity and absorbing element of built-in and user-defined combiners."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, get_args

import numpy as np

from gpu_pregel.errors import ArgumentError, ProgramError
from gpu_pregel.host.traverse.functions import check_callable, line_of
from gpu_pregel.kernels.library.fingerprint import may_loop
from gpu_pregel.kernels.traverse.fields import Fields

Reduction = Literal["min", "max", "sum", "or", "and"]
BuiltInCombiner = Literal["min", "max", "sum", "or", "and", "any"]
REDUCTIONS: tuple[str, ...] = get_args(Reduction)
"""The built-in combiners of aggregates."""
COMBINERS: tuple[str, ...] = get_args(BuiltInCombiner)
"""The built-in combiners of messages."""


@dataclass(frozen=True)
class Combiner:
    """An operation that combines two messages into one: associative, commutative and with an identity.

    Parameters
    ----------
    function : callable
        ``function(a, b)`` combines two messages. Compiled by Numba. It is tried on a few small numbers first, and
        refused with a ``ProgramError`` if it depends on their order or grouping.
    identity : number or tuple
        ``function(identity, a) == a``. What messages combine to may equal it: the vertex applies it too.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> gp.Combiner(lambda a, b: a * b, 1).identity
    1
    """

    function: Callable[[Any, Any], Any]
    identity: Any

    def __post_init__(self) -> None:
        check_callable("Combiner's function", self.function, (2,), "(a, b)")


def check_combine(role: str, combine: object, names: tuple[str, ...]) -> None:
    """Raise ``ArgumentError`` unless ``combine`` is one of these names or a ``Combiner``."""
    if isinstance(combine, Combiner):
        return
    if combine not in names:
        raise ArgumentError(f"{role} must be one of {', '.join(map(repr, names))} or a gp.Combiner, not {combine!r}")


def resolve_combiner(combine: str | Combiner, fields: Fields) -> tuple[Callable[[Any, Any], Any], Any]:
    """Return a combiner's function and its identity, which has the type of the message."""
    if fields.is_data:
        if isinstance(combine, Combiner):
            return combine.function, combine.identity
        return _of_data(combine), None
    if isinstance(combine, Combiner):
        function, identity = getattr(combine.function, "py_func", combine.function), _typed(combine.identity, fields)
        _check_laws(function, identity, fields)
        return function, identity
    if combine in ("or", "and") and any(dtype.kind == "f" for dtype in fields.dtypes):
        raise ProgramError(f"combine={combine!r} needs integers or bool, not {field_names(fields)}")
    starts = {"min": _top, "max": _bottom, "sum": _zero, "or": _zero, "and": _ones, "any": _top}
    parts = tuple(starts[combine](dtype) for dtype in fields.dtypes)
    identity = fields.pack(parts)
    return _built_in(combine, fields, identity), identity


_SAMPLES = 3, 1, 2
"""The numbers on which combiners are tried."""


@functools.lru_cache(maxsize=64)
def _check_laws(function: Callable[[Any, Any], Any], identity: Any, fields: Fields) -> None:
    """Raise ``ProgramError`` if a combiner's results depend on the order of some small messages, or of its identity.

    Functions that fail for these messages, that return other types or may never return are left to compilers.
    """
    if may_loop(function):
        return

    def call(a: Any, b: Any) -> Any:
        found = function(a, b)
        parts = tuple(found) if fields.is_tuple else (found,)
        typed = [dtype.type(part) for dtype, part in zip(fields.dtypes, parts, strict=True)]
        if any(one.dtype.kind in "biu" and one != part for one, part in zip(typed, parts, strict=True)):
            raise OverflowError
        return fields.pack(typed)

    samples = [[dtype.type(_SAMPLES[(s + k) % 3]) for k, dtype in enumerate(fields.dtypes)] for s in range(3)]
    messages: list[Any] = [fields.pack(parts) for parts in samples]
    laws: list[tuple[str, str, Any, Any, tuple[Any, ...]]] = []
    with suppress(Exception), np.errstate(all="ignore"):
        for a, b, c in product(messages, repeat=3):
            sides = "combine(combine({0}, {1}), {2})", "combine({0}, combine({1}, {2}))"
            laws.append((*sides, call(call(a, b), c), call(a, call(b, c)), (a, b, c)))
        for a, b in product(messages, repeat=2):
            laws.append(("combine({0}, {1})", "combine({1}, {0})", call(a, b), call(b, a), (a, b)))
        for a in messages:
            laws.append(("combine(identity, {0})", "", call(identity, a), a, (a,)))
    for one, other, is_one, is_other, given in laws:
        if not np.allclose(is_one, is_other, 1e-3, 0, equal_nan=True):
            one, other = (text.format(*map(_in_words, given)) for text in (one, other))
            found = f"{one} is {_in_words(is_one)}" + (f" and {other} is {_in_words(is_other)}" if other else "")
            raise ProgramError(
                f"combine ({line_of(function)}) must give the same in any order and grouping, and change nothing with "
                f"its identity, but {found}: combine sums, largest numbers or tuples of them, and compute the rest "
                "from what arrives"
            )


def _in_words(message: Any) -> str:
    """Return a number or a tuple as text."""
    return str(tuple(part.item() for part in message) if isinstance(message, tuple) else message)


def _of_data(combine: str) -> Callable[[Any, Any], Any]:
    """Return the function of a built-in combiner of data, whose identity is None."""
    bodies = {"any": "a", "min": "min(a, b)", "max": "max(a, b)", "sum": "a + b", "or": "a | b", "and": "a & b"}
    function: Callable[[Any, Any], Any] = eval(f"lambda a, b: b if a is None else {bodies[combine]}")
    return function


def absorbing(combine: str | Combiner, fields: Fields) -> Any:
    """Return the number that no other message changes; None if there is none, or messages are tuples."""
    starts = {"min": _bottom, "max": _top, "or": _ones, "and": _zero}
    if isinstance(combine, Combiner) or fields.is_tuple or combine not in starts:
        return None
    return starts[combine](fields.dtypes[0])


def _zero(dtype: np.dtype[Any]) -> Any:
    return dtype.type(0)


def _ones(dtype: np.dtype[Any]) -> Any:
    return dtype.type(-1) if dtype.kind == "i" else _top(dtype)


def _top(dtype: np.dtype[Any]) -> Any:
    if dtype.kind == "b":
        return dtype.type(True)
    return dtype.type(np.inf) if dtype.kind == "f" else dtype.type(np.iinfo(dtype).max)


def _bottom(dtype: np.dtype[Any]) -> Any:
    if dtype.kind == "b":
        return dtype.type(False)
    return dtype.type(-np.inf) if dtype.kind == "f" else dtype.type(np.iinfo(dtype).min)


def _built_in(combine: str, fields: Fields, identity: Any) -> Callable[[Any, Any], Any]:
    """Return the function of a built-in combiner: tuples compare lexicographically and are added field by field."""
    if combine == "any":
        is_nothing = [f"a[{k}] == identity[{k}]" for k in range(len(fields.dtypes))]
        body = f"b if {' and '.join(is_nothing) if fields.is_tuple else 'a == identity'} else a"
    elif combine in ("min", "max") and not fields.is_tuple:
        # For a conditional expression LLVM emits a branch, which takes three times as long when mispredicted.
        body = f"{combine}(a, b)"
    elif combine in ("min", "max"):
        body = f"a if a {'<=' if combine == 'min' else '>='} b else b"
    else:
        sign = {"sum": "+", "or": "|", "and": "&"}[combine]
        parts = [f"a[{k}] {sign} b[{k}]" for k in range(len(fields.dtypes))]
        body = f"({', '.join(parts)},)" if fields.is_tuple else f"a {sign} b"
    function: Callable[[Any, Any], Any] = eval(f"lambda a, b: {body}", {"identity": identity})
    return function


def _typed(identity: Any, fields: Fields) -> Any:
    parts = identity if fields.is_tuple else (identity,)
    if not isinstance(parts, tuple) or len(parts) != len(fields.dtypes):
        raise ProgramError(f"the combiner's identity {identity!r} does not fit messages of {field_names(fields)}")
    typed = []
    for part, dtype in zip(parts, fields.dtypes, strict=True):
        try:
            exact = np.asarray(part).astype(dtype)
        except (TypeError, ValueError):
            exact = None
        if exact is None or (exact != part and part == part):
            raise ProgramError(f"the combiner's identity {identity!r} does not fit messages of {field_names(fields)}")
        typed.append(dtype.type(part))
    return fields.pack(typed)


def field_names(fields: Fields) -> str:
    """Format the dtypes of fields for messages."""
    parts = list(map(str, fields.dtypes))
    if fields.names is not None:
        parts = [f"{name}: {part}" for name, part in zip(fields.names, parts, strict=True)]
    return f"({', '.join(parts)})" if fields.is_tuple else parts[0]

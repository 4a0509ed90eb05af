"""The options that change the results of a run: their stored form, and their comparison when the run is resumed.

Functions are not stored, only their names and digests of their code.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from types import CodeType
from typing import Any

from gpu_pregel.errors import CheckpointError, CodecError
from gpu_pregel.host.agents.codec import decode, encode
from gpu_pregel.host.agents.combiners import SuperstepFold, TopK
from gpu_pregel.host.agents.options import STORED, RunOptions
from gpu_pregel.host.agents.retry import DEFAULT_RETRY, RetryPolicy
from gpu_pregel.host.superstep.aggregators import Aggregator

StoredOptions = dict[str, Any]
"""The stored form of each option in ``STORED``, as data; empty for runs of releases that stored none."""
_FUNCTION, _TOP = "function", "TopK"
_ANY_EXCEPTION = ["Exception"]


def describe_options(options: RunOptions) -> StoredOptions:
    """Return the stored form of options, which is kept for further runs with them."""
    if options.described is None:
        options.described = _describe_all(options)
    return dict(options.described)


def _describe_all(options: RunOptions) -> StoredOptions:
    described = {name: _describe(getattr(options, name)) for name in STORED}
    retry = options.retry or DEFAULT_RETRY
    if isinstance(retry, RetryPolicy):
        exceptions = [one.__qualname__ for one in retry.exceptions]
        described["retry"] = [retry.attempts, exceptions, retry.wait, retry.factor, retry.max_wait, retry.jitter]
    described["aggregators"] = {
        name: [_describe(one.combine), encode(one.initial), one.persistent]
        for name, one in options.aggregators_by_name.items()
        if name not in options.unsent  # runs of versions without them can be continued
    }
    return described


def adopt_options(options: RunOptions, stored: StoredOptions, where: str, superstep: int) -> None:
    """Replace options that the user has not passed by the stored ones; refuse others, unless ``override`` names them.

    Parameters
    ----------
    options : RunOptions
        Modified.
    stored : StoredOptions
    where : str
        The name of the stored run.
    superstep : int
        The next one.
    """
    passed, adopted = describe_options(options), {}
    for name in STORED:
        if name not in stored or name in options.override:
            continue
        before, now = stored[name], passed[name]
        if name not in options.given:
            if before != now:
                adopted[name] = _restore(where, name, before)
        elif not _is_same(name, before, now):
            was, other = _show(name, before, now), _show(name, now, before)
            raise CheckpointError(
                where,
                f"was started with {was}, but {'another function' if other == was else other} was passed: omit {name} "
                f"or pass the same, or pass override={name!r} to change it from superstep {superstep} on",
            )
    options.adopt(adopted)


def _describe(value: Any) -> Any:
    """Return the stored form of an option: a list for functions and ``TopK``, otherwise the value itself."""
    if isinstance(value, TopK):
        return [_TOP, value.k]
    if isinstance(value, SuperstepFold):
        return [_FUNCTION, type(value).__qualname__, list(sys.version_info[:2]), b""]
    if callable(value):
        name = str(getattr(value, "__qualname__", None) or type(value).__qualname__)
        return [_FUNCTION, name, list(sys.version_info[:2]), _digest(value)]
    return value


def _digest(function: Callable[..., Any]) -> bytes:
    """Return a digest of the code of a function, without its closure; empty if it has no code in Python.

    The arguments of a ``functools.partial`` count if they are data.
    """
    content: list[str] = []
    while isinstance(function, partial):
        with suppress(CodecError):
            content.append(encode((function.args, sorted(function.keywords.items()))).hex())
        function = function.func
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    content += [] if code is None else _content(code)
    return hashlib.sha256("\n".join(content).encode()).digest() if content else b""


def _content(code: CodeType) -> Iterator[str]:
    yield from (code.co_code.hex(), repr(code.co_names), repr(code.co_varnames[: code.co_argcount]))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _content(constant)
        elif isinstance(constant, frozenset):
            yield repr(sorted(map(repr, constant)))
        else:
            yield repr(constant)


def _is_same(name: str, before: Any, now: Any) -> bool:
    """Whether two stored forms of an option give the same results."""
    if name == "retry" and _FUNCTION not in (before[0], now[0]):
        return bool(before[:2] == now[:2])
    if name == "aggregators":
        return before.keys() == now.keys() and all(
            _is_same_function(before[one][0], now[one][0]) and before[one][1:] == now[one][1:] for one in before
        )
    return _is_same_function(before, now)


def _is_same_function(before: Any, now: Any) -> bool:
    """Whether two functions have the same name and, in the same version of Python, the same code."""
    if not isinstance(before, list) or not isinstance(now, list) or before[0] != _FUNCTION:
        return bool(before == now)
    return before[:2] == now[:2] and (before[2] != now[2] or before[3] == now[3])


def _restore(where: str, name: str, stored: Any) -> Any:
    """Return an option from its stored form."""
    if name == "aggregators":
        return {
            one: Aggregator(
                _restore(where, f"{name}[{one!r}]", combine), initial=decode(initial), persistent=persistent
            )
            for one, (combine, initial, persistent) in stored.items()
        }
    if name == "retry" and stored[1] == _ANY_EXCEPTION:
        attempts, _, *rest = stored
        return RetryPolicy(attempts, *rest)
    if name != "retry" and not isinstance(stored, list):
        return stored
    if stored[0] == _TOP:
        return TopK(stored[1])
    option = name.partition("[")[0]
    raise CheckpointError(
        where,
        f"was started with {_show(name, stored)}, but functions and exceptions are not stored: pass {option} again, or "
        f"override={option!r} to continue without it",
    )


def _show(name: str, stored: Any, other: Any = None) -> str:
    """Return an option as an error shows it; of aggregators, the first that differs from ``other``."""
    if name == "retry" and stored[0] != _FUNCTION:
        return f"retry=RetryPolicy(attempts={stored[0]}, exceptions=({', '.join(stored[1])}))"
    if name == "aggregators":
        differing = [one for one in (stored | other) if stored.get(one) != other.get(one)]
        if differing[0] not in stored:
            return f"no aggregator {differing[0]!r}"
        combine, initial, persistent = stored[differing[0]]
        shown = _show("", combine)[1:], f"initial={decode(initial)!r:.80}", f"persistent={persistent}"
        return f"aggregators[{differing[0]!r}]=({', '.join(shown)})"
    if isinstance(stored, list):
        return f"{name}={stored[1] if stored[0] == _FUNCTION else TopK(stored[1])}"
    return f"{name}={stored!r}"

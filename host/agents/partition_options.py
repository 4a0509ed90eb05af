"""The options of a run that its partitions need; they are pickled and sent to worker processes."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from inspect import CO_COROUTINE, iscoroutinefunction
from types import FunctionType
from typing import Any, NamedTuple

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, AttemptError
from gpu_pregel.host.agents.codec import decode, encode
from gpu_pregel.host.agents.combiners import Reduction
from gpu_pregel.host.agents.retry import RetryPolicy
from gpu_pregel.host.agents.vertex_options import (
    RetryOfVertex,
    TimeoutOfVertex,
    refuse_timeout,
    retry_of,
    timeout_of,
)

_ONCE = RetryPolicy(attempts=1)


class PartitionOptions(NamedTuple):
    """Options of a run that partitions, their executors and contexts read; see ``run`` for those of the same name.

    Attributes
    ----------
    functions : dict of str to callable
        Compute functions by name.
    combiner : Reduction or None
    retry : RetryPolicy or callable
    run_id : str
    branch : int
        Number of the fork; part of every ``ctx.key``.
    timeout : float, callable or None
    max_concurrency : int
    max_message, max_outbox, max_record, max_memory : int or None
    is_observed : bool
        Whether the run has observers, to which emissions are sent.
    can_time_out : bool
        Whether ordinary functions may have a timeout.
    is_timed : bool
        Whether one of them wants to know when attempts began and how long they took.
    """

    functions: dict[str, Callable[..., Any]]
    combiner: Reduction | None
    retry: RetryPolicy | RetryOfVertex
    run_id: str
    branch: int
    timeout: float | TimeoutOfVertex | None
    max_concurrency: int
    max_message: int | None
    max_outbox: int | None
    max_record: int | None
    max_memory: int | None
    is_observed: bool
    can_time_out: bool
    is_timed: bool = False

    def is_async(self, function: str) -> bool:
        """Whether a compute function runs on an event loop."""
        return is_async(self.functions[function])

    @property
    def has_vertex_options(self) -> bool:
        """Whether options depend on the vertex."""
        return callable(self.retry) or callable(self.timeout)

    def check_vertex(self, vertex: bytes, function: str) -> None:
        """Raise AttemptError, which fails the attempt for good, if options of a vertex are invalid."""
        try:
            if callable(self.retry):
                retry_of(self.retry, decode(vertex))
            if callable(self.timeout):
                seconds = timeout_of(self.timeout, decode(vertex))
                if seconds is not None and not self.can_time_out and not self.is_async(function):
                    raise refuse_timeout(f"timeout({decode(vertex)!r:.80})={seconds}", function)
        except (ArgumentError, ArgumentTypeError) as error:
            raise AttemptError(str(error), retryable=False) from error

    def retry_of(self, vertex: bytes) -> RetryPolicy:
        """Return the retry policy of a vertex; without further attempts if it is invalid, as its attempt has failed."""
        if not callable(self.retry):
            return self.retry
        try:
            return retry_of(self.retry, decode(vertex))
        except (ArgumentError, ArgumentTypeError):
            return _ONCE

    def timeout_of(self, vertex: bytes) -> float | None:
        """Return the timeout of a vertex; None if it is invalid, as its attempt will fail."""
        if not callable(self.timeout):
            return self.timeout
        try:
            return timeout_of(self.timeout, decode(vertex))
        except (ArgumentError, ArgumentTypeError):
            return None

    def key(self, step: int, vertex: bytes) -> bytes:
        """Return the key of a vertex, given by its encoded id, in a superstep."""
        from hashlib import sha256  # takes longer to import than the rest of this module

        return sha256(encode((self.run_id, self.branch, step, vertex))).digest()


def is_async(function: Any) -> bool:
    """Whether a function or callable object returns coroutines."""
    if type(function) is FunctionType and not function.__dict__:  # the usual case, ten times as fast
        return bool(function.__code__.co_flags & CO_COROUTINE)
    while isinstance(function, partial):
        function = function.func
    is_object = type(type(function).__call__) is FunctionType
    if is_object and not _is_marked(function):
        return _has_async_call(type(function))  # type: ignore[arg-type]
    return iscoroutinefunction(function)


def _is_marked(function: Any) -> bool:
    """Whether ``inspect.markcoroutinefunction`` may have marked an object."""
    return hasattr(function, "_is_coroutine_mark") or hasattr(function, "_is_coroutine_marker")


@lru_cache(maxsize=256)
def _has_async_call(kind: type[Any]) -> bool:
    """Whether objects of a class return coroutines when they are called."""
    return iscoroutinefunction(kind.__call__)

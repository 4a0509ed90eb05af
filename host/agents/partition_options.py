"""The options of a run that its partitions need; they are pickled and sent to worker processes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gpu_pregel.host.agents.codec import encode
from gpu_pregel.host.agents.combiners import Reduction
from gpu_pregel.host.agents.retry import RetryPolicy


@dataclass(frozen=True, slots=True)
class PartitionOptions:
    """Options of a run that partitions, their executors and contexts read; see ``run`` for those of the same name.

    Attributes
    ----------
    functions : dict of str to callable
        Compute functions by name.
    combiner : Reduction or None
    retry : RetryPolicy
    run_id : str
    branch : int
        Number of the fork; part of every ``ctx.key``.
    timeout : float or None
    max_concurrency : int
    max_message, max_outbox, max_record, max_memory : int or None
    is_observed : bool
        Whether the run has observers, to which emissions are sent.
    is_timed : bool
        Whether one of them wants to know when attempts began and how long they took.
    """

    functions: dict[str, Callable[..., Any]]
    combiner: Reduction | None
    retry: RetryPolicy
    run_id: str
    branch: int
    timeout: float | None
    max_concurrency: int
    max_message: int | None
    max_outbox: int | None
    max_record: int | None
    max_memory: int | None
    is_observed: bool
    is_timed: bool = False

    def is_async(self, function: str) -> bool:
        """Whether a compute function runs on an event loop."""
        return is_async(self.functions[function])

    def key(self, step: int, vertex: bytes) -> bytes:
        """Return the key of a vertex, given by its encoded id, in a superstep."""
        from hashlib import sha256  # takes longer to import than the rest of this module

        return sha256(encode((self.run_id, self.branch, step, vertex))).digest()


def is_async(function: Any) -> bool:
    """Whether a function or callable object returns coroutines."""
    from functools import partial
    from inspect import iscoroutinefunction

    while isinstance(function, partial):
        function = function.func
    return iscoroutinefunction(function) or iscoroutinefunction(type(function).__call__)

"""Bodies of operators with guards: what one raises is recorded, and its kernel continues in all threads."""

from __future__ import annotations

from typing import Any

from gpu_pregel.kernels.library.attempts_cuda import attempt
from gpu_pregel.kernels.library.jit_cuda import device
from gpu_pregel.kernels.traverse.failures_cuda import NO_VERTEX, record_edge
from gpu_pregel.kernels.traverse.fields import generated


def with_plain_call(function: Any, count: int) -> Any:
    """Return a function of ``count`` arguments that passes them on to one that may have defaults or take any number."""
    names = ", ".join(f"a{k}" for k in range(count))
    return generated(device, "call", f"def call({names}):\n    return function({names})\n", function=function)


def guard_body(called: Any, count: int, ends: int) -> Any:
    """Return a function of an operator's body, or ``receives``, that records in one more array what it raises.

    ``called`` takes ``count`` arguments; its result is then 0. Recorded are the first argument and, if ``ends`` is more
    than 1, the one of that number.
    """
    names = ", ".join(f"a{k}" for k in range(count))
    source = (
        f"def guarded({names}, failures):\n    result, status = attempt(called, ({names},))\n"
        f"    if status != 0:\n        record_edge(failures, a0, {f'a{ends - 1}' if ends > 1 else 'none'}, status)\n"
        f"    return result\n"
    )
    given: dict[str, Any] = {"attempt": attempt, "record_edge": record_edge, "none": NO_VERTEX}
    return generated(device, "guarded", source, called=called, **given)


def ignore_record(called: Any, count: int) -> Any:
    """Return a function that takes the record too, and cannot raise."""
    names = ", ".join(f"a{k}" for k in range(count))
    source = f"def unguarded({names}, failures):\n    return called({names})\n"
    return generated(device, "unguarded", source, called=called)

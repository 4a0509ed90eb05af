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


def guard(
    function: Any, arguments: str, failure: str | None, *, passed: str = "", before: str = "", **names: Any
) -> Any:
    """Return a function of ``arguments`` that calls ``function`` with those, or with ``passed``, after ``before``.

    If that raises, the statements ``failure`` follow, which know the ``status``, and the result is 0; None stands for a
    function that cannot raise.
    """
    call = f"function({passed or arguments})" if failure is None else f"attempt(function, ({passed or arguments},))"
    source = f"def guarded({arguments}):\n{before}"
    if failure is None:
        source += f"    return {call}\n"
    else:
        source += f"    result, status = {call}\n    if status != 0:\n        {failure}\n    return result\n"
    return generated(device, "guarded", source, function=function, attempt=attempt, **names)


def guard_body(called: Any, count: int, ends: int, *, raises: bool) -> Any:
    """Return a function of an operator that takes one more array, in which it records what ``called`` raises.

    ``called`` takes ``count`` arguments. Recorded are the first one and, if ``ends`` is more than 1, the one of that
    number.
    """
    names = ", ".join(f"a{k}" for k in range(count))
    failure = f"record_edge(failures, a0, {f'a{ends - 1}' if ends > 1 else 'none'}, status)" if raises else None
    given: dict[str, Any] = {"record_edge": record_edge, "none": NO_VERTEX}
    return guard(called, f"{names}, failures", failure, passed=names, **given)

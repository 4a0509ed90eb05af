"""Options that may differ between vertices: functions of an id, checked whenever they are called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpu_pregel.errors import ArgumentError, ArgumentTypeError
from gpu_pregel.host.agents.retry import DEFAULT_RETRY, RetryPolicy
from gpu_pregel.host.arguments import check_seconds

RetryOfVertex = Callable[[Any], RetryPolicy | None]
TimeoutOfVertex = Callable[[Any], float | None]


def retry_of(given: RetryOfVertex, vertex_id: Any) -> RetryPolicy:
    """Return the retry policy of a vertex; raise ``ArgumentError`` or ``ArgumentTypeError`` if there is none."""
    found: Any = _call("retry", given, vertex_id)
    if found is None:
        return DEFAULT_RETRY
    if not isinstance(found, RetryPolicy):
        raise ArgumentTypeError(f"retry({vertex_id!r:.80}) must return a RetryPolicy or None, not {found!r:.80}")
    return found


def timeout_of(given: TimeoutOfVertex, vertex_id: Any) -> float | None:
    """Return the timeout of a vertex in seconds, or None; raise the same errors."""
    found = _call("timeout", given, vertex_id)
    return None if found is None else check_seconds(f"timeout({vertex_id!r:.80})", found)


def _call(name: str, given: Callable[[Any], Any], vertex_id: Any) -> Any:
    try:
        return given(vertex_id)
    except Exception as error:
        raise ArgumentError(
            f"{name}({vertex_id!r:.80}) raised {type(error).__name__}: {error}: it must return a value for each vertex"
        ) from error


def refuse_timeout(shown: str, function: str) -> ArgumentError:
    """Return the error for a timeout of an ordinary function that is computed on the thread of the caller."""
    return ArgumentError(
        f"{shown} cannot be enforced with workers=0, because function {function!r} cannot be interrupted: pass "
        f"workers=1 or threads=1, or make it async"
    )

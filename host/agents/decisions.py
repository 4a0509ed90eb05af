"""What ``on_failure`` decides about the failed vertices of a superstep."""

from __future__ import annotations

from typing import Any

from gpu_pregel.errors import AgentError, CodecError
from gpu_pregel.host.agents.codec import decode, id_key
from gpu_pregel.host.agents.ledger import Ledger
from gpu_pregel.host.agents.records import UNREADABLE, Failure, Id
from gpu_pregel.host.agents.retry import RetryPolicy
from gpu_pregel.host.agents.workers.error_texts import text_of, trace_of


def decide(on_failure: Any, ledger: Ledger) -> Any:
    """Return "raise", "abort", "continue" or the encoded ids of failed vertices to retry."""
    failures = {vertex: one.failure for vertex, one in ledger.failures({}).items()}
    if any(failure.kind == UNREADABLE for failure in failures.values()):
        return "raise"
    if not callable(on_failure):
        return on_failure
    decision = on_failure({decode(vertex): failure for vertex, failure in failures.items()})
    if decision in ("raise", "continue"):
        return decision
    chosen: list[Id] = []
    try:
        chosen += [] if isinstance(decision, (str, bytes)) else [id_key(vertex) for vertex in decision]
    except TypeError:
        chosen = []
    if not chosen or not set(chosen) <= set(ledger.with_status("failed")):
        raise AgentError(f"on_failure returned {decision!r}: return 'raise', 'continue', or a list of failed vertices")
    return chosen


def refusal(reason: AgentError, retry: RetryPolicy) -> Failure:
    """Return the failure of a vertex whose record cannot be folded."""
    cause = reason.__cause__ or reason
    kind = UNREADABLE if isinstance(cause, CodecError) else "request"
    traceback = trace_of(cause) if cause is not reason else ""
    return Failure(kind, type(reason).__name__, text_of(reason), traceback, kind != UNREADABLE and retry.matches(cause))

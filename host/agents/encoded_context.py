"""Access to a context in encoded form, for layers on top of compute functions that encode once what they send often."""

from __future__ import annotations

from collections.abc import Mapping

from gpu_pregel.host.agents.context import Context
from gpu_pregel.host.agents.records import Id


def encoded_id(context: Context) -> Id:
    """Return the encoded id of the vertex."""
    return context._task.id


def encoded_aggregates(context: Context) -> Mapping[str, bytes]:
    """Return the encoded aggregates of the previous superstep."""
    return context._batch.aggregates


def send_encoded(context: Context, target: Id, message: bytes) -> None:
    """Send an encoded message to a vertex, given by its encoded id, regardless of ``max_outbox``."""
    context._outbox.append((target, message))

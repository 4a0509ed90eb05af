"""Access to a context in encoded form, for layers on top of compute functions that encode once what they send often."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gpu_pregel.host.agents.codec import decode
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


def send_all_encoded(context: Context, messages: Iterable[tuple[Id, bytes]]) -> None:
    """Send several such messages, each with the encoded id of its vertex."""
    context._outbox.extend(messages)


def contribute_encoded(context: Context, name: str, data: bytes) -> None:
    """Add encoded data to the record under a name, as ``Context.contribute`` does."""
    context._aggregates.append((name, data))


def recorded_answers(context: Context) -> list[Any]:
    """Return all recorded answers to the vertex's interrupts; the next ``interrupt`` waits for another one."""
    answers = [decode(data, name="an answer") for data in context._task.answers]
    context._interrupts = len(answers)
    return answers


def is_observed(context: Context) -> bool:
    """Whether somebody receives what the attempt emits."""
    return context._options.is_observed


def run_of(context: Context) -> str:
    """Return the id of the run."""
    return context._options.run_id

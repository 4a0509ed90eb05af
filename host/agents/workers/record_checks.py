"""Checks of what an attempt has produced, before its record leaves the worker: only this vertex fails."""

from __future__ import annotations

from typing import Any

from gpu_pregel.errors import AgentError
from gpu_pregel.host.agents.codec import encode
from gpu_pregel.host.agents.codec.differences import changed_size
from gpu_pregel.host.agents.records import Record
from gpu_pregel.host.agents.stored_shapes import are_requests

OVERWRITTEN = (
    "private attributes of the context were overwritten: set only ctx.value, and call the methods of the context"
)


def check_types(record: Record) -> None:
    """Refuse a record that the master could not fold."""
    _, halted, outbox, aggregates, mutations = record
    if (
        (halted is not False and halted is not True)
        or type(outbox) is not list
        or type(aggregates) is not list
        or type(mutations) is not list
        or (mutations and not are_requests(mutations))
    ):
        raise AgentError(OVERWRITTEN)
    if outbox:
        for target, message in outbox:
            if type(target) is not bytes or type(message) is not bytes:
                raise AgentError(OVERWRITTEN)
    if aggregates:
        for name, data in aggregates:
            if type(name) is not str or type(data) is not bytes:
                raise AgentError(OVERWRITTEN)


class RecordTooLargeError(Exception):
    """The output of an attempt exceeds ``max_record``."""


def check_size(record: Record, limit: int) -> None:
    """Refuse a record with more bytes than ``max_record``."""
    parts = [data for pair in (*record.outbox, *record.aggregates) for data in pair]
    size = sum(map(len, parts)) + (0 if record.value is None else changed_size(record.value))
    size += len(encode(record.mutations)) if record.mutations else 0
    if size > limit:
        raise RecordTooLargeError(
            f"the output of the attempt has {size:,} bytes, but max_record is {limit:,}: reduce it, or raise max_record"
        )


def refuse_result(result: Any) -> None:
    """Refuse what a compute function returned, which is not None."""
    from inspect import isasyncgen, iscoroutine, isgenerator

    remedy = "set ctx.value, or send it, and return nothing"
    if iscoroutine(result):
        result.close()
        remedy = "make compute itself an async function that awaits it"
    elif isgenerator(result) or isasyncgen(result):
        remedy = "its body did not run, because it contains yield: remove it"
    raise TypeError(f"compute must return None, but returned {type(result).__name__}: {remedy}")

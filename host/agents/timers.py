"""Durable timers, by which a vertex is computed again at a time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gpu_pregel.errors import ArgumentError, ArgumentTypeError
from gpu_pregel.host.agents.records import WAKE_AT, Id, Record

Timers = dict[Id, float]
"""When vertices are to be computed, in seconds since 1970."""


def check_time(name: str, when: Any) -> float:
    """Return a time as seconds since 1970."""
    from datetime import datetime

    if isinstance(when, datetime):
        if when.utcoffset() is None:
            raise ArgumentError(f"{name}={when!r} has no time zone: pass tzinfo=, such as datetime.UTC")
        when = when.timestamp()
    if isinstance(when, bool) or not isinstance(when, (int, float)):
        raise ArgumentTypeError(f"{name} must be seconds since 1970 or a datetime with a time zone, not {when!r}")
    if not 0 <= when < 1e12:
        raise ArgumentError(f"{name}={when!r} is no time in seconds since 1970")
    return float(when)


def timers_after(timers: Timers, records: Iterable[tuple[Id, Record]], removed: Iterable[Id]) -> Timers:
    """Return the timers after a superstep; ``timers`` is not changed."""
    new = [
        (vertex, request[1])
        for vertex, record in records
        if record.mutations
        for request in record.mutations
        if request[0] == WAKE_AT
    ]
    if not timers and not new:
        return timers
    gone = set(removed)
    return {vertex: when for vertex, when in (timers | dict(new)).items() if vertex not in gone}


def due_timers(timers: Timers, now: float) -> list[Id]:
    """Return the vertices whose time has come, in order."""
    return sorted(vertex for vertex, when in timers.items() if when <= now)

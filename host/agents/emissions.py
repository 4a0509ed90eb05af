"""Emissions: the data that attempts send to observers while they run. They are neither stored nor repeated."""

from __future__ import annotations

import os
from _thread import RLock, get_ident
from collections.abc import Callable
from threading import Condition
from typing import NamedTuple

from gpu_pregel.errors import AgentError
from gpu_pregel.host.agents.records import Id

_MAX_PENDING = 1 << 26
"""Bytes that an ``EmissionBuffer`` may hold before another emission has to wait."""
_OVERHEAD = 200
"""Approximate bytes of an emission besides its payload."""


class Emission(NamedTuple):
    """An encoded payload with the vertex and attempt that emitted it; ``sequence`` counts from 0 in each attempt."""

    vertex: Id
    attempt: int
    sequence: int
    payload: bytes


class Emitter:
    """Sends the emissions of all attempts in this process, one at a time.

    Parameters
    ----------
    send : callable
        ``send(emission)`` may wait for observers.
    wait_for_room : callable, optional
        Called before an emission gets its number, without the lock; may wait, or raise.
    """

    def __init__(self, send: Callable[[Emission], None], wait_for_room: Callable[[], None] = lambda: None) -> None:
        self.send, self.wait_for_room = send, wait_for_room
        self.lock = RLock()
        self.process = os.getpid()


class AttemptEmissions:
    """The emissions of one attempt, which any of its threads may make."""

    __slots__ = ("_attempt", "_emitter", "_is_over", "_sequence", "_vertex")

    def __init__(self, emitter: Emitter, vertex: Id, attempt: int) -> None:
        self._emitter, self._vertex, self._attempt = emitter, vertex, attempt
        self._sequence, self._is_over = 0, False

    def add(self, payload: bytes) -> None:
        """Send a payload."""
        emitter = self._emitter
        if os.getpid() != emitter.process:
            raise RuntimeError("a forked process cannot emit: let it return the data to the process of the attempt")
        emitter.wait_for_room()
        with emitter.lock:
            if self._is_over:
                raise attempt_over_error()
            sequence = self._sequence
            self._sequence += 1
            emitter.send(Emission(self._vertex, self._attempt, sequence, payload))

    def end(self) -> None:
        """Refuse further emissions, once one that another thread is sending has been sent."""
        with self._emitter.lock:
            self._is_over = True


def attempt_over_error() -> RuntimeError:
    """Return the error for emissions after the end of their attempt."""
    return RuntimeError(
        "the attempt has ended, so emissions of its context are lost: wait for threads and tasks before compute returns"
    )


class EmissionBuffer:
    """Emissions of attempts on the event loop of a program, until the master takes them.

    Must be created on the thread of the loop, which cannot wait for the master: the master needs the loop.
    """

    def __init__(self) -> None:
        self._emissions: list[Emission] = []
        self._size = 0
        self._is_closed = False
        self._loop_thread = get_ident()
        self._changed = Condition()

    def __bool__(self) -> bool:
        return bool(self._emissions)

    @property
    def is_on_loop(self) -> bool:
        """Whether the caller is on the thread of the loop."""
        return get_ident() == self._loop_thread

    def wait_for_room(self) -> None:
        """Wait while the buffer is full; on the thread of the loop, raise instead."""
        with self._changed:
            if self._size > _MAX_PENDING and self.is_on_loop:
                raise AgentError(
                    f"more than {_MAX_PENDING:,} bytes wait for observers, and ctx.emit must not block the event loop: "
                    f"use await asyncio.to_thread(ctx.emit, payload), which waits for them"
                )
            self._changed.wait_for(lambda: self._size <= _MAX_PENDING or self._is_closed)

    def add(self, emission: Emission) -> None:
        """Add an emission."""
        with self._changed:
            self._emissions.append(emission)
            self._size += len(emission.payload) + _OVERHEAD

    def take(self) -> list[Emission]:
        """Return the emissions since the last call."""
        with self._changed:
            emissions, self._emissions, self._size = self._emissions, [], 0
            self._changed.notify_all()
        return emissions

    def close(self) -> None:
        """Let no thread wait any longer."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

"""Emissions: the data that attempts send to observers while they run. They are neither stored nor repeated."""

from __future__ import annotations

import os
from _thread import RLock
from collections.abc import Callable
from typing import NamedTuple

from gpu_pregel.host.agents.attempt_end import emission_refused
from gpu_pregel.host.agents.records import Id


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
                raise emission_refused()
            sequence = self._sequence
            self._sequence += 1
            emitter.send(Emission(self._vertex, self._attempt, sequence, payload))

    def end(self) -> None:
        """Refuse further emissions, once one that another thread is sending has been sent."""
        with self._emitter.lock:
            self._is_over = True

"""Emissions: the data that attempts send to observers while they run. They are neither stored nor repeated."""

from __future__ import annotations

import os
from _thread import RLock
from collections.abc import Callable
from typing import NamedTuple

from gpu_pregel.host.agents.records import Id


class Emission(NamedTuple):
    """An encoded payload with the vertex and attempt that emitted it; ``sequence`` counts from 0 in each attempt."""

    vertex: Id
    attempt: int
    sequence: int
    payload: bytes


TIMES = -1
"""The sequence of the emission that ends an attempt whose times an observer wants: its payload is when the attempt
began, in seconds since 1970, and how many seconds it took."""


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

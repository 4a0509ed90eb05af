"""A bounded buffer of emissions of attempts that run on an event loop in this process."""

from __future__ import annotations

import asyncio
from threading import Condition

from gpu_pregel.errors import AgentError
from gpu_pregel.host.agents.emissions import Emission

_MAX_PENDING = 1 << 26
"""Bytes that an ``EmissionBuffer`` may hold before another emission has to wait."""
_OVERHEAD = 200
"""Approximate bytes of an emission besides its payload."""


class EmissionBuffer:
    """Emissions of attempts on an event loop, until the master takes them.

    Code on the loop cannot wait for the master, which needs the loop, or its thread.

    Parameters
    ----------
    loop : asyncio.AbstractEventLoop

    Attributes
    ----------
    pending : list of Emission
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.pending: list[Emission] = []
        self._size = 0
        self._is_closed = False
        self._loop = loop
        self._changed = Condition()

    @property
    def is_on_loop(self) -> bool:
        """Whether the caller runs on the loop, and not on another thread."""
        return asyncio._get_running_loop() is self._loop

    def wait_for_room(self) -> None:
        """Wait while the buffer is full; on the loop, raise instead."""
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
            self.pending.append(emission)
            self._size += len(emission.payload) + _OVERHEAD

    def take(self) -> list[Emission]:
        """Return the emissions since the last call."""
        with self._changed:
            emissions, self.pending, self._size = self.pending, [], 0
            self._changed.notify_all()
        return emissions

    def close(self) -> None:
        """Let no thread wait any longer."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

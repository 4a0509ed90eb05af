"""A bounded buffer of emissions of attempts that run on the event loop of a program."""

from __future__ import annotations

from _thread import get_ident
from threading import Condition

from gpu_pregel.errors import AgentError
from gpu_pregel.host.agents.emissions import Emission

_MAX_PENDING = 1 << 26
"""Bytes that an ``EmissionBuffer`` may hold before another emission has to wait."""
_OVERHEAD = 200
"""Approximate bytes of an emission besides its payload."""


class EmissionBuffer:
    """Emissions of attempts on the event loop of a program, until the master takes them.

    Must be created on the thread of the loop, which cannot wait for the master: the master needs the loop.

    Attributes
    ----------
    pending : list of Emission
    """

    def __init__(self) -> None:
        self.pending: list[Emission] = []
        self._size = 0
        self._is_closed = False
        self._loop_thread = get_ident()
        self._changed = Condition()

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

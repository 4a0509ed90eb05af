"""The context of attempts whose emissions are sent, because the run has observers."""

from __future__ import annotations

import os
from typing import Any, ClassVar

from gpu_pregel.host.agents.attempt_end import CLOSED, emission_refused
from gpu_pregel.host.agents.codec import encode
from gpu_pregel.host.agents.context import Context
from gpu_pregel.host.agents.emissions import Emission, Emitter
from gpu_pregel.host.agents.records import Record


class ObservedContext(Context):
    """A context that sends emissions; an attempt that emits nothing pays almost nothing.

    Attributes
    ----------
    emitter : Emitter
        Of the process.
    """

    __slots__ = ("_emitted",)
    emitter: ClassVar[Emitter]

    def emit(self, payload: Any) -> None:
        """Send data to the run's observers."""
        data, emitter = encode(payload, name="payload"), self.emitter
        if os.getpid() != emitter.process:
            raise RuntimeError("a forked process cannot emit: let it return the data to the process of the attempt")
        emitter.wait_for_room()
        with emitter.lock:
            sequence: int = getattr(self, "_emitted", 0)
            self._emitted = sequence + 1
            if self._outbox is CLOSED:
                raise emission_refused()
            emitter.send(Emission(self._task.id, self._task.attempt, sequence, data))

    def close(self) -> None:
        """Refuse further messages, requests and emissions."""
        super().close()
        self._await_emission()

    def record(self) -> Record:
        """Close the context and return the record of the attempt."""
        record = super().record()
        self._await_emission()
        return record

    def _await_emission(self) -> None:
        """Wait until another thread has sent its emission.

        That thread notes an emission and then looks whether the context is closed; this one has closed the context and
        then looks for emissions. So at least one of them sees what the other has done.
        """
        if getattr(self, "_emitted", 0):
            with self.emitter.lock:
                pass


def observed_context(emitter: Emitter) -> type[ObservedContext]:
    """Return the class of the contexts of a process."""
    return type("ObservedContext", (ObservedContext,), {"__slots__": (), "emitter": emitter})

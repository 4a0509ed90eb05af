"""The context of attempts whose emissions are sent, because the run has observers."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import Any, ClassVar

from gpu_pregel.host.agents.attempt_end import CLOSED, emission_refused
from gpu_pregel.host.agents.codec import encode
from gpu_pregel.host.agents.context import Context
from gpu_pregel.host.agents.emissions import TIMES, Emission, Emitter
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


_TIMED = 200
"""Number of quick attempts of a superstep in this process whose times are sent."""
_QUICK = 0.001
"""Seconds; the times of longer attempts are always sent, as that takes a hundredth of a millisecond."""


class TimedContext(ObservedContext):
    """A context that also sends when its attempt began and how long it took, unless very many of them are quick."""

    __slots__ = ("_began", "_clock")
    sent: ClassVar[list[int]]
    """The last superstep, and the number of its attempts that have sent their times."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._began, self._clock = time.time(), time.perf_counter()

    def close(self) -> None:
        """Refuse further messages, requests and emissions, and send the times."""
        self._send_times()
        super().close()

    def record(self) -> Record:
        """Send the times, close the context and return the record of the attempt."""
        self._send_times()
        return super().record()

    def _send_times(self) -> None:
        with suppress(Exception):  # the attempt does not depend on it, whatever its function has done to the context
            if self._outbox is CLOSED:
                return
            seconds, sent = time.perf_counter() - self._clock, self.sent
            if sent[0] != self._batch.step:
                sent[:] = self._batch.step, 0
            sent[1] += 1
            if sent[1] <= _TIMED or seconds >= _QUICK:
                times = encode((self._began, seconds))
                with self.emitter.lock:
                    self.emitter.send(Emission(self._task.id, self._task.attempt, TIMES, times))


def observed_context(emitter: Emitter, *, is_timed: bool = False) -> type[ObservedContext]:
    """Return the class of the contexts of a process; ``is_timed``: whether observers want the times of attempts."""
    if is_timed:
        return type("TimedContext", (TimedContext,), {"__slots__": (), "emitter": emitter, "sent": [-1, 0]})
    return type("ObservedContext", (ObservedContext,), {"__slots__": (), "emitter": emitter})

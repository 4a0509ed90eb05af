"""Sends the outcomes of a worker to the master, in frames of those that end within a millisecond."""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Callable
from contextlib import suppress

from gpu_pregel.host.agents.records import Outcome
from gpu_pregel.host.agents.workers import pipes
from gpu_pregel.host.superstep.flush_timer import FlushTimer

FLUSH_AFTER = 0.001
"""Seconds after which an outcome is sent, whatever the worker computes by then."""


class OutcomeSender:
    """Outcomes that have not been sent, and the timer that sends them if the worker does not.

    Attempts of an ordinary function end one after the other; their outcomes are numbered when they are sent. Those of
    an ``async`` function come by ``add``.

    Parameters
    ----------
    write : callable
        ``write(kind, content)`` sends a frame.
    marks : pipes.AttemptMarks

    Attributes
    ----------
    outcomes : list of Outcome
    oldest : float
        When the first of them was added, on the monotonic clock.
    free : list of int
        Slots of the marks without an attempt or an unsent outcome.
    """

    def __init__(self, write: Callable[[int, bytes], None], marks: pipes.AttemptMarks) -> None:
        self.outcomes: list[Outcome] = []
        self.oldest = 0.0
        self.free = list(range(marks.slots))
        self.serial = 0
        """Serial number of the latest task: answered, for an ordinary function, or started, for an ``async`` one."""
        self._serials: list[int] = []
        self._slots: list[int] = []
        self._write, self._marks = write, marks
        self._lock = allocate_lock()
        self._is_timed = False
        self._timer = FlushTimer(self._flush_late)

    def before_next(self, now: float) -> None:
        """Send outcomes that are old; otherwise the timer does if the next attempt takes long."""
        if now - self.oldest >= FLUSH_AFTER:
            self.flush()
        elif not self._is_timed:
            self._set_timer()

    def add(self, serial: int, outcome: Outcome, slot: int) -> None:
        """Add the outcome of an attempt whose mark is cleared once it has been sent."""
        self._serials.append(serial)
        self._slots.append(slot)
        self.outcomes.append(outcome)
        if len(self.outcomes) == 1:  # otherwise the timer is set, or a flush that has begun sets it again
            self._set_timer()

    def flush(self) -> None:
        """Send all outcomes."""
        with self._lock:
            outcomes, serials = self.outcomes, self._serials
            if count := len(outcomes):
                if serials:
                    content = pipes.pack_outcomes(serials[:count], outcomes[:count])
                else:
                    content = pipes.pack_outcomes(range(self.serial + 1, self.serial + 1 + count), outcomes[:count])
                    self.serial += count
                self._write(pipes.OUTCOMES, content)
                del outcomes[:count]
                for slot in self._slots[:count]:
                    self._marks.serials[slot] = 0
                    self.free.append(slot)
                del serials[:count], self._slots[:count]
            self._is_timed = False
            if outcomes:
                self._set_timer()

    def _set_timer(self) -> None:
        self._is_timed = True
        self._timer.set(FLUSH_AFTER)

    def _flush_late(self) -> None:
        with suppress(OSError, MemoryError):  # the worker meets them when it sends the rest
            self.flush()

"""Sends the outcomes of a worker to the master, in frames of those that end within a millisecond."""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Callable
from contextlib import suppress
from time import monotonic

from gpu_pregel.host.agents.records import Outcome
from gpu_pregel.host.agents.workers import pipes
from gpu_pregel.host.agents.workers.attempt_marks import AttemptMarks
from gpu_pregel.host.superstep.flush_timer import FlushTimer

_LATEST = 0.00125
"""Seconds after which the timer sends an outcome, whatever the worker computes by then."""
_FLUSH_AFTER = 0.0009
"""Seconds after which the worker sends it between two attempts, before the timer does."""
_POSTPONE_BEFORE = 0.0005
"""Seconds before its call in which the timer is set again for a later outcome. Short supersteps so set it in every
second or third one only, which takes microseconds, and it hardly ever calls, which takes ten times as long."""


class OutcomeSender:
    """Outcomes that have not been sent, and the timer that sends them if the worker does not.

    Attempts of an ordinary function end one after the other; their outcomes are numbered when they are sent. Those of
    an ``async`` function come by ``add``.

    Parameters
    ----------
    write : callable
        ``write(kind, content)`` sends a frame.
    marks : AttemptMarks

    Attributes
    ----------
    outcomes : list of Outcome
    oldest : float
        When the first of them was added, on the monotonic clock.
    due : float
        Until then the timer is set, and nothing needs to be done before the next attempt.
    free : list of int
        Slots of the marks without an attempt or an unsent outcome.
    """

    def __init__(self, write: Callable[[int, bytes], None], marks: AttemptMarks) -> None:
        self.outcomes: list[Outcome] = []
        self.oldest = 0.0
        self.free = list(range(marks.slots))
        self.serial = 0
        """Serial number of the latest task: answered, for an ordinary function, or started, for an ``async`` one."""
        self._serials: list[int] = []
        self._slots: list[int] = []
        self._write, self._marks = write, marks
        self._lock = allocate_lock()
        self.due = 0.0
        self._call_at = 0.0
        """When the timer calls, or has called."""
        self._timer = FlushTimer(self._flush_late)

    def before_next(self, now: float) -> None:
        """Send outcomes that are old, or let the timer do so if the next attempt takes long; see ``due``."""
        if now - self.oldest >= _FLUSH_AFTER:
            self.flush()
        elif self._call_at < self.oldest + _LATEST:
            self._set_timer(now, self.oldest)
        else:
            self.due = self.oldest + _FLUSH_AFTER

    def add(self, serial: int, outcome: Outcome, slot: int) -> None:
        """Add the outcome of an attempt whose mark is cleared once it has been sent."""
        self._serials.append(serial)
        self._slots.append(slot)
        self.outcomes.append(outcome)
        if len(self.outcomes) == 1:  # otherwise the timer is set, or a flush that has begun sets it again
            now = monotonic()
            if now >= self.due:
                self._set_timer(now, now)

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
            if outcomes:
                now = monotonic()
                self._set_timer(now, now)

    def _set_timer(self, now: float, oldest: float) -> None:
        """Let the timer send an outcome when it is a millisecond old."""
        self._call_at = oldest + _LATEST
        self.due = self._call_at - _POSTPONE_BEFORE
        self._timer.set(self._call_at - now)

    def _flush_late(self) -> None:
        with suppress(OSError, MemoryError):  # the worker meets them when it sends the rest
            self.flush()

"""Recalls: a worker returns tasks that it has not begun, for idle workers to compute."""

from __future__ import annotations

import os
import struct
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable, Sequence
from contextlib import suppress

from gpu_pregel.host.agents.workers import pipes
from gpu_pregel.host.agents.workers.attempt_marks import AttemptMarks

message = struct.Struct("<qq")
"""A recall: the superstep, and the maximum number of tasks to return."""


class Recalls:
    """Answers recalls on a thread of its own, as the code of a vertex may occupy the others.

    Parameters
    ----------
    descriptor : int
        Of the pipe from which recalls are read.
    write : callable
        ``write(kind, content)`` sends a frame.
    marks : AttemptMarks

    Attributes
    ----------
    limit : int
        Index of the first task of the batch that may have been returned; ``is_returned`` says whether it was.
    """

    def __init__(self, descriptor: int, write: Callable[[int, bytes], None], marks: AttemptMarks) -> None:
        self.limit = 0
        self._descriptor, self._write, self._marks = descriptor, write, marks
        self._step: int | None = None
        self._serial = 0
        self._take: Callable[[int], Sequence[int]] = self._take_last
        self._lock = allocate_lock()
        start_new_thread(self._serve, ())

    def begin(self, step: int, take: Callable[[int], Sequence[int]]) -> None:
        """Accept recalls in a superstep; ``take(count)`` removes waiting tasks and returns their numbers."""
        with self._lock:
            self._step, self._take = step, take

    def begin_in_order(self, step: int, serial: int, count: int) -> None:
        """Accept recalls of a batch that is computed in order and whose first task has the number ``serial + 1``."""
        with self._lock:
            self._step, self._take, self._serial, self.limit = step, self._take_last, serial, count

    def is_returned(self, index: int) -> bool:
        """Whether a task of the batch was returned; its mark must be set."""
        with self._lock:
            return index >= self.limit

    def end(self) -> None:
        """Accept no more recalls."""
        with self._lock:
            self._step = None

    def _serve(self) -> None:
        while data := os.read(self._descriptor, message.size):
            step, count = message.unpack(data)
            with self._lock:
                serials = self._take(count) if step == self._step else ()
            with suppress(OSError):  # the master is gone, which ends this process
                self._write(pipes.RETURNED, pipes.pack(list(serials)))

    def _take_last(self, count: int) -> range:
        """Take up to ``count`` tasks from the end of the batch.

        This lowers ``limit`` and then looks at the mark of the latest attempt; the other thread sets the mark and then
        looks at ``limit``. So at least one of them sees what the other has done.
        """
        end = self.limit
        self.limit = first = max(0, end - count)
        begun = self._marks.serials[0] - self._serial
        self.limit = min(end, max(first, begun))
        return range(self._serial + self.limit + 1, self._serial + end + 1)

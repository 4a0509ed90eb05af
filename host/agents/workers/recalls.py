"""Recalls: a worker returns tasks that it has not begun, for idle workers to compute."""

from __future__ import annotations

import os
import struct
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable, Sequence
from contextlib import suppress

from gpu_pregel.host.agents.workers import pipes

message = struct.Struct("<qq")
"""A recall: the superstep, and the maximum number of tasks to return."""


class Recalls:
    """Answers recalls on a thread of its own, as an ordinary function may compute at the time.

    The last tasks of the running batch are returned. The thread lowers ``limit`` and then looks at the mark of the
    latest attempt; who computes sets the mark and then looks at ``limit``. Each of them therefore sees what the other
    has done, or the other sees it.

    Parameters
    ----------
    descriptor : int
        Of the pipe from which recalls are read.
    write : callable
        ``write(kind, content)`` sends a frame.
    marks : pipes.AttemptMarks

    Attributes
    ----------
    limit : int
        Index of the first task of the batch that may have been returned; ``is_returned`` says whether it was.
    """

    def __init__(self, descriptor: int, write: Callable[[int, bytes], None], marks: pipes.AttemptMarks) -> None:
        self.limit = 0
        self._descriptor, self._write, self._marks = descriptor, write, marks
        self._step: int | None = None
        self._serial = 0
        self._forward: Callable[[int, int], object] | None = None
        self._lock = allocate_lock()
        start_new_thread(self._serve, ())

    def begin(self, step: int, serial: int, count: int) -> None:
        """Accept recalls of a batch whose first task has the number ``serial + 1``."""
        with self._lock:
            self._step, self._serial, self.limit = step, serial, count

    def is_returned(self, index: int) -> bool:
        """Whether a task of the batch was returned; its mark must be set."""
        with self._lock:
            return index >= self.limit

    def end(self) -> None:
        """Return no more tasks of the batch."""
        with self._lock:
            self._step = None

    def forward(self, call: Callable[[int, int], object] | None) -> None:
        """Call ``call(step, count)`` for each recall, instead of answering it; or no longer."""
        with self._lock:
            self._forward = call

    def answer(self, serials: Sequence[int]) -> None:
        """Send the numbers of returned tasks."""
        with suppress(OSError):  # the master is gone, which ends this process
            self._write(pipes.RETURNED, pipes.pack(list(serials)))

    def _serve(self) -> None:
        while data := os.read(self._descriptor, message.size):
            step, count = message.unpack(data)
            with self._lock:
                if self._forward is not None:
                    self._forward(step, count)
                    continue
                serials = self._take(count) if step == self._step else range(0)
            self.answer(serials)

    def _take(self, count: int) -> range:
        """Take up to ``count`` tasks from the end of the batch."""
        end = self.limit
        self.limit = first = max(0, end - count)
        begun = self._marks.serials[0] - self._serial
        self.limit = min(end, max(first, begun))
        return range(self._serial + self.limit + 1, self._serial + end + 1)

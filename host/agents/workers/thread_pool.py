"""Threads of this process on which attempts are computed, of all runs; idle ones are kept for a moment."""

from __future__ import annotations

import os
import threading
from _thread import allocate_lock
from collections.abc import Callable

_IDLE_SECONDS = 5.0
"""How long an idle thread is kept."""
_idle: list[_PooledThread] = []
os.register_at_fork(after_in_child=_idle.clear)  # a fork has none of them


def call_on_thread(job: Callable[[], object]) -> None:
    """Call a function, which must not raise, on an idle thread or a new one; the process ends without waiting for it.

    Raises RuntimeError if the system allows no more threads.
    """
    try:
        thread = _idle.pop()
    except IndexError:
        _PooledThread(job).start()
    else:
        thread.call(job)


class _PooledThread(threading.Thread):
    """A thread that serves one job after another."""

    def __init__(self, job: Callable[[], object]) -> None:
        super().__init__(name="gpu_pregel agents", daemon=True)
        self._job: Callable[[], object] | None = job
        self._called = allocate_lock()
        self._called.acquire()

    def call(self, job: Callable[[], object]) -> None:
        """Call a function on this thread, which has been taken from the idle ones."""
        self._job = job
        self._called.release()

    def run(self) -> None:
        """Serve jobs until none has come for a while."""
        while (job := self._job) is not None:
            self._job = None
            job()
            del job  # so that an idle thread keeps no run alive
            _idle.append(self)
            if not self._called.acquire(timeout=_IDLE_SECONDS):
                try:
                    _idle.remove(self)
                except ValueError:  # it has just been taken
                    self._called.acquire()

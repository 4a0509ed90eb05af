"""Time limits of tests, so that a hung kernel or an endless loop does not hang the suite."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

_stderr = os.dup(2)
"""The error output of this process; pytest replaces file descriptor 2 while tests run."""


@contextmanager
def time_limit(name: str, seconds: float, grace: float = 30) -> Iterator[None]:
    """Fail a test after ``seconds``; end the process after ``grace`` more if it does not return to Python.

    A kernel that hangs on a GPU keeps its host in a call of the driver, where no signal handler runs.
    """

    def expire(*_: Any) -> None:
        pytest.fail(f"{name} took longer than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, expire)
    faulthandler.dump_traceback_later(seconds + grace, exit=True, file=_stderr)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGALRM, before)


def hang() -> None:
    """Wait in C for a lock that this thread has."""
    lock, library = ctypes.create_string_buffer(64), ctypes.CDLL(None)
    while True:
        library.pthread_mutex_lock(lock)


if __name__ == "__main__":
    with time_limit("a hung call", 0.05, 0.05):
        hang()

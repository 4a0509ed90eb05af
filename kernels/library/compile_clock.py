"""How long a thread has spent compiling kernels or loading them from disk, which run times exclude."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter


class _Clock(threading.local):
    seconds = 0.0


_clock = _Clock()


def compile_seconds() -> float:
    """Return the seconds that this thread has spent compiling and loading since it started."""
    return _clock.seconds


def add_compile_seconds(seconds: float) -> None:
    """Add the time of threads that have worked for this one."""
    _clock.seconds += seconds


class CompileTimer:
    """Times one compilation; what is compiled within it is not counted twice."""

    def __init__(self) -> None:
        self._before, self._begin = _clock.seconds, perf_counter()

    def stop(self) -> None:
        """Add the time since the timer was created, or until the last call if it is called again."""
        _clock.seconds = self._before + perf_counter() - self._begin


@contextmanager
def compiling() -> Iterator[None]:
    """Count the time of a block as compiling."""
    timer = CompileTimer()
    try:
        yield
    finally:
        timer.stop()

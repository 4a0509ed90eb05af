"""A timer that calls a function on a thread of its own, however long other threads compute."""

from __future__ import annotations

import _thread
import ctypes
import os
from collections.abc import Callable

_CLOCK_MONOTONIC = 1
_Times = ctypes.c_long * 4
"""Interval and delay, each in seconds and nanoseconds."""


class FlushTimer:
    """Calls a function some time after each :meth:`set`; a later ``set`` replaces an earlier one.

    Setting it is one system call, which neither wakes nor starts a thread. The thread waits in the kernel without the
    global interpreter lock, for which it then competes with code that computes in Python.

    Parameters
    ----------
    call : callable
        Must not raise.
    """

    def __init__(self, call: Callable[[], object]) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._fd: int = libc.timerfd_create(_CLOCK_MONOTONIC, os.O_CLOEXEC)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        self._settime = libc.timerfd_settime
        self._call = call
        self._is_closed = False
        self._process = os.getpid()
        self._ended = _thread.allocate_lock()
        self._ended.acquire()
        self._thread = _thread.start_new_thread(self._serve, ())

    def set(self, seconds: float) -> bool:
        """Call the function once, after a number of seconds; return whether the descriptor is still open."""
        whole, nanoseconds = divmod(max(1, int(seconds * 1e9)), 1_000_000_000)
        return bool(self._settime(self._fd, 0, _Times(0, 0, whole, nanoseconds), None) == 0)

    def close(self, *, wait: bool = True) -> None:
        """End the thread, after a call that is running, and wait for that; repeating this changes nothing."""
        if self._is_closed or os.getpid() != self._process:
            return  # a fork has no thread
        self._is_closed = True
        if (
            self.set(0.0) and wait and _thread.get_ident() != self._thread
        ):  # the garbage collector may run on any thread
            self._ended.acquire()

    def _serve(self) -> None:
        try:
            os.read(self._fd, 8)
            while not self._is_closed:
                self._call()
                os.read(self._fd, 8)
            os.close(self._fd)
        finally:
            self._ended.release()

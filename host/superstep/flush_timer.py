"""A timer that calls a function on a thread of its own, however long other threads compute."""

from __future__ import annotations

import _thread
import ctypes
import os
import sys
from collections.abc import Callable
from functools import cache

_SWITCH_INTERVAL = 0.0005
"""Seconds for which the thread waits for the global interpreter lock, several times in a transaction."""
_CLOCK_MONOTONIC = 1
_Times = ctypes.c_long * 4
"""Interval and delay, each in seconds and nanoseconds."""


@cache
def _libc() -> ctypes.PyDLL:
    """Return the C library; its calls keep the global interpreter lock, which takes long to come back."""
    return ctypes.PyDLL(None, use_errno=True)


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
        libc = _libc()
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
        """Call the function once, after a number of seconds; return False if code of the user has closed the timer."""
        whole, nanoseconds = divmod(max(1, int(seconds * 1e9)), 1_000_000_000)
        return bool(self._settime(self._fd, 0, _Times(0, 0, whole, nanoseconds), None) == 0)

    def close(self, *, wait: bool = True) -> None:
        """End the thread, after a call that is running, and wait for that; repeating this changes nothing."""
        if self._is_closed or os.getpid() != self._process:
            return  # a fork has no thread
        self._is_closed = True
        if not self.set(0.0):
            return
        if wait and _thread.get_ident() != self._thread:  # the garbage collector may run on any thread
            self._ended.acquire()

    def _serve(self) -> None:
        try:
            os.read(self._fd, 8)
            while not self._is_closed:
                with frequent_switches:
                    self._call()
                os.read(self._fd, 8)
            os.close(self._fd)
        finally:
            self._ended.release()


class FrequentSwitches:
    """A context in which threads that compute in Python let others run soon; several threads may use it."""

    def __init__(self) -> None:
        self._lock = _thread.allocate_lock()
        self._depth = 0
        self._before = 0.0

    def __enter__(self) -> None:
        with self._lock:
            if self._depth == 0:
                self._before = sys.getswitchinterval()
                if self._before > _SWITCH_INTERVAL:
                    sys.setswitchinterval(_SWITCH_INTERVAL)
            self._depth += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0 and self._before > _SWITCH_INTERVAL:
                sys.setswitchinterval(self._before + 5e-7)  # it is truncated to microseconds


frequent_switches = FrequentSwitches()

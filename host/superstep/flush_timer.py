"""A timer that calls a function on a thread of its own, however long other threads compute."""

from __future__ import annotations

import _thread
import ctypes
import os
from collections.abc import Callable

_CLOCK_MONOTONIC = 1


class FlushTimer:
    """Calls a function a fixed time after each :meth:`set`; a later ``set`` replaces an earlier one.

    Setting it is one system call, which neither wakes nor starts a thread. The thread waits in the kernel without the
    global interpreter lock, for which it then competes with code that computes in Python.

    Parameters
    ----------
    seconds : float
    call : callable
        Must not raise.
    """

    def __init__(self, seconds: float, call: Callable[[], object]) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._fd: int = libc.timerfd_create(_CLOCK_MONOTONIC, os.O_CLOEXEC)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        self._settime = libc.timerfd_settime
        whole = int(seconds)
        self._delay = (ctypes.c_long * 4)(0, 0, whole, int((seconds - whole) * 1e9))
        self._call = call
        self._is_closed = False
        self._ended = _thread.allocate_lock()
        self._ended.acquire()
        _thread.start_new_thread(self._serve, ())

    def set(self) -> None:
        """Call the function once the time has passed, counted from now."""
        self._settime(self._fd, 0, self._delay, None)

    def close(self) -> None:
        """End the thread, after a call that is running; it must be called once, not by the function itself."""
        self._is_closed = True
        self._settime(self._fd, 0, (ctypes.c_long * 4)(0, 0, 0, 1), None)
        with self._ended:
            os.close(self._fd)

    def _serve(self) -> None:
        while True:
            os.read(self._fd, 8)
            if self._is_closed:
                break
            self._call()
        self._ended.release()

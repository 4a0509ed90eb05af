"""Timers that call functions on threads of their own, however long other threads compute."""

from __future__ import annotations

import ctypes
import os
import sys
from _thread import allocate_lock, get_ident, start_new_thread
from collections.abc import Callable
from functools import cache

_SWITCH_INTERVAL = 0.0005
"""Seconds for which the thread waits for the global interpreter lock, several times in a transaction."""
_IDLE_SECONDS = 5.0
"""How long a thread without a timer is kept."""
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
    global interpreter lock, for which it then competes with code that computes in Python. It serves one timer at a
    time, so that a call that takes long delays no other timer, and later timers once this one is closed.

    Parameters
    ----------
    call : callable
        Must not raise. Very rarely it is called when it was not set.
    """

    def __init__(self, call: Callable[[], object]) -> None:
        self._process = os.getpid()
        self._is_closed = False
        self._thread = _take_thread()
        self._thread.call = call

    def set(self, seconds: float) -> bool:
        """Call the function once, after a number of seconds; return False if code of the user has closed the timer."""
        return not self._is_closed and self._thread.set(seconds)

    def close(self, *, wait: bool = True) -> None:
        """Make no further call, and wait for one that is running; repeating this changes nothing."""
        if self._is_closed or os.getpid() != self._process:
            return  # a fork has no thread
        self._is_closed = True
        if wait and get_ident() != self._thread.ident:  # the garbage collector may run on any thread
            self._thread.rest()
        else:
            self._thread.end()


class _TimerThread:
    """A thread that waits for a timer of the kernel, and serves one ``FlushTimer`` after another."""

    def __init__(self) -> None:
        libc = _libc()
        self._fd: int = libc.timerfd_create(_CLOCK_MONOTONIC, os.O_CLOEXEC)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        self._settime = libc.timerfd_settime
        self.call: Callable[[], object] | None = None
        """What the timer that it serves calls."""
        self._is_ending = False
        self._calling = allocate_lock()
        """Held during a call."""
        self.ident = start_new_thread(self._serve, ())

    def unset(self) -> bool:
        """Make no call until the timer is set; return False if code of the user has closed the descriptor."""
        return self._set(0)

    def set(self, seconds: float) -> bool:
        """Call the function after a number of seconds; return False if code of the user has closed the descriptor."""
        return self._set(max(1, int(seconds * 1e9)))

    def _set(self, nanoseconds: int) -> bool:
        seconds, rest = divmod(nanoseconds, 1_000_000_000)
        return bool(self._settime(self._fd, 0, _Times(0, 0, seconds, rest), None) == 0)

    def rest(self) -> None:
        """Wait until the function is not running, and remain for another timer."""
        try:
            with self._calling:
                self.call = None
        except BaseException:  # KeyboardInterrupt
            self.end()
            raise
        if self.set(_IDLE_SECONDS):
            _idle.append(self)

    def end(self) -> None:
        """End the thread, after a call that is running, and do not wait for that."""
        self._is_ending = True
        self._set(1)

    def _serve(self) -> None:
        os.read(self._fd, 8)
        while not self._is_ending and (self._make_call() or not self._retire()):
            os.read(self._fd, 8)
        os.close(self._fd)

    def _make_call(self) -> bool:
        """Call the function; return False if there is none."""
        with self._calling:
            if self.call is None:
                return False
            with frequent_switches:
                self.call()
            return True

    def _retire(self) -> bool:
        """Whether no timer has taken this thread, which has been idle for a while; from now on none can."""
        try:
            _idle.remove(self)
        except ValueError:
            return False
        return True


_idle: list[_TimerThread] = []
os.register_at_fork(after_in_child=_idle.clear)  # a fork has none of them


def _take_thread() -> _TimerThread:
    """Return an idle thread, or a new one."""
    while True:
        try:
            thread = _idle.pop()
        except IndexError:
            return _TimerThread()
        if thread.unset():
            return thread


class FrequentSwitches:
    """A context in which threads that compute in Python let others run soon; several threads may use it."""

    def __init__(self) -> None:
        self._lock = allocate_lock()
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

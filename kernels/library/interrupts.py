"""Defers Ctrl-C while code is compiled, which must not stop halfway."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_pending: list[tuple[int, Any]] | None = None
"""The signals that have arrived in a block of :func:`deferred_interrupts`; None outside of one."""


def _remember(number: int, frame: Any) -> None:
    assert _pending is not None
    _pending.append((number, frame))


@contextmanager
def deferred_interrupts() -> Iterator[None]:
    """Handle SIGINT at the end of the block instead of within it.

    An exception that a signal handler raises within a callback of LLVM is lost, and one within Numba leaves functions
    without code. Only the main thread handles signals; in others this does nothing.
    """
    global _pending
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or _pending is not None or not callable(handler):
        yield
        return
    arrived: list[tuple[int, Any]] = []
    _pending = arrived
    signal.signal(signal.SIGINT, _remember)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        _pending = None
        if arrived:
            handler(*arrived[0])

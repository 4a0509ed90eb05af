"""Signals for work that can stop cleanly: the first requests a stop, the second interrupts."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_USUAL: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}


@contextmanager
def stop_on_interrupt(stop: Callable[[], None], *, signals: tuple[int, ...] = (signal.SIGINT,)) -> Iterator[None]:
    """Call ``stop`` on the first of the signals; later ones have their usual effect, for SIGINT KeyboardInterrupt.

    This has no effect outside the main thread, or on signals for which the user has installed a handler.
    """
    is_main = threading.current_thread() is threading.main_thread()
    handled = [number for number in signals if is_main and signal.getsignal(number) == _USUAL[number]]

    def first(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        restore()
        stop()

    def restore() -> None:
        for number in handled:
            signal.signal(number, _USUAL[number])

    for number in handled:
        signal.signal(number, first)
    try:
        yield
    finally:
        restore()

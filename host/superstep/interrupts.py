"""Signals for work that can stop cleanly: the first requests a stop, the second interrupts."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # the functions of signal take ten times as long, for enumerations
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

_USUAL: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: int(signal.SIG_DFL)}


class stop_on_interrupt:  # noqa: N801 - used like a function
    """A context that calls ``stop`` on the first of the signals; later ones have their usual effect.

    For SIGINT that is KeyboardInterrupt. This has no effect outside the main thread, or on signals for which the user
    has installed a handler.
    """

    __slots__ = ("_handled", "_stop")

    def __init__(self, stop: Callable[[], None], *, signals: tuple[int, ...] = (signal.SIGINT,)) -> None:
        self._stop = stop
        is_main = threading.current_thread() is threading.main_thread()
        self._handled = [number for number in signals if is_main and _signal.getsignal(number) == _USUAL[number]]

    def __enter__(self) -> None:
        for number in self._handled:
            _signal.signal(number, self._first)

    def __exit__(self, *_: object) -> None:
        for number in self._handled:
            _signal.signal(number, _USUAL[number])

    def _first(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self.__exit__()
        self._stop()

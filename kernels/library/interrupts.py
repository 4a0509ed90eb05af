"""Defers Ctrl-C while something is done that must not stop halfway, as the compilation of a function."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # its functions take a tenth of the time of those of ``signal``
import threading
from _thread import get_ident
from typing import Any

_depth = 0
"""The number of blocks of :class:`deferred_interrupts` in which the main thread is."""
_handler: Any = None
"""What handles SIGINT outside of these blocks."""
_arrived: list[tuple[int, Any]] = []
"""The signals that have arrived in them."""


def _remember(number: int, frame: Any) -> None:
    _arrived.append((number, frame))


class deferred_interrupts:  # noqa: N801
    """A block within which SIGINT is not handled; it is at the end of the outermost one.

    An exception that a signal handler raises within a callback of LLVM is lost, and one within Numba leaves functions
    without code. Only the main thread handles signals; in others this does nothing.
    """

    def __enter__(self) -> None:
        global _depth, _handler
        if get_ident() != threading.main_thread().ident:
            return
        if _depth == 0 and callable(handler := _signal.getsignal(_signal.SIGINT)):
            _signal.signal(_signal.SIGINT, _remember)
            # From here on no signal interrupts.
            _handler = handler
        _depth += 1

    def __exit__(self, *exception: object) -> None:
        global _depth, _handler
        if get_ident() != threading.main_thread().ident:
            return
        _depth -= 1
        if _depth == 0 and _handler is not None:
            handler, arrived = _handler, _arrived[:]
            _handler = None
            _arrived.clear()
            _signal.signal(_signal.SIGINT, handler)
            if arrived:
                handler(*arrived[0])

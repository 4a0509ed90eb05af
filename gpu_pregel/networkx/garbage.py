"""Keeps Python's garbage collector from running while results of many lists are made."""

from __future__ import annotations

import gc
from types import TracebackType


class CollectorPaused:
    """Make many objects without collections in between: each of these visits all dicts of the NetworkX graph."""

    __slots__ = ("_was_enabled",)

    def __enter__(self) -> None:
        self._was_enabled = gc.isenabled()
        gc.disable()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._was_enabled:
            gc.enable()

"""Thresholds of Python's garbage collector for supersteps that create many objects."""

from __future__ import annotations

import gc
import threading

_OWN, _USERS = (2_000_000, 20, 100), (20_000, 20, 100)
"""Thresholds for this package alone, whose objects form no cycles, and for threads that run users' code."""
FEW = 1000
"""Runs with fewer vertices leave the garbage collector alone."""
_lock = threading.Lock()
_depth = 0
_before = gc.get_threshold()


def collect_rarely(beside_users_code: bool = True) -> None:
    """Raise the thresholds from 700 new objects to the number that a superstep of many vertices creates."""
    thresholds = _USERS if beside_users_code else _OWN
    if gc.get_threshold()[0] and gc.get_threshold() < thresholds:  # 0: the user has disabled the collector
        gc.set_threshold(*thresholds)


class relaxed_gc:  # noqa: N801 - used like a function
    """A context with raised thresholds; several threads may use it at the same time."""

    __slots__ = ("_beside_users_code",)

    def __init__(self, beside_users_code: bool = True) -> None:
        self._beside_users_code = beside_users_code

    def __enter__(self) -> None:
        global _depth, _before
        with _lock:
            if _depth == 0:
                _before = gc.get_threshold()
            collect_rarely(self._beside_users_code)
            _depth += 1

    def __exit__(self, *_: object) -> None:
        global _depth
        with _lock:
            _depth -= 1
            if _depth == 0:
                gc.set_threshold(*_before)

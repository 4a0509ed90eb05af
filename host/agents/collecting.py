"""Python's collector of cyclic garbage, told that many objects at once are no sign of garbage."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_PATIENT = (50_000, 20, 100)
_lock = threading.Lock()
_users = 0
_before = gc.get_threshold()


def collect_rarely() -> None:
    """Look for garbage after so many new objects as a superstep of many vertices makes, rather than after 700."""
    if gc.get_threshold()[0] and gc.get_threshold() < _PATIENT:  # 0: the user has turned it off
        gc.set_threshold(*_PATIENT)


@contextmanager
def patience() -> Iterator[None]:
    """Collect rarely for a while; several threads may want that at once."""
    global _users, _before
    with _lock:
        if _users == 0:
            _before = gc.get_threshold()
            collect_rarely()
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                gc.set_threshold(*_before)

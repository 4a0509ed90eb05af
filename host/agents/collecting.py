"""Python's collector of cyclic garbage, told that many objects at once are no sign of garbage."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_OWN, _USERS = (500_000, 20, 100), (20_000, 20, 100)
"""Thresholds where only this package's objects come and go, which leave no cyclic garbage; and beside users' code."""
_lock = threading.Lock()
_waiting = 0
_before = gc.get_threshold()


def collect_rarely(beside_users_code: bool = True) -> None:
    """Look for garbage after so many new objects as a superstep of many vertices makes, rather than after 700."""
    thresholds = _USERS if beside_users_code else _OWN
    if gc.get_threshold()[0] and gc.get_threshold() < thresholds:  # 0: the user has turned it off
        gc.set_threshold(*thresholds)


@contextmanager
def patience(beside_users_code: bool = True) -> Iterator[None]:
    """Collect rarely for a while; several threads may want that at once."""
    global _waiting, _before
    with _lock:
        if _waiting == 0:
            _before = gc.get_threshold()
        collect_rarely(beside_users_code)
        _waiting += 1
    try:
        yield
    finally:
        with _lock:
            _waiting -= 1
            if _waiting == 0:
                gc.set_threshold(*_before)

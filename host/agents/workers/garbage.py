"""Python's collector of cyclic garbage, told that many objects at once are no sign of garbage."""

from __future__ import annotations

import gc
import threading

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


class patience:  # noqa: N801 - it is used like a function
    """A context that collects rarely; several threads may want that at once."""

    __slots__ = ("_beside_users_code",)

    def __init__(self, beside_users_code: bool = True) -> None:
        self._beside_users_code = beside_users_code

    def __enter__(self) -> None:
        global _waiting, _before
        with _lock:
            if _waiting == 0:
                _before = gc.get_threshold()
            collect_rarely(self._beside_users_code)
            _waiting += 1

    def __exit__(self, *_: object) -> None:
        global _waiting
        with _lock:
            _waiting -= 1
            if _waiting == 0:
                gc.set_threshold(*_before)

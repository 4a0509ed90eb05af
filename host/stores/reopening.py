"""Durable stores in other processes of their program: pickled as their arguments, and opened again once a process."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpu_pregel.host.stores.store import Store

_opened: dict[Any, Store] = {}
_lock = threading.Lock()


def reopen(kind: type[Store], place: tuple[str, ...], options: dict[str, Any]) -> Store:
    """Return the store at a place, opened if this process has not opened it yet."""
    with _lock:
        key = kind, place, options.get("schema")
        store = _opened.get(key)
        if store is None:
            store = _opened[key] = kind(*place, create=False, **options)  # type: ignore[call-arg, arg-type]
        return store

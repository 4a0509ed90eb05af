"""A cache in memory of limited size, shared by threads."""

from __future__ import annotations

from threading import Lock
from typing import Any


class BoundedCache:
    """A mapping that forgets its oldest items.

    Threads may use it at the same time: what one adds, another may evict, so that an item is used as it was returned
    and not looked up again.

    Examples
    --------
    >>> cache = BoundedCache(2)
    >>> [cache.keep(key, str(key)) for key in range(3)], cache.get(0), cache.get(1)
    (['0', '1', '2'], None, '1')
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._items: dict[Any, Any] = {}
        self._lock = Lock()

    def get(self, key: Any) -> Any:
        """Return an item, or None."""
        return self._items.get(key)

    def keep(self, key: Any, item: Any) -> Any:
        """Add or replace an item, and return it; make room first if there are too many."""
        with self._lock:
            if key not in self._items and len(self._items) >= self._most:
                del self._items[next(iter(self._items))]
            self._items[key] = item
        return item

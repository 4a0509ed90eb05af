"""The cache of limited size: eviction, replacement and threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from gpu_pregel.host.traverse.bounded_cache import BoundedCache


def test_the_oldest_item_is_evicted() -> None:
    cache = BoundedCache(2)
    for key in (1, 2, 1, 3):
        assert cache.keep(key, -key) == -key
    assert [cache.get(key) for key in (1, 2, 3)] == [None, -2, -3]


def test_threads_evict_at_the_same_time() -> None:
    cache = BoundedCache(3)

    def fill(thread: int) -> int:
        return sum(cache.keep((thread, k), 1) for k in range(5_000))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(fill, range(4))) == [5_000] * 4
    assert sum(cache.get((thread, k)) is not None for thread in range(4) for k in range(5_000)) == 3

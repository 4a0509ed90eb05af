"""The NUMA nodes of this machine: which processors are near the same memory."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

_FOLDER = Path("/sys/devices/system/node")


@cache
def node_sizes(folder: Path = _FOLDER) -> tuple[int, ...]:
    """Return how many processors of each NUMA node this process may use; one number if the system does not say."""
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
    try:
        paths = sorted(folder.glob("node[0-9]*/cpulist"), key=lambda path: int(path.parent.name[4:]))
        sizes = [len(usable & _processors(path.read_text())) for path in paths]
    except (OSError, ValueError):
        sizes = []
    return tuple(size for size in sizes if size) or (len(usable),)


def threads_by_node(threads: int, sizes: tuple[int, ...]) -> list[int]:
    """Divide threads among NUMA nodes in proportion to their processors; nodes without a thread are left out."""
    total, ends, before = sum(sizes), [], 0
    for size in sizes:
        before += size
        ends.append((2 * threads * before + total) // (2 * total))
    counts = [end - begin for begin, end in zip([0, *ends], ends, strict=False)]
    return [count for count in counts if count]


def _processors(text: str) -> set[int]:
    """Return the processors of a list such as "0-3,8"."""
    found: set[int] = set()
    for part in text.strip().split(",") if text.strip() else ():
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found

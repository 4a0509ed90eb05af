"""The NUMA nodes of this machine: which processors are near the same memory."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import NamedTuple

_FOLDER = Path("/sys/devices/system/node")


@cache
def numa_nodes(folder: Path = _FOLDER) -> tuple[frozenset[int], ...]:
    """Return the processors of each NUMA node that this process may use; a single node if the system does not say."""
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
    try:
        paths = sorted(folder.glob("node[0-9]*/cpulist"), key=lambda path: int(path.parent.name[4:]))
        nodes = [frozenset(usable & _processors(path.read_text())) for path in paths]
    except (OSError, ValueError):
        nodes = []
    return tuple(node for node in nodes if node) or (frozenset(usable),)


class NodeThreads(NamedTuple):
    """Threads of a NUMA node: how many, and the processors to bind them to, None if there is but one node."""

    threads: int
    processors: frozenset[int] | None


def threads_by_node(threads: int, nodes: tuple[frozenset[int], ...]) -> list[NodeThreads]:
    """Divide threads among NUMA nodes in proportion to their processors; nodes without a thread are left out."""
    total, ends, before = sum(map(len, nodes)), [], 0
    for node in nodes:
        before += len(node)
        ends.append((2 * threads * before + total) // (2 * total))
    pairs = zip([0, *ends], ends, nodes, strict=False)
    found = [NodeThreads(end - begin, node) for begin, end, node in pairs if end > begin]
    return found if len(found) > 1 else [NodeThreads(threads, None)]


def _processors(text: str) -> set[int]:
    """Return the processors of a list such as "0-3,8"."""
    found: set[int] = set()
    for part in text.strip().split(",") if text.strip() else ():
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found

"""The queue of vertices that need an attempt in a superstep."""

from __future__ import annotations

import heapq
from collections import deque

from gpu_pregel.host.agents.records import Id


class ReadyQueue:
    """Queued vertices and the number of running attempts, by partition.

    A suspect runs alone in its partition: it starts when no attempt is running, and no other starts until it has ended.
    """

    def __init__(self, partitions: int) -> None:
        self.running = [0] * partitions
        self.due: list[list[Id]] = [[] for _ in range(partitions)]
        """Vertices that can start now."""
        self._none: list[int] = [0] * partitions
        self._nothing: list[list[Id]] = [[]] * partitions
        self._suspects: dict[int, deque[Id]] = {}
        self._alone = [False] * partitions
        self._delayed: list[tuple[float, int, Id, int, bool]] = []
        self._count = 0

    def add(self, vertex: Id, partition: int, ready: float = 0.0, suspect: bool = False) -> None:
        """Queue a vertex, which starts no earlier than ``ready`` on the monotonic clock."""
        if ready:
            self._count += 1
            heapq.heappush(self._delayed, (ready, self._count, vertex, partition, suspect))
        elif suspect:
            self._suspects.setdefault(partition, deque()).append(vertex)
        else:
            self.due[partition].append(vertex)

    def clear(self) -> None:
        """Remove all queued vertices."""
        self.due = [[] for _ in self.due]
        self._suspects.clear()
        self._delayed.clear()

    def vertices(self) -> set[Id]:
        """Return all queued vertices."""
        queued = {vertex for part in (*self.due, *self._suspects.values()) for vertex in part}
        return queued.union(vertex for _, _, vertex, *_ in self._delayed)

    def take(self, now: float) -> list[tuple[int, list[Id]]]:
        """Remove the vertices that can start, by partition, and count them as running."""
        while self._delayed and self._delayed[0][0] <= now:
            _, _, vertex, partition, suspect = heapq.heappop(self._delayed)
            self.add(vertex, partition, 0.0, suspect)
        taken = []
        for partition, due in enumerate(self.due):
            if self._alone[partition]:
                continue
            if due:
                self.due[partition] = []
                self.running[partition] += len(due)
                taken.append((partition, due))
            elif not self.running[partition] and (suspects := self._suspects.get(partition)):
                self._alone[partition] = True
                self.running[partition] = 1
                taken.append((partition, [suspects.popleft()]))
        return taken

    def idle(self) -> list[int]:
        """Return the partitions that have nothing to compute."""
        waiting = enumerate(zip(self.running, self.due, strict=True))
        return [partition for partition, parts in waiting if not any(parts) and not self._suspects.get(partition)]

    def finish(self, partition: int, count: int) -> None:
        """Count ``count`` attempts as ended."""
        self.running[partition] -= count
        if not self.running[partition]:
            self._alone[partition] = False

    def reset(self, partition: int) -> None:
        """Count no attempts as running, because the worker of a partition has died."""
        self.running[partition] = 0
        self._alone[partition] = False

    def is_empty(self) -> bool:
        """Whether no vertex is queued and no attempt is running."""
        if self.due != self._nothing or self.running != self._none:
            return False
        return not (self._delayed or any(self._suspects.values()))

    def next_time(self) -> float | None:
        """Return when the next delayed vertex can start."""
        return self._delayed[0][0] if self._delayed else None

"""Vertices that wait for an attempt in a superstep: who may begin now, who must wait, who runs alone."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator

from gpu_pregel.host.agents.records import Id


class Waiting:
    """Vertices that wait, by partition, and how many attempts are under way in each.

    A suspect runs alone: it begins when nothing else is under way in its partition, and nothing begins beside it.
    """

    def __init__(self, partitions: int) -> None:
        self.under_way = [0] * partitions
        self.due: list[list[Id]] = [[] for _ in range(partitions)]
        """Those that may begin now, beside others."""
        self._suspects: list[deque[Id]] = [deque() for _ in range(partitions)]
        self._alone = [False] * partitions
        self._later: list[tuple[float, int, Id, int, bool]] = []
        self._count = 0

    def add(self, vertex: Id, partition: int, ready: float = 0.0, suspect: bool = False) -> None:
        """Let a vertex wait, at least until ``ready`` by the monotonic clock."""
        if ready:
            self._count += 1
            heapq.heappush(self._later, (ready, self._count, vertex, partition, suspect))
        elif suspect:
            self._suspects[partition].append(vertex)
        else:
            self.due[partition].append(vertex)

    def vertices(self) -> set[Id]:
        """All that wait."""
        waiting = {vertex for part in (*self.due, *self._suspects) for vertex in part}
        return waiting.union(vertex for _, _, vertex, *_ in self._later)

    def take(self, now: float) -> Iterator[tuple[int, list[Id]]]:
        """Those that may begin, by partition; they are under way from here on."""
        while self._later and self._later[0][0] <= now:
            _, _, vertex, partition, suspect = heapq.heappop(self._later)
            self.add(vertex, partition, 0.0, suspect)
        for partition, due in enumerate(self.due):
            if self._alone[partition]:
                continue
            if due:
                self.due[partition] = []
                self.under_way[partition] += len(due)
                yield partition, due
            elif self._suspects[partition] and not self.under_way[partition]:
                self._alone[partition] = True
                self.under_way[partition] = 1
                yield partition, [self._suspects[partition].popleft()]

    def ended(self, partition: int, count: int) -> None:
        """So many attempts have ended."""
        self.under_way[partition] -= count
        if not self.under_way[partition]:
            self._alone[partition] = False

    def died(self, partition: int) -> None:
        """Nothing is under way there."""
        self.under_way[partition] = 0
        self._alone[partition] = False

    def is_over(self) -> bool:
        """Whether nothing is under way, and nobody waits."""
        return not (any(self.under_way) or any(self.due) or any(self._suspects) or self._later)

    def next_time(self) -> float | None:
        """When the first of those begins that must wait for a time."""
        return self._later[0][0] if self._later else None

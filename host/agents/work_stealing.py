"""Work stealing: idle partitions compute vertices that wait in busy ones.

A vertex belongs to one partition, which has its state. For an attempt elsewhere its state travels with the task, and
the commit brings the new state to its partition.
"""

from __future__ import annotations

from collections.abc import Iterable
from time import monotonic

from gpu_pregel.host.agents.partition_options import PartitionOptions
from gpu_pregel.host.agents.ready_queue import ReadyQueue
from gpu_pregel.host.agents.records import Id, Outcome
from gpu_pregel.host.agents.workers.transport import Transport

_PATIENCE = 0.01
"""Seconds that a partition has to compute before it returns vertices."""
_SLOW = 0.001
"""Seconds per vertex from which moving vertices is worth its cost."""


class WorkStealing:
    """Recalls vertices from busy partitions while others are idle, and chooses where they are computed.

    Parameters
    ----------
    options : PartitionOptions
    queue : ReadyQueue
    transport : Transport

    Attributes
    ----------
    moved : dict of Id to int
        The vertices of the superstep that were submitted to another partition than their own, and that partition.
    """

    def __init__(self, options: PartitionOptions, queue: ReadyQueue, transport: Transport) -> None:
        self.moved: dict[Id, int] = {}
        self._slots = {name: options.max_concurrency if options.is_async(name) else 1 for name in options.functions}
        self._queue, self._transport = queue, transport
        count = transport.partitions
        self._begun, self._heard = [0.0] * count, [0.0] * count
        self._ended = [0] * count
        self._recalled: set[int] = set()

    def on_submit(self, partition: int, vertices: list[Id], now: float) -> list[Id]:
        """Note that a partition gets vertices; return those of other partitions."""
        if self._queue.running[partition] == len(vertices):  # it was idle
            self._begun[partition], self._ended[partition] = now, 0
        self._heard[partition] = now
        return [vertex for vertex in vertices if vertex in self.moved] if self.moved else []

    def on_outcomes(self, partition: int, outcomes: list[Outcome]) -> list[Id]:
        """Note that attempts of a partition have ended; return the vertices that were moved."""
        self._heard[partition] = monotonic()
        self._ended[partition] += len(outcomes)
        return [outcome.id for outcome in outcomes if outcome.id in self.moved] if self.moved else []

    def on_death(self, partition: int) -> None:
        """Note that a partition will return nothing."""
        self._recalled.discard(partition)

    def recall(self, step: int, function: str, now: float) -> float | None:
        """Let the partition with most waiting vertices return some if others are idle; return when to look again."""
        running, slots = self._queue.running, self._slots[function]
        if 0 not in running or not (idle := self._queue.idle()):
            return None
        busy = [partition for partition, count in enumerate(running) if count > slots]
        if not busy:
            return None
        for partition in sorted(busy, key=running.__getitem__, reverse=True):
            if partition not in self._recalled and self._is_slow(partition, now):
                count = running[partition]
                share = count * len(idle) // (len(idle) + 1)
                self._recalled.add(partition)
                self._transport.recall(partition, step, min(count - slots, share))
                break
        return now + _PATIENCE

    def _is_slow(self, partition: int, now: float) -> bool:
        """Whether the vertices of a partition take so long that moving them is worth its cost."""
        elapsed = now - self._begun[partition]
        if elapsed < _PATIENCE:
            return False
        return elapsed >= _SLOW * self._ended[partition] or now - self._heard[partition] >= _PATIENCE

    def on_return(self, partition: int, vertices: Iterable[Id]) -> list[tuple[Id, int]]:
        """Choose partitions for the vertices that one returned: those with the fewest tasks."""
        self._recalled.discard(partition)
        queue = self._queue
        tasks = {place: queue.running[place] + len(queue.due[place]) for place in [partition, *queue.idle()]}
        chosen = []
        for vertex in vertices:
            place = min(tasks, key=lambda one: (tasks[one], one == partition))
            tasks[place] += 1
            chosen.append((vertex, place))
            if place != partition:
                self.moved[vertex] = place
        return chosen

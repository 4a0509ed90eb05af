"""How the master reaches its partitions: what every transport does, and the one within this process."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

from gpu_pregel.errors import AgentError
from gpu_pregel.host.agents.records import Batch, Change, Id, Outcome, TaskFields, Vertex
from gpu_pregel.host.agents.workers.executor import Begin, Executor, Job

if TYPE_CHECKING:
    from gpu_pregel.host.agents.workers.event_loops import Running

_SLICE_SECONDS = 0.005


class Done(NamedTuple):
    """Attempts ended; ``generation`` is that of the worker that made them."""

    partition: int
    generation: int
    outcomes: list[Outcome]


class Death(NamedTuple):
    """A worker died; ``under_way`` are the vertices that it was computing, and that may have been why.

    The outcomes of all that it has completed came before; whatever else was submitted to it is to be submitted again.
    The partition's next worker begins with what is committed then.
    """

    partition: int
    generation: int
    under_way: list[Id]
    reason: str


Event = Done | Death


class Transport(Protocol):
    """Partitions, each with an executor somewhere. Calls do not block, but ``wait`` and ``close``."""

    @property
    def partitions(self) -> int: ...  # noqa: D102

    @property
    def is_local(self) -> bool:
        """Whether compute functions run in this process."""

    @property
    def blocks(self) -> bool:
        """Whether the next ``wait`` computes on this thread, for as long as that takes."""

    def place(self, vertex: Id) -> int:
        """The partition that owns a vertex."""

    def start(self, vertices: list[dict[Id, Vertex]], states: Callable[[int], dict[Id, Vertex]]) -> None:
        """Start and load all; ``states(partition)`` gives its committed vertices when a worker must be replaced."""

    def submit(self, partition: int, batch: Batch) -> None:
        """Let a partition compute a batch; each of its tasks ends in an outcome, or with the death of the worker."""

    def wait(self, until: float | None) -> list[Event]:
        """Wait for events, no longer than until then by the monotonic clock; an empty list if there were none."""

    def kill(self, partition: int, reason: str) -> None:
        """End a partition's worker; a ``Death`` follows."""

    def commit(self, partition: int, step: int, change: Change) -> None:
        """Make what a partition staged its state."""

    def close(self) -> None:
        """End all workers; calls that come later raise what ``ended`` gives."""


def ended() -> AgentError:
    """Why nothing can be asked of partitions any more."""
    return AgentError("the run has ended: its workers are gone")


class InProcess:
    """One partition, computed on the master's thread while it waits."""

    partitions = 1
    is_local = True

    def __init__(self, job: Job, *, in_slices: bool = False) -> None:
        self._executor = Executor(job)
        self._in_slices = in_slices
        """Whether the master looks at what is done now and then, so that it is on record before what takes long."""
        self._begun = 0.0
        self._timeout = job.timeout
        self._is_closed = False
        self._running: Running | None = None
        self._under_way: dict[Id, tuple[Batch, TaskFields]] = {}
        """Attempts of an ``async`` function."""
        self._batches: list[Batch] = []
        self._outcomes: list[Outcome] = []

    def place(self, vertex: Id) -> int:  # noqa: ARG002
        """Everything is here."""
        return 0

    def start(self, vertices: list[dict[Id, Vertex]], states: Callable[[int], dict[Id, Vertex]]) -> None:  # noqa: ARG002
        """Take the vertices; nobody replaces this partition."""
        self._executor.load({key: Vertex(one.value, one.edges, one.halted) for key, one in vertices[0].items()})

    def submit(self, partition: int, batch: Batch) -> None:  # noqa: ARG002
        """Keep a batch until ``wait``."""
        if self._is_closed:
            raise ended()
        self._batches.append(batch)

    def wait(self, until: float | None) -> list[Event]:
        """Compute what was submitted; with nothing to do, sleep."""
        if self._is_closed:
            raise ended()
        if not self._batches and not self._under_way:
            if until is not None:
                time.sleep(max(0.0, until - time.monotonic()))
            return []
        if self._under_way or self._executor.is_async(self._batches[0]):
            return self._wait_on_loop(until)
        self._begun = time.monotonic()
        is_enough = self._is_slice_over if self._in_slices else None
        while self._batches and not (is_enough is not None and is_enough(0)):
            self._compute(self._batches[0], is_enough)
            if not self._batches[0].tasks:
                del self._batches[0]
        outcomes, self._outcomes = self._outcomes, []
        return [Done(0, 0, outcomes)]

    def _is_slice_over(self, index: int) -> bool:  # noqa: ARG002
        return bool(self._outcomes) and time.monotonic() - self._begun >= _SLICE_SECONDS

    @property
    def blocks(self) -> bool:
        """Whether an ordinary function is to be called."""
        return bool(self._batches) and not self._executor.is_async(self._batches[0])

    def _wait_on_loop(self, until: float | None) -> list[Event]:
        """Let attempts of an ``async`` function go on, side by side, until one has ended."""
        if self._running is None:
            from gpu_pregel.host.agents.workers.event_loops import Running

            self._running = Running(self._executor, self._timeout)
        try:
            while self._batches:
                batch = self._batches.pop()
                self._under_way.update((task[0], (batch, task)) for task in batch.tasks)
                self._running.begin(batch)
            outcomes = self._running.wait(until)
        except BaseException:  # the rest is computed if the run goes on
            self._outcomes += self._settle(self._running.taken())
            rest = list(self._under_way.values())
            self._under_way.clear()
            self._batches += [replace(batch, tasks=[task]) for batch, task in rest]
            self._end_loop(interrupted=True)
            raise
        outcomes, self._outcomes = self._outcomes + self._settle(outcomes), []
        if not self._under_way:
            self._end_loop()
        return [Done(0, 0, outcomes)] if outcomes else []

    def _settle(self, outcomes: list[Outcome]) -> list[Outcome]:
        for outcome in outcomes:
            del self._under_way[outcome.id]
        return outcomes

    def _end_loop(self, interrupted: bool = False) -> None:
        running, self._running = self._running, None
        if running is not None:
            running.close(interrupted)

    def _compute(self, batch: Batch, is_enough: Begin | None) -> None:
        """Compute a batch of an ordinary function, or as much as is enough; what is left of it is its tasks."""
        before = len(self._outcomes)
        try:
            self._executor.execute(batch, self._outcomes.append, is_enough)
        finally:  # however it ended, each task before the last outcome has one
            batch.tasks = batch.tasks[len(self._outcomes) - before :]

    def kill(self, partition: int, reason: str) -> None:
        """Not possible here."""
        raise NotImplementedError(f"partition {partition} is in this process and cannot be ended: {reason}")

    def commit(self, partition: int, step: int, change: Change) -> None:  # noqa: ARG002
        """Make what is staged the state; the master keeps vertices of its own."""
        if self._is_closed:
            raise ended()
        if change.set:
            copies = {key: Vertex(one.value, one.edges, one.halted) for key, one in change.set.items()}
            change = Change(copies, change.halt, change.remove)
        self._executor.commit(change)

    def close(self) -> None:
        """End what is under way, and forget all vertices."""
        self._is_closed = True
        self._under_way.clear()
        self._end_loop(interrupted=True)
        self._executor.load({})
        self._batches.clear()

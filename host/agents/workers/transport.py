"""The contract between the master and its partitions, and the transport to a partition in this process."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from gpu_pregel.errors import AgentError
from gpu_pregel.host.agents.emissions import Emission, Emitter
from gpu_pregel.host.agents.partition_options import PartitionOptions
from gpu_pregel.host.agents.records import Batch, Change, Id, Outcome, TaskFields, VertexData
from gpu_pregel.host.agents.workers.executor import Executor

if TYPE_CHECKING:
    from gpu_pregel.host.agents.workers.event_loops import AsyncAttempts, OwnEventLoop

SLICE_SECONDS = 0.005


class OutcomeBatch(NamedTuple):
    """Outcomes of attempts, with the generation of the worker that computed them."""

    partition: int
    generation: int
    outcomes: list[Outcome]


_new_outcome_batch = partial(tuple.__new__, OutcomeBatch)  # three times as fast


class WorkerDeath(NamedTuple):
    """The death of a worker; ``running`` are the vertices that may have caused it.

    All outcomes of its completed attempts arrive earlier; its other tasks must be submitted again. The next worker of
    the partition starts from the last committed state.
    """

    partition: int
    generation: int
    running: list[Id]
    reason: str


class ReturnedTasks(NamedTuple):
    """Vertices that a partition has not computed and will not, because they were recalled or cancelled."""

    partition: int
    vertices: list[Id]


class Progress(NamedTuple):
    """The state of submitted tasks, beyond the outcomes that ``take`` has returned.

    Attributes
    ----------
    begun : set of (Id, int)
        Vertices and numbers of the attempts that are running, or have run.
    ended : list of Outcome
        Outcomes of those that have ended.
    """

    begun: set[tuple[Id, int]]
    ended: list[Outcome]


Arrival = OutcomeBatch | WorkerDeath | ReturnedTasks | Emission
"""Emissions of an attempt arrive before its outcome."""


class Transport(Protocol):
    """Access to partitions. Only ``wait`` and ``close`` block; a program on an event loop awaits ``ready`` instead."""

    @property
    def partitions(self) -> int: ...  # noqa: D102

    @property
    def is_local(self) -> bool:
        """Whether compute functions run in this process."""

    @property
    def is_concurrent(self) -> bool:
        """Whether attempts go on while the master's thread does something else."""

    @property
    def blocks(self) -> bool:
        """Whether the next ``wait`` calls a compute function on this thread."""

    def place(self, vertices: Collection[Id]) -> Sequence[int]:
        """Return the partition that owns each vertex."""

    def start(
        self,
        vertices: list[dict[Id, VertexData]],
        states: Callable[[int], dict[Id, VertexData]],
        emit: Callable[[Emission], None],
    ) -> None:
        """Start all partitions; one in this process computes the vertices of the master, in the same dict.

        ``states(partition)`` returns committed vertices for a replacement worker. ``emit(emission)`` tells the
        observers at once, on any thread, what cannot arrive while an attempt occupies the thread of the master.
        """

    def submit(self, partition: int, batch: Batch) -> None:
        """Send a batch to a partition; each task ends with an outcome, its return, or the death of the worker."""

    def recall(self, partition: int, step: int, count: int) -> None:
        """Let a partition return up to ``count`` tasks of a superstep that wait; it answers with ``ReturnedTasks``."""

    def abort(self) -> None:
        """Cancel all attempts and drop all waiting tasks, which end as ``submit`` says."""

    def wait(self, until: float | None) -> None:
        """Wait for arrivals, at most until a time on the monotonic clock."""

    async def ready(self, until: float | None) -> None:
        """Wait like ``wait`` without blocking the running event loop, unless ``blocks``."""

    async def cancel(self) -> None:
        """Cancel attempts on the running event loop, before ``close``."""

    def take(self) -> list[Arrival]:
        """Return the arrivals so far."""

    def finished(self) -> list[Outcome] | None:
        """Return completed outcomes that ``take`` has not returned, or None if no attempt is running here.

        Any thread may call it.
        """

    def progress(self) -> Progress:
        """Return what has become of submitted tasks; any thread may call it."""

    def commit(self, partition: int, step: int, change: Change) -> None:
        """Commit the records of a partition, and a change to it, after the master has changed its own vertices."""

    def close(self) -> None:
        """End all workers; later calls raise ``run_ended_error()``."""


def run_ended_error() -> AgentError:
    """Return the error for calls after ``close``."""
    return AgentError("the run has ended: its workers are gone")


class InProcessTransport:
    """One partition, computed on the thread that calls ``wait``; ``async`` functions on the loop that awaits ``ready``.

    Parameters
    ----------
    options : PartitionOptions
    in_slices : bool
        Return from ``wait`` after a few milliseconds, and after a failure, so that the master can handle them.
    """

    partitions = 1
    is_local, is_concurrent = True, False

    def __init__(self, options: PartitionOptions, *, in_slices: bool = False) -> None:
        self._executor = Executor(options, in_worker=False)
        if options.is_observed:
            self._executor.emit_by(Emitter(self._emit, self._wait_for_room))
        self._in_slices = in_slices
        self._begun = 0.0
        self._is_closed = False
        self._async_attempts: AsyncAttempts | None = None
        self._own_loop: OwnEventLoop | None = None
        self._async_tasks: dict[Id, tuple[Batch, TaskFields]] = {}
        self._batches: list[Batch] = []
        self._computing: tuple[list[TaskFields], int] | None = None
        """The tasks that are computed one after the other, and the number of outcomes before the first of them."""
        self._outcomes: list[Outcome] = []
        self._returned: list[Id] = []
        """Vertices whose tasks an abort has dropped."""
        self._emissions: list[Emission] = []
        self._paused = 0.0
        """When the own event loop was last stopped."""

    def place(self, vertices: Collection[Id]) -> Sequence[int]:
        """Return 0 for each vertex."""
        return bytes(len(vertices))

    def start(
        self,
        vertices: list[dict[Id, VertexData]],
        states: Callable[[int], dict[Id, VertexData]],  # noqa: ARG002
        emit: Callable[[Emission], None],
    ) -> None:
        """Load the vertices."""
        self._tell_observers = emit
        self._executor.load(vertices[0])

    def submit(self, partition: int, batch: Batch) -> None:  # noqa: ARG002
        """Keep a batch until ``wait``."""
        if self._is_closed:
            raise run_ended_error()
        self._batches.append(batch)

    def recall(self, partition: int, step: int, count: int) -> None:
        """Return nothing: no other partition could compute it."""

    def abort(self) -> None:
        """Drop the batches, and cancel attempts of an ``async`` function."""
        self._returned += [task[0] for batch in self._batches for task in batch.tasks]
        self._batches.clear()
        if self._async_attempts is not None:
            self._async_attempts.abort()

    def wait(self, until: float | None) -> None:
        """Compute the submitted batches, or sleep if there are none."""
        if self._is_closed:
            raise run_ended_error()
        if self._batches and not self._executor.is_async(self._batches[0]):
            self._compute()
        elif self._batches or self._async_tasks:
            self._wait_on_own_loop(until)
        elif until is not None:
            time.sleep(max(0.0, until - time.monotonic()))

    async def ready(self, until: float | None) -> None:
        """Run attempts of an ``async`` function until one has ended, or sleep if there are none."""
        if self._is_closed:
            raise run_ended_error()
        if self._async_attempts is None:
            from gpu_pregel.host.agents.workers.event_loops import AsyncAttempts

            self._async_attempts = AsyncAttempts(self._executor)
        while self._batches:
            batch = self._batches.pop()
            self._async_tasks.update((task[0], (batch, task)) for task in batch.tasks)
            self._async_attempts.begin(batch)
        await self._async_attempts.wait(until)

    async def cancel(self) -> None:
        """Cancel all attempts."""
        if self._async_attempts is not None:
            await self._async_attempts.cancel()

    def take(self) -> list[Arrival]:
        """Return the outcomes since the last call."""
        outcomes, self._outcomes = self._outcomes, []
        if self._async_attempts is not None:
            outcomes += self._take_async_outcomes(self._async_attempts)
            if self._async_attempts.emissions.pending:  # those of these outcomes, and perhaps later ones
                self._emissions += self._async_attempts.emissions.take()
        arrivals: list[Arrival] = [_new_outcome_batch((0, 0, outcomes))] if outcomes else []
        if count := len(self._returned):  # another thread may add to them
            arrivals.append(ReturnedTasks(0, self._returned[:count]))
            del self._returned[:count]
        if self._emissions:
            arrivals[:0] = self._emissions
            self._emissions.clear()
        return arrivals

    def finished(self) -> list[Outcome] | None:
        """Return completed outcomes that ``take`` has not returned, or None if no attempt is running."""
        if not self._batches and not self._async_tasks:
            return None
        outcomes, attempts = self._outcomes[:], self._async_attempts
        if attempts is not None:
            outcomes += attempts.outcomes
        return [outcome for outcome in outcomes if outcome.status == "completed"]

    def progress(self) -> Progress:
        """Return the attempts that are running, and the outcomes that ``take`` has not returned."""
        begun, attempts, computing = set(), self._async_attempts, self._computing
        if computing is not None:
            tasks, before = computing
            begun.update([task[:2] for task in tasks[len(self._outcomes) - before :][:1]])
        if attempts is None:
            return Progress(begun, self._outcomes[:])
        begun |= attempts.begun.copy()
        return Progress(begun, attempts.outcomes + self._outcomes)

    def _emit(self, emission: Emission) -> None:
        """Tell the observers about an emission of an ordinary function; keep one of an ``async`` function."""
        if self._is_closed:
            raise run_ended_error()
        if self._async_attempts is not None and self._async_tasks:
            self._async_attempts.emit(emission)
        else:
            self._tell_observers(emission)

    def _wait_for_room(self) -> None:
        if self._async_attempts is not None and self._async_tasks:
            begun = time.monotonic()
            self._async_attempts.emissions.wait_for_room()
            self._executor.excuse(begun)

    def _compute(self) -> None:
        """Compute batches of an ordinary function, in slices for a few milliseconds."""
        batches, outcomes, is_slice_over = self._batches, self._outcomes, None
        if self._in_slices:
            self._begun, is_slice_over = time.monotonic(), self._is_slice_over
        while batches and not (is_slice_over and is_slice_over(0)):
            batch, before = batches[0], len(outcomes)
            self._computing = batch.tasks, before
            try:
                self._executor.execute(batch, outcomes.append, is_slice_over)
            finally:  # even after an exception, each outcome belongs to the next task
                self._computing = None
                batch.tasks = batch.tasks[len(outcomes) - before :]
            if batches and not batch.tasks:
                del batches[0]

    def _is_slice_over(self, index: int) -> bool:  # noqa: ARG002
        outcomes = self._outcomes
        if not outcomes:
            return False
        return outcomes[-1].status != "completed" or time.monotonic() - self._begun >= SLICE_SECONDS

    @property
    def blocks(self) -> bool:
        """Whether the next batch has an ordinary function."""
        return bool(self._batches) and not self._executor.is_async(self._batches[0])

    def _wait_on_own_loop(self, until: float | None) -> None:
        """Run the attempts of a program that has no event loop, or whose loop must not wait."""
        if self._own_loop is None:
            from gpu_pregel.host.agents.workers.event_loops import OwnEventLoop

            self._own_loop = OwnEventLoop()
        self._executor.excuse(self._paused)
        try:
            self._own_loop.run(self.ready(until))
        except BaseException:  # unfinished tasks are computed again if the run continues
            if self._async_attempts is not None:
                self._outcomes += self._take_async_outcomes(self._async_attempts)
                self._emissions += self._async_attempts.emissions.take()
            self._batches += [replace(batch, tasks=[task]) for batch, task in self._async_tasks.values()]
            self._async_tasks.clear()
            self._close_loop()
            raise
        finally:
            self._paused = time.monotonic()

    def _take_async_outcomes(self, attempts: AsyncAttempts) -> list[Outcome]:
        outcomes = attempts.take_outcomes()
        for outcome in outcomes:
            del self._async_tasks[outcome.id]
        for vertex in attempts.take_returned():
            del self._async_tasks[vertex]
            self._returned.append(vertex)
        return outcomes

    def _close_loop(self) -> None:
        if self._async_attempts is not None:
            self._async_attempts.stop()
        loop, self._own_loop, self._async_attempts = self._own_loop, None, None
        if loop is not None:
            loop.close()

    def commit(self, partition: int, step: int, change: Change) -> None:  # noqa: ARG002
        """Commit to the executor."""
        if self._is_closed:
            raise run_ended_error()
        self._executor.commit(step, change)

    def close(self) -> None:
        """End all attempts and release the vertices."""
        self._is_closed = True
        self._async_tasks.clear()
        self._close_loop()
        for batch in self._batches:
            batch.tasks.clear()  # a thread that was abandoned may compute one of them
        self._batches.clear()
        self._executor.load({})

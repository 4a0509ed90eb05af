"""The event loop of a worker, on which attempts of ``async`` functions run concurrently."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from time import monotonic

from gpu_pregel.host.agents.records import Batch, Outcome, Task
from gpu_pregel.host.agents.workers.attempt_marks import AttemptMarks
from gpu_pregel.host.agents.workers.attempt_task import AttemptTask, guard, run_until_complete
from gpu_pregel.host.agents.workers.executor import CANCELLED, Executor
from gpu_pregel.host.agents.workers.outcome_sender import OutcomeSender
from gpu_pregel.host.agents.workers.recalls import Recalls


class AttemptLoop:
    """Runs attempts until all have ended, however they end, and all outcomes are sent.

    Parameters
    ----------
    executor : Executor
    marks : AttemptMarks
    sender : OutcomeSender
    on_end : callable
        Called with the task of each attempt that has ended.
    recalls : Recalls or None
    """

    def __init__(
        self,
        executor: Executor,
        marks: AttemptMarks,
        sender: OutcomeSender,
        on_end: Callable[[Task], object],
        recalls: Recalls | None,
    ) -> None:
        self._executor, self._marks, self._sender, self._on_end = executor, marks, sender, on_end
        self._recalls = recalls
        self._loop = asyncio.Runner().get_loop()
        guard(self._loop)
        self._waiting: deque[tuple[int, Task, Batch]] = deque()
        self._running: dict[AttemptTask[None], tuple[int, Task, int]] = {}
        self._finished: asyncio.Future[None] = self._loop.create_future()

    def run(self, batch: Batch, descriptor: int, more: Callable[[], Iterable[Batch]]) -> None:
        """Compute a batch, and those that ``more`` returns when the descriptor can be read meanwhile."""

        def read() -> None:
            if self._finished.done():
                return  # the loop is about to stop: the next call begins what has arrived
            for batch in more():
                self._begin(batch)

        self._finished = self._loop.create_future()
        self._loop.add_reader(descriptor, read)
        if self._recalls is not None:
            self._recalls.begin(batch.step, self._take_waiting)
        try:
            self._begin(batch)
            run_until_complete(self._loop, self._finished, SystemExit, KeyboardInterrupt)
        finally:
            self._loop.remove_reader(descriptor)
            if self._recalls is not None:
                self._recalls.end()
        self._sender.flush()

    def _begin(self, batch: Batch) -> None:
        sender = self._sender
        for fields in batch.tasks:
            sender.serial += 1
            self._waiting.append((sender.serial, Task(*fields), batch))
        self._start_waiting()

    def _take_waiting(self, count: int) -> list[int]:
        """Remove the last of the tasks that wait for a place; called by another thread."""
        serials: list[int] = []
        with suppress(IndexError):
            while len(serials) < count:
                serials.append(self._waiting.pop()[0])
        return serials

    def _start_waiting(self) -> None:
        """Start as many attempts as may run; finish if none is left."""
        while self._waiting and len(self._running) < self._marks.slots:
            try:
                serial, task, batch = self._waiting.popleft()
            except IndexError:  # they were recalled
                break
            if not self._sender.free:
                self._sender.flush()
            slot = self._sender.free.pop()
            attempt = AttemptTask(self._attempt(serial, task, slot, batch), self._loop, task)
            self._running[attempt] = serial, task, slot
            attempt.add_done_callback(self._start_next)
        if not self._running and not self._finished.done():
            self._finished.set_result(None)

    async def _attempt(self, serial: int, task: Task, slot: int, batch: Batch) -> None:
        self._marks.serials[slot] = serial  # only now, as the attempts before this one may block the loop
        self._marks.begun[slot] = monotonic()
        self._marks.latest = serial
        begun = self._marks.begun

        def beat() -> None:
            begun[slot] = monotonic()

        outcome = await self._executor.execute_async(task, batch, beat=beat)
        attempt = asyncio.current_task(self._loop)
        assert isinstance(attempt, AttemptTask)
        self._end(attempt, outcome)

    def _end(self, attempt: AttemptTask[None], outcome: Outcome) -> None:
        serial, task, slot = self._running.pop(attempt)
        self._marks.begun[slot] = 0.0
        self._on_end(task)
        self._sender.add(serial, outcome, slot)

    def _start_next(self, attempt: AttemptTask[None]) -> None:
        """Start other attempts; one that ended without an outcome has failed."""
        if attempt in self._running:
            error = asyncio.CancelledError(CANCELLED) if attempt.cancelled() else attempt.exception()
            assert error is not None
            self._end(attempt, self._executor.fail(self._running[attempt][1], error))
        elif not attempt.cancelled():
            attempt.exception()
        self._start_waiting()

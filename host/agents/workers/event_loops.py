"""Event loops for ``async`` compute functions in this process, and loops that continue after a task exits."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from gpu_pregel.host.agents.emissions import Emission
from gpu_pregel.host.agents.records import Batch, Id, Outcome, Task
from gpu_pregel.host.agents.workers.attempt_task import AttemptTask, guard, run_until_complete
from gpu_pregel.host.agents.workers.emission_buffer import EmissionBuffer
from gpu_pregel.host.agents.workers.executor import CANCELLED, Executor

GRACE = 1.0
"""Seconds that a cancelled attempt has to end."""


class AsyncAttempts:
    """Concurrent attempts of an ``async`` function on the running event loop.

    Parameters
    ----------
    executor : Executor
        An attempt that still runs ``GRACE`` seconds after it was cancelled by its timeout is abandoned.
    """

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[tuple[Task, Batch]] = deque()
        self._running: dict[AttemptTask[None], Task] = {}
        self.begun: set[tuple[Id, int]] = set()
        """Vertices and numbers of the attempts that have begun and not ended; others may wait until they let the loop
        run."""
        self.outcomes: list[Outcome] = []
        """Outcomes that have not been taken."""
        self.emissions = EmissionBuffer(self._loop)
        self._returned: list[Id] = []
        """Vertices whose attempts have been cancelled."""
        self._is_stopped = self._is_aborting = False
        self._wakeup: asyncio.Future[None] | None = None

    def begin(self, batch: Batch) -> None:
        """Start the attempts of a batch, as many as may run at once."""
        self._executor.check_step(batch.step)
        self._is_aborting = False
        self._waiting += [(Task(*fields), batch) for fields in batch.tasks]
        self._start_waiting()

    def _start_waiting(self) -> None:
        while self._waiting and len(self._running) < self._executor.max_concurrency:
            task, batch = self._waiting.popleft()
            attempt = AttemptTask(self._attempt(task, batch), self._loop, task)
            self._running[attempt] = task
            attempt.add_done_callback(self._on_end)

    async def wait(self, until: float | None) -> None:
        """Wait until an attempt has ended or emitted, or until a time on the monotonic clock."""
        if not (self.outcomes or self._returned or self.emissions.pending):
            self._wakeup = self._loop.create_future()
            try:
                await wait_for_future(self._wakeup, until)
            finally:
                self._wakeup = None
        if self._running:
            await asyncio.sleep(0)  # let attempts that are about to end do so

    def take_outcomes(self) -> list[Outcome]:
        """Return the outcomes since the last call."""
        outcomes, self.outcomes = self.outcomes, []
        return outcomes

    def take_returned(self) -> list[Id]:
        """Return the vertices whose attempts have been cancelled since the last call."""
        returned, self._returned = self._returned, []
        return returned

    def abort(self) -> None:
        """Cancel all attempts; any thread may call this.

        One that completes all the same counts. After ``GRACE`` seconds the others are left.
        """
        self._is_aborting = True
        self._loop.call_soon_threadsafe(self._cancel_all)

    def _cancel_all(self) -> None:
        self._returned += [task.id for task, _ in self._waiting]
        self._waiting.clear()
        for attempt in self._running:
            attempt.cancel()
        self._loop.call_later(GRACE, self._leave, list(self._running))
        self._wake()

    def _leave(self, attempts: Iterable[AttemptTask[None]]) -> None:
        """Drop the outcomes of those attempts that still run after they were cancelled."""
        for attempt in attempts:
            if (task := self._running.pop(attempt, None)) is not None:
                self.begun.discard((task.id, task.attempt))
                self._returned.append(task.id)
        self._wake()

    def emit(self, emission: Emission) -> None:
        """Keep an emission until the master takes it, and wake the master; any thread may call this."""
        self.emissions.add(emission)
        if self.emissions.is_on_loop:
            self._wake()
        else:
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        if self._wakeup is not None:
            set_done(self._wakeup)

    async def cancel(self) -> None:
        """Cancel the attempts, whose outcomes are dropped, and leave those that have not ended a moment later."""
        self.stop()
        self.emissions.close()
        for attempt in self._running:
            attempt.cancel()
        if self._running:
            await asyncio.wait(self._running, timeout=GRACE)

    def stop(self) -> None:
        """Start no more attempts, and drop the outcomes of those that are running."""
        self._is_stopped = True
        self._waiting.clear()

    async def _attempt(self, task: Task, batch: Batch) -> None:
        self.begun.add((task.id, task.attempt))
        outcome = await self._executor.execute_async(task, batch, GRACE)
        self._end(asyncio.current_task(), outcome)

    def _end(self, attempt: Any, outcome: Outcome) -> None:
        """Keep the outcome at once, as another attempt may block the loop, and wake the master."""
        if self._running.pop(attempt, None) is None:
            return  # it was left
        if self._is_aborting and outcome.status != "completed":
            self._returned.append(outcome.id)
        elif not self._is_stopped:
            self.outcomes.append(outcome)
        self.begun.discard((outcome.id, outcome.attempt))
        self._wake()

    def _on_end(self, attempt: AttemptTask[None]) -> None:
        """Start other attempts; an attempt that code on the loop has cancelled fails."""
        error = None if attempt.cancelled() else attempt.exception()
        if error is not None:
            self._running.pop(attempt, None)
            if self._wakeup is not None and not self._wakeup.done():
                self._wakeup.set_exception(error)
        elif attempt in self._running:
            cancelled = asyncio.CancelledError(CANCELLED)
            self._end(attempt, self._executor.fail(self._running[attempt], cancelled))
        if self._waiting:
            self._start_waiting()


async def wait_for_descriptor(descriptor: int, until: float | None) -> None:
    """Wait until a descriptor can be read, or until a time on the monotonic clock."""
    loop = asyncio.get_running_loop()
    wakeup = loop.create_future()
    loop.add_reader(descriptor, set_done, wakeup)
    try:
        await wait_for_future(wakeup, until)
    finally:
        loop.remove_reader(descriptor)


async def wait_for_future(wakeup: asyncio.Future[None], until: float | None) -> None:
    """Wait until a future is done, at most until a time on the monotonic clock."""
    timer = None
    if until is not None:
        timer = wakeup.get_loop().call_later(max(0.0, until - time.monotonic()), set_done, wakeup)
    try:
        await wakeup
    finally:
        if timer is not None:
            timer.cancel()


def set_done(future: asyncio.Future[None]) -> None:
    """End the waiting for a future, unless it has ended."""
    if not future.done():
        future.set_result(None)


class OwnEventLoop:
    """The event loop of a program that blocks: it runs while the program waits, and is kept for the next wait.

    Connections that a compute function keeps are therefore usable in later supersteps.
    """

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._loop = self._runner.get_loop()
        guard(self._loop)
        self._pool: ThreadPoolExecutor | None = None

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run the loop until ``work`` is done, or until code on the loop cancels it."""
        with suppress(asyncio.CancelledError):
            self._run(self._loop.create_task(work))

    def _run(self, task: asyncio.Task[None]) -> None:
        """Run the loop on this thread or, if it already runs an event loop, as in a notebook, on another one."""
        if not _runs_a_loop():
            return run_until_complete(self._loop, task, SystemExit)
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1)
        running = self._pool.submit(run_until_complete, self._loop, task, SystemExit)
        try:
            return running.result()
        except BaseException:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(task.cancel)
            with suppress(BaseException):
                running.result()
            raise

    def close(self) -> None:
        """Cancel all tasks and close the loop."""
        if not _runs_a_loop():
            self._close()
        else:
            with ThreadPoolExecutor(1) as pool:
                pool.submit(self._close).result()
        if self._pool is not None:
            self._pool.shutdown()

    def _close(self) -> None:
        _cancel_all(self._loop, GRACE)
        with suppress(SystemExit):  # of a generator that has just been closed
            self._runner.close()


def _runs_a_loop() -> bool:
    """Whether this thread runs an event loop."""
    return asyncio._get_running_loop() is not None


def _cancel_all(loop: asyncio.AbstractEventLoop, grace: float) -> None:
    """Cancel all tasks, then close asynchronous generators, and abandon what does not end within ``grace`` seconds."""

    async def cancel() -> Iterable[asyncio.Task[Any]]:
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        if rest:
            await asyncio.wait(rest, timeout=grace)
        closing = loop.create_task(loop.shutdown_asyncgens())
        await asyncio.wait((closing,), timeout=grace)
        return asyncio.all_tasks() - {asyncio.current_task()}

    for task in run_until_complete(loop, loop.create_task(cancel()), SystemExit):
        asyncio._unregister_task(task)
        task._log_destroy_pending = False  # type: ignore[attr-defined]
    loop.set_default_executor(ThreadPoolExecutor(1))  # do not wait for threads that still run

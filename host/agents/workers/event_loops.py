"""Event loops for ``async`` compute functions in this process, and loops that continue after a task exits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from gpu_pregel.host.agents.records import Batch, Outcome, Task

GRACE = 1.0
"""Seconds that a cancelled attempt has to end."""

T = TypeVar("T")


def run_until_complete(loop: asyncio.AbstractEventLoop, task: asyncio.Task[T], *ends: type[BaseException]) -> T:
    """Run a loop until ``task`` is done, even if other tasks raise one of ``ends``.

    A task that raises SystemExit, for example, stops its loop. The tasks that await it continue when the loop does.
    """
    while True:
        try:
            return loop.run_until_complete(task)
        except ends:
            if task.done():
                return task.result()


class AsyncAttempts:
    """Concurrent attempts of an ``async`` function in this process, on an event loop that runs during ``wait``.

    Parameters
    ----------
    execute : callable
        ``Executor.execute_async``.
    max_concurrency : int
    timeout : float or None
        Seconds of an attempt. One that still runs ``GRACE`` seconds after it was cancelled is abandoned.
    """

    def __init__(
        self,
        execute: Callable[[Task, Batch, float | None], Awaitable[Outcome]],
        max_concurrency: int,
        timeout: float | None,
    ) -> None:
        self._execute = execute
        self._abandon_after = None if timeout is None else timeout + GRACE
        self._places = asyncio.Semaphore(max_concurrency)
        self._outcomes: list[Outcome] = []
        self._is_stopped = self._has_late = False
        self._wakeup: asyncio.Future[None] | None = None
        self._runner = asyncio.Runner()
        self._loop = self._runner.get_loop()
        self._pool: ThreadPoolExecutor | None = None
        try:
            asyncio.get_running_loop()
            self._pool = ThreadPoolExecutor(1)  # this thread already runs an event loop, as in a notebook
        except RuntimeError:
            pass

    def begin(self, batch: Batch) -> None:
        """Start the attempts of a batch."""
        for fields in batch.tasks:
            self._loop.create_task(self._attempt(Task(*fields), batch)).add_done_callback(self._on_end)

    def wait(self, until: float | None) -> list[Outcome]:
        """Run until an attempt has ended, or until a time on the monotonic clock; return new outcomes."""
        work = self._loop.create_task(self._wait(until))
        if self._pool is None:
            run_until_complete(self._loop, work, SystemExit)
        else:
            running = self._pool.submit(run_until_complete, self._loop, work, SystemExit)
            try:
                running.result()
            except BaseException:
                with suppress(RuntimeError):  # the loop has ended
                    self._loop.call_soon_threadsafe(work.cancel)
                with suppress(BaseException):
                    running.result()
                raise
        return self.take_outcomes()

    def take_outcomes(self) -> list[Outcome]:
        """Return the outcomes since the last call."""
        outcomes, self._outcomes = self._outcomes, []
        return outcomes

    def close(self, interrupted: bool = False) -> None:
        """Close the loop; attempts that are still running when ``interrupted`` do not fail."""
        self._is_stopped = True
        grace = GRACE if interrupted or self._has_late else None
        if self._pool is None:
            self._close(grace)
        else:
            self._pool.submit(self._close, grace).result()
            self._pool.shutdown()

    def _close(self, grace: float | None) -> None:
        _cancel_all(self._loop, grace)
        self._runner.close()

    async def _attempt(self, task: Task, batch: Batch) -> None:
        async with self._places:
            outcome = await self._execute(task, batch, self._abandon_after)
        if outcome.status == "failed" and outcome.result.kind == "timeout":
            self._has_late = True
        if not self._is_stopped:
            self._outcomes.append(outcome)

    def _on_end(self, task: asyncio.Task[None]) -> None:
        if self._wakeup is not None and not self._wakeup.done():
            error = None if task.cancelled() else task.exception()
            self._wakeup.set_result(None) if error is None else self._wakeup.set_exception(error)

    async def _wait(self, until: float | None) -> None:
        if not self._outcomes:
            self._wakeup = self._loop.create_future()
            seconds = None if until is None else max(0.0, until - time.monotonic())
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._wakeup
            self._wakeup = None
        await asyncio.sleep(0)  # let attempts that are about to end do so


def _cancel_all(loop: asyncio.AbstractEventLoop, grace: float | None) -> None:
    """Cancel all tasks, and abandon those that do not end within ``grace`` seconds."""

    async def cancel() -> Iterable[asyncio.Task[Any]]:
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        if rest:
            _, rest = await asyncio.wait(rest, timeout=grace)
        return rest

    for task in run_until_complete(loop, loop.create_task(cancel()), SystemExit):
        asyncio._unregister_task(task)
        task._log_destroy_pending = False  # type: ignore[attr-defined]
    if grace is not None:
        loop.set_default_executor(ThreadPoolExecutor(1))  # do not wait for threads that still run

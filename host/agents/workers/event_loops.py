"""Event loops for ``async`` compute functions: the one in this process, and how any of them goes on after an exit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from gpu_pregel.host.agents.records import Batch, Outcome, Task

if TYPE_CHECKING:
    from gpu_pregel.host.agents.workers.executor import Executor

GRACE = 1.0
"""Seconds that a cancelled attempt has to end."""

T = TypeVar("T")


def run_until_complete(loop: asyncio.AbstractEventLoop, task: asyncio.Task[T], *ends: type[BaseException]) -> T:
    """Run a loop until a task is done, whatever other tasks raise.

    A task that raises one of ``ends``, SystemExit say, stops its loop with that. But only it has ended: whoever awaits
    it is told when the loop goes on.
    """
    while True:
        try:
            return loop.run_until_complete(task)
        except ends:
            if task.done():
                return task.result()


class Running:
    """Attempts of an ``async`` function under way in this process, on an event loop that runs while one waits.

    Parameters
    ----------
    executor : Executor
    timeout : float or None
        Of an attempt; one that goes on a while after it was cancelled is left behind.
    """

    def __init__(self, executor: Executor, timeout: float | None) -> None:
        self._executor = executor
        self._patience = None if timeout is None else timeout + GRACE
        self._places = asyncio.Semaphore(executor.max_concurrency)
        self._outcomes: list[Outcome] = []
        self._is_stopped = self._has_late = False
        self._woken: asyncio.Future[None] | None = None
        self._runner = asyncio.Runner()
        self._loop = self._runner.get_loop()
        self._pool: ThreadPoolExecutor | None = None
        try:
            asyncio.get_running_loop()
            self._pool = ThreadPoolExecutor(1)  # this thread has a running event loop: a notebook, say
        except RuntimeError:
            pass

    def begin(self, batch: Batch) -> None:
        """Begin the attempts of a batch, beside others."""
        for fields in batch.tasks:
            self._loop.create_task(self._one(Task(*fields), batch)).add_done_callback(self._ended)

    def wait(self, until: float | None) -> list[Outcome]:
        """Run until an attempt has ended, no longer than until then by the monotonic clock; those that have ended."""
        work = self._loop.create_task(self._wait(until))
        if self._pool is None:
            run_until_complete(self._loop, work, SystemExit)
        else:
            running = self._pool.submit(run_until_complete, self._loop, work, SystemExit)
            try:
                running.result()
            except BaseException:
                with suppress(RuntimeError):  # it has ended
                    self._loop.call_soon_threadsafe(work.cancel)
                with suppress(BaseException):
                    running.result()
                raise
        return self.taken()

    def taken(self) -> list[Outcome]:
        """The outcomes that nobody has taken yet."""
        outcomes, self._outcomes = self._outcomes, []
        return outcomes

    def close(self, interrupted: bool = False) -> None:
        """End the loop; what is still under way when it is interrupted has not failed."""
        self._is_stopped = True
        grace = GRACE if interrupted or self._has_late else None
        if self._pool is None:
            self._close(grace)
        else:
            self._pool.submit(self._close, grace).result()
            self._pool.shutdown()

    def _close(self, grace: float | None) -> None:
        _end(self._loop, grace)
        self._runner.close()

    async def _one(self, task: Task, batch: Batch) -> None:
        async with self._places:
            outcome = await self._executor.execute_async(task, batch, self._patience)
        if outcome.status == "failed" and outcome.result.kind == "timeout":
            self._has_late = True
        if not self._is_stopped:
            self._outcomes.append(outcome)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if self._woken is not None and not self._woken.done():
            error = None if task.cancelled() else task.exception()
            self._woken.set_result(None) if error is None else self._woken.set_exception(error)

    async def _wait(self, until: float | None) -> None:
        if not self._outcomes:
            self._woken = self._loop.create_future()
            seconds = None if until is None else max(0.0, until - time.monotonic())
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._woken
            self._woken = None
        await asyncio.sleep(0)  # others may end just now


def _end(loop: asyncio.AbstractEventLoop, grace: float | None) -> None:
    """Cancel the tasks that are left, and leave behind those that do not end within ``grace`` seconds."""

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
        loop.set_default_executor(ThreadPoolExecutor(1))  # nobody waits for what still runs in threads

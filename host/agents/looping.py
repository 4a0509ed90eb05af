"""Event loops for ``async`` compute functions: one per batch in process, and how any of them goes on after an exit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from gpu_pregel.host.agents.records import Batch, Outcome, Task

if TYPE_CHECKING:
    from gpu_pregel.host.agents.executor import Executor

GRACE = 1.0
"""Seconds that a cancelled attempt has to end."""

T = TypeVar("T")


def run_batch(executor: Executor, batch: Batch, emit: Callable[[Outcome], None], timeout: float | None) -> None:
    """Compute a batch of an ``async`` function to its end, in this process."""
    running = _Running(executor, batch, emit, timeout)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        running.run()
        return
    with ThreadPoolExecutor(1) as pool:  # this thread has a running event loop: a notebook, say
        future = pool.submit(running.run)
        try:
            future.result()
        except BaseException:
            running.stop()
            raise


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


class _Running:
    """A batch on an event loop of its own."""

    def __init__(
        self, executor: Executor, batch: Batch, emit: Callable[[Outcome], None], timeout: float | None
    ) -> None:
        self._executor, self._batch, self._emit = executor, batch, emit
        self._patience = None if timeout is None else timeout + GRACE
        self._is_stopped = self._has_late = False
        self._work: asyncio.Task[None] | None = None

    def run(self) -> None:
        """Compute all; what is still under way when it is stopped, or interrupted, has not failed."""
        runner = asyncio.Runner()
        loop = runner.get_loop()
        self._work = loop.create_task(self._compute())
        try:
            if not self._is_stopped:
                run_until_complete(loop, self._work, SystemExit)
        except BaseException:
            self._is_stopped = True
            raise
        finally:
            _end(loop, GRACE if self._is_stopped or self._has_late else None)
            runner.close()

    def stop(self) -> None:
        """Let ``run``, in another thread, end soon."""
        self._is_stopped = True
        if self._work is not None:
            with suppress(RuntimeError):  # it has ended
                self._work.get_loop().call_soon_threadsafe(self._work.cancel)

    async def _compute(self) -> None:
        places = asyncio.Semaphore(self._executor.max_concurrency)

        async def one(task: Task) -> None:
            async with places:
                outcome = await self._executor.execute_async(task, self._batch, self._patience)
            if outcome.status == "failed" and outcome.result.kind == "timeout":
                self._has_late = True
            if not self._is_stopped:
                self._emit(outcome)

        await asyncio.gather(*[one(Task(*fields)) for fields in self._batch.tasks])


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

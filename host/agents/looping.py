"""Event loops for ``async`` compute functions: one per batch in process, and how any of them goes on after an exit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from gpu_pregel.host.agents.records import Batch, Outcome, Task

if TYPE_CHECKING:
    from gpu_pregel.host.agents.executor import Executor

GRACE = 1.0
"""Seconds that a cancelled attempt has to end."""

T = TypeVar("T")


def run_batch(executor: Executor, batch: Batch, emit: Callable[[Outcome], None], timeout: float | None) -> None:
    """Compute a batch of an ``async`` function to its end, in this process."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        _run(executor, batch, emit, timeout)
        return
    with ThreadPoolExecutor(1) as pool:  # this thread has a running event loop: a notebook, say
        pool.submit(_run, executor, batch, emit, timeout).result()


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


def _run(executor: Executor, batch: Batch, emit: Callable[[Outcome], None], timeout: float | None) -> None:
    patience = None if timeout is None else timeout + GRACE
    ended: list[Outcome] = []

    async def work() -> None:
        places = asyncio.Semaphore(executor.max_concurrency)

        async def one(task: Task) -> None:
            async with places:
                ended.append(await executor.execute_async(task, batch, patience))
            emit(ended[-1])

        await asyncio.gather(*[one(Task(*fields)) for fields in batch.tasks])

    runner = asyncio.Runner()
    loop = runner.get_loop()
    grace: float | None = GRACE
    try:
        run_until_complete(loop, loop.create_task(work()), SystemExit)
        if not any(outcome.status == "failed" and outcome.result.kind == "timeout" for outcome in ended):
            grace = None
    except BaseException:
        emit = _ignore  # whoever is cancelled now has not failed
        raise
    finally:
        _end(loop, grace)
        runner.close()


def _ignore(outcome: Outcome) -> None:
    """Forget how an attempt ended."""


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

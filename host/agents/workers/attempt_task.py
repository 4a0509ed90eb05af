"""Attempts of ``async`` functions as tasks that cannot cancel each other, and event loops that they cannot stop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from contextlib import suppress
from contextvars import copy_context
from typing import Any, TypeVar

from gpu_pregel.host.agents.records import Task
from gpu_pregel.host.agents.workers.output import current_attempt

T = TypeVar("T")


class AttemptTask(asyncio.Task[T]):
    """An attempt on an event loop; only its own code may cancel it, and the program that runs it."""

    def __init__(self, coroutine: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop, task: Task) -> None:
        self._owners = None, current_attempt.get(), task
        context = copy_context()
        context.run(current_attempt.set, task)
        super().__init__(coroutine, loop=loop, context=context)

    def cancel(self, msg: Any = None) -> bool:
        """Cancel the attempt, unless the caller is another one."""
        caller = current_attempt.get()
        if not any(caller is owner for owner in self._owners):
            raise RuntimeError("a compute function cancelled the attempt of another vertex: cancel only own tasks")
        return super().cancel(msg)


def guard(loop: asyncio.AbstractEventLoop) -> None:
    """Let a loop refuse to be stopped by the attempts that it runs.

    An attempt that makes a run of its own, and with it the loop, may stop it.
    """
    stop, maker = loop.stop, current_attempt.get()

    def stop_unless_attempt() -> None:
        caller = current_attempt.get()
        if caller is not None and caller is not maker:
            raise RuntimeError("a compute function stopped its event loop, which other vertices use")
        stop()

    loop.stop = stop_unless_attempt  # type: ignore[method-assign]


def run_until_complete(loop: asyncio.AbstractEventLoop, future: asyncio.Future[T], *ends: type[BaseException]) -> T:
    """Run a loop until a future is done, even if other tasks raise one of ``ends`` or stop the loop.

    A task that raises SystemExit, for example, stops its loop. The tasks that await it continue when the loop does.
    """

    def stop(_: object) -> None:
        loop.stop()

    future.add_done_callback(stop)
    try:
        while not future.done():
            try:
                loop.run_forever()
            except ends:
                continue
    finally:
        future.remove_done_callback(stop)
    return future.result()


class PostponedTimeout:
    """The timeout of an attempt, which counts from its last heartbeat.

    Attributes
    ----------
    limit : asyncio.Timeout
    last : float
        When the attempt began or was last heard of, on the monotonic clock.
    """

    def __init__(self, seconds: float | None) -> None:
        self.limit = asyncio.timeout(seconds)
        self.last = time.monotonic()
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()

    def beat(self) -> None:
        """Count from now; any thread may call this."""
        self._count_from(time.monotonic())

    def extend(self, seconds: float) -> None:
        """Do not count the last few seconds; any thread may call this."""
        self._count_from(min(self.last + seconds, time.monotonic()))

    def _count_from(self, last: float) -> None:
        self.last = last
        if self._seconds is not None:
            self._loop.call_soon_threadsafe(self._postpone)

    def _postpone(self) -> None:
        left = self.last + (self._seconds or 0.0) - time.monotonic()
        with suppress(RuntimeError):  # the attempt has ended, or is being cancelled
            self.limit.reschedule(self._loop.time() + left)

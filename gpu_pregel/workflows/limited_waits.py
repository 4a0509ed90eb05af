"""Waiting for coroutines for a limited time, even for those that go on when they are cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from gpu_pregel.host.agents.workers.event_loops import GRACE


class TooLateError(Exception):
    """A coroutine took too long, and was cancelled; ``is_running`` tells whether it goes on nevertheless."""

    def __init__(self, is_running: bool) -> None:
        self.is_running = is_running
        super().__init__()


async def wait_at_most(pending: Awaitable[Any], seconds: float) -> Any:
    """Return the result of a coroutine; cancel it after some seconds, and leave it behind if it goes on.

    Raises
    ------
    TooLateError
    """
    task = asyncio.ensure_future(_outcome(pending))
    try:
        await asyncio.wait((task,), timeout=seconds)
    except asyncio.CancelledError:
        await _cancel(task)
        raise
    if not task.done():
        await _cancel(task)
        raise TooLateError(not task.done())
    result, error = task.result()
    if error is not None:
        raise error
    return result


def is_being_cancelled() -> bool:
    """Whether the running task has been cancelled, and not only something that it waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _outcome(pending: Awaitable[Any]) -> tuple[Any, BaseException | None]:
    """Return what a coroutine returns or raises: a task that raised SystemExit would stop the event loop."""
    try:
        return await pending, None
    except BaseException as error:
        return None, error


async def _cancel(task: asyncio.Future[Any]) -> None:
    task.cancel()
    await asyncio.wait((task,), timeout=GRACE)

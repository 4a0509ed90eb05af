"""The calls of users' functions that tasks yield, in this thread or on an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache
from typing import Any, NamedTuple

THREADS = 32
"""Maximum number of ordinary functions that run side by side."""


class Call(NamedTuple):
    """A call of a user's function, which a runner makes for a task."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    is_async: bool


Calls = Generator[Call, Any, None]
"""A task, which yields the calls that it needs and is sent their results."""


def make_calls(calls: Calls) -> None:
    """Make the calls that a task yields, of ordinary functions."""
    try:
        function, arguments, _ = next(calls)
        while True:
            try:
                result = function(*arguments)
            except Exception as error:
                function, arguments, _ = calls.throw(error)
            else:
                function, arguments, _ = calls.send(result)
    except StopIteration:
        return


async def make_calls_on_loop(calls: Calls) -> None:
    """Make the calls that a task yields: of coroutine functions on the running event loop, of others on threads."""
    try:
        call = next(calls)
        while True:
            try:
                result = await _call(call)
            except Exception as error:
                call = calls.throw(error)
            else:
                call = calls.send(result)
    except StopIteration:
        return


async def _call(call: Call) -> Any:
    if call.is_async:
        return await call.function(*call.arguments)
    loop, context = asyncio.get_running_loop(), copy_context()
    return await loop.run_in_executor(threads(), context.run, _call_on_thread, call)


def _call_on_thread(call: Call) -> Any:
    try:
        return call.function(*call.arguments)
    except StopIteration as error:  # which no future can have
        raise RuntimeError(f"StopIteration: {error}") from error


@cache
def threads() -> ThreadPoolExecutor:
    """Return the threads of this process for ordinary functions beside coroutine functions."""
    return ThreadPoolExecutor(THREADS, "node")

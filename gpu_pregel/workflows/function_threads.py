"""Ordinary functions on threads that may be left behind, because they take too long or their run was cancelled."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from gpu_pregel.host.agents.workers.thread_pool import call_on_thread

THREADS = 32
"""Maximum number of ordinary functions that run side by side."""
_places: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


class FunctionThread:
    """A call of a function on a thread that it has for itself, which does not keep the process alive.

    Parameters
    ----------
    function : callable
    loop : event loop, optional
        On which :meth:`wait` waits.

    Attributes
    ----------
    ended : Event
    """

    def __init__(self, function: Callable[[], Any], loop: asyncio.AbstractEventLoop | None = None) -> None:
        self.ended = threading.Event()
        self._loop = loop
        self._future = None if loop is None else loop.create_future()
        self._result: Any = None
        self._error: BaseException | None = None
        context = contextvars.copy_context()
        call_on_thread(partial(context.run, self._run, function))

    def _run(self, function: Callable[[], Any]) -> None:
        try:
            self._result = function()
        except BaseException as error:  # raised again by take()
            self._error = error
        self.ended.set()
        if self._loop is not None:
            try:
                self._loop.call_soon_threadsafe(self._notify)
            except RuntimeError:  # the loop has been closed
                return

    def _notify(self) -> None:
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    def take(self) -> Any:
        """Return the result, or raise what the function has raised."""
        if self._error is not None:
            raise self._error
        return self._result

    async def wait(self) -> Any:
        """Wait on the event loop, and take the outcome."""
        assert self._future is not None
        await self._future
        return self.take()


async def wait_for_function(function: Callable[[], Any]) -> Any:
    """Call a function on a thread, and wait on the running event loop until one of ``THREADS`` places is free.

    Each event loop has its own places: a function may wait for another loop, whose functions need some, too. A
    cancelled call gives up its place, although its thread goes on.
    """
    loop = asyncio.get_running_loop()
    places = _places.get(loop)
    if places is None:
        places = _places[loop] = asyncio.Semaphore(THREADS)
    async with places:
        return await FunctionThread(function, loop).wait()

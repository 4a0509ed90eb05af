"""Drives a run from an event loop: what may block it is called on a thread of the run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import nullcontext
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from threading import Lock, Thread
from time import monotonic
from typing import Any, TypeVar

from gpu_pregel.host.agents.agent_run import AgentRun
from gpu_pregel.host.agents.options import RunOptions
from gpu_pregel.host.agents.workers.garbage_collection import FEW, relaxed_gc
from gpu_pregel.host.superstep.master import Waits

T = TypeVar("T")
_OVER = object()
_SECONDS_ON_THREAD = 0.001
"""Seconds after which the thread returns to the event loop between two supersteps."""


class AsyncDriver:
    """Runs agents to the end on the running event loop.

    Attempts of ``async`` functions are tasks of the loop. Ordinary functions, stores, the functions of ``options`` that
    the master calls, and large supersteps run on one thread, which is made when it is first needed; for ordinary
    functions the thread also runs several small supersteps in succession. Cancellation ends waiting at once; an attempt
    of an ordinary function in this process cannot be ended, and its outcome is dropped.

    Parameters
    ----------
    options : RunOptions
    """

    def __init__(self, options: RunOptions) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread: _CallThread | None = None
        self._is_cancelled = self._is_abandoned = False
        self._advancing = Lock()
        """Held by the thread outside of attempts, until it has been abandoned."""
        functions = options.master, options.resolve, callable(options.on_failure), options.observers
        self._may_block = bool(options.store or options.workers or any(functions))

    async def run(
        self,
        start: Callable[[], AgentRun],
        is_small: bool,
        conclude: Callable[[AgentRun], T],
        stops: Callable[[AgentRun], bool] | None = None,
    ) -> T:
        """Start a run, step until it has ended or is held or ``stops`` says so, conclude and close it."""
        try:
            agents = await self._call(start, on_loop=is_small and not self._may_block)
            try:
                while await self._step(agents) and not (stops is not None and stops(agents)):
                    pass
                result = await self._call(conclude, agents, on_loop=self._on_loop(agents))
            finally:
                await self._finish(self._loop.create_task(agents._transport.cancel()))
                await self._call(agents.__exit__, on_loop=self._on_loop(agents))
        finally:
            self._leave_thread()
        self._raise_if_cancelled()
        return result

    async def _step(self, agents: AgentRun) -> bool:
        """Run a superstep; return whether another may follow."""
        if agents._requests_are_due():
            await self._take_requests(agents)
        if agents._policy.state.timers:
            seconds = await self._call(agents._wake_due, on_loop=self._on_loop(agents))
            if seconds is not None:
                await asyncio.sleep(seconds)
                return True
        superstep, transport, on_loop = agents._master.advance(), agents._transport, self._on_loop(agents)
        with nullcontext() if _is_small(agents) else relaxed_gc(beside_users_code=True):
            until = await self._advance(superstep, on_loop)
            while until is not _OVER:
                if not transport.blocks:
                    await transport.ready(until)
                elif on_loop:
                    superstep, until = await self._compute(self._compute_several, agents, superstep, until)
                    continue
                else:
                    await self._compute(transport.wait, until)
                until = await self._advance(superstep, on_loop)
            return agents.status == "running" or await self._take_requests(agents) or agents._is_waiting

    async def _advance(self, superstep: Waits[None], on_loop: bool) -> Any:
        """Continue a superstep until it waits; return until when, or ``_OVER``."""
        if on_loop:
            return next(superstep, _OVER)
        until = await self._call(next, superstep, _OVER, on_loop=False)
        self._raise_if_cancelled()
        return until

    async def _take_requests(self, agents: AgentRun) -> bool:
        """Take up what other programs ask of the run; return whether a superstep may follow."""
        if agents._requests is None:
            return False
        return await self._call(agents._take_requests, on_loop=False)

    def _raise_if_cancelled(self) -> None:
        """Raise a cancellation that came while a call had to be finished."""
        if self._is_cancelled:
            raise asyncio.CancelledError

    def _on_loop(self, agents: AgentRun) -> bool:
        """Whether a superstep is so short, besides its attempts, that it may run on the event loop."""
        return _is_small(agents) and not self._may_block

    async def _compute(self, function: Callable[..., T], *arguments: Any) -> T:
        """Compute ordinary functions on the thread, which is abandoned by a cancellation."""
        try:
            return await self._submit(function, *arguments)
        except asyncio.CancelledError:
            with self._advancing:
                self._is_abandoned = True
            self._leave_thread()
            raise

    def _compute_several(self, agents: AgentRun, superstep: Waits[None], until: Any) -> tuple[Waits[None], Any]:
        """Compute for a millisecond on the thread, as switching threads takes longer than a small superstep.

        Returns the running superstep, and until when it waits for more, or ``_OVER``.
        """
        transport, end = agents._transport, monotonic() + _SECONDS_ON_THREAD
        while True:
            transport.wait(until)
            with self._advancing:
                if self._is_abandoned:
                    return superstep, _OVER
                until = next(superstep, _OVER)
                if until is _OVER and monotonic() < end and self._may_follow(agents):
                    superstep = agents._master.advance()
                    until = next(superstep, _OVER)
                if until is _OVER or not transport.blocks:
                    return superstep, until

    def _may_follow(self, agents: AgentRun) -> bool:
        """Whether the next superstep may begin without the event loop."""
        return agents.status == "running" and self._on_loop(agents) and not agents._policy.state.timers

    async def _call(self, function: Callable[..., T], *arguments: Any, on_loop: bool) -> T:
        """Call a function on the event loop or on the thread."""
        return function(*arguments) if on_loop else await self._finish(self._submit(function, *arguments))

    def _submit(self, function: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
        if self._thread is None:
            self._thread = _CallThread()
        call = partial(copy_context().run, function, *arguments)
        return asyncio.wrap_future(self._thread.submit(call), loop=self._loop)

    def _leave_thread(self) -> None:
        """Let the thread end once it has nothing to do; the next call makes another one."""
        if self._thread is not None:
            self._thread.leave()
            self._thread = None

    async def _finish(self, future: asyncio.Future[T]) -> T:
        """Wait for a call that must not be cut short; a cancellation takes effect afterwards."""
        while not future.done():
            try:
                await asyncio.wait((future,))
            except asyncio.CancelledError:
                self._is_cancelled = True
        return future.result()


class _CallThread:
    """A thread that makes one call after the other; the process ends without waiting for it, as a call may hang."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        Thread(target=self._serve, name="arun", daemon=True).start()

    def submit(self, call: Callable[[], T]) -> Future[T]:
        """Make a call after those before it, unless it is cancelled by then."""
        future: Future[T] = Future()
        self._calls.put((future, call))
        return future

    def leave(self) -> None:
        """End the thread after its calls."""
        self._calls.put(None)

    def _serve(self) -> None:
        while (entry := self._calls.get()) is not None:
            future, call = entry
            if future.set_running_or_notify_cancel():
                try:
                    result = call()
                except BaseException as error:
                    future.set_exception(error)
                else:
                    future.set_result(result)
                    del result
            del entry, future, call  # so that a thread that waits keeps no run alive


def _is_small(agents: AgentRun) -> bool:
    """Whether a superstep takes little time besides its attempts."""
    return len(agents._policy.state.vertices) < FEW

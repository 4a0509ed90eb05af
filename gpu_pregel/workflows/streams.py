"""Streams: what happens in a run, item by item, while it runs."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextvars import copy_context
from typing import Any

from gpu_pregel.errors import ArgumentError, ArgumentTypeError
from gpu_pregel.host.agents.agent_run import AgentRun
from gpu_pregel.host.superstep.interrupts import stop_on_interrupt
from gpu_pregel.workflows.calls import closing_streams, finish_on_loop, open_run
from gpu_pregel.workflows.graph_runs import GraphRuns
from gpu_pregel.workflows.stream_reports import DEBUG, Reporter

MODES = ("values", "updates", "messages", "custom", "tasks", "checkpoints", "debug")
_LIVE = frozenset({"messages", "custom", "tasks", "debug"})
"""The modes whose items come while a superstep runs."""
_EMITTED = frozenset({"messages", "custom"})
"""The modes whose items come from subgraphs whether or not those are asked for."""
_OVER = object()


def check_modes(given: str | Sequence[str]) -> tuple[str, ...]:
    """Return the modes of a stream, checked."""
    if not isinstance(given, (str, Sequence)):
        raise ArgumentTypeError(f"stream_mode must be a mode or a sequence of modes, not {given!r:.200}")
    modes = (given,) if isinstance(given, str) else tuple(given)
    for mode in modes:
        if mode not in MODES:
            raise ArgumentError(f"stream_mode must be of {', '.join(map(repr, MODES))}, not {mode!r}")
    if not modes:
        raise ArgumentTypeError("stream_mode must name at least one mode")
    return modes


class Stream:
    """A call whose items are yielded.

    Parameters
    ----------
    runs : GraphRuns
    modes : tuple of str
    single : bool
        Whether items come without their mode.
    subgraphs : bool
        Whether items come with the namespace of their graph.
    """

    def __init__(self, runs: GraphRuns, modes: tuple[str, ...], *, single: bool, subgraphs: bool) -> None:
        self._runs, self._modes, self._single, self._subgraphs = runs, frozenset(modes), single, subgraphs
        self._is_live = subgraphs or bool(self._modes & _LIVE)

    def items(self, given: Any, config: Mapping[str, Any] | None) -> Iterator[Any]:
        """Run, and yield the items."""
        if self._is_live:
            yield from self._from_thread(given, config)
            return
        found: deque[Any] = deque()
        follower = StreamFollower(self, found.append)
        with follower.open(given, config) as agents:
            steps, may_continue = self._runs.steps(agents), True
            while may_continue:
                with stop_on_interrupt(agents.stop):
                    may_continue = next(steps, _OVER) is not _OVER
                while found:
                    yield found.popleft()
            follower.at_end(agents)
            yield from found
            self._runs.conclude(agents, config)

    def _from_thread(self, given: Any, config: Mapping[str, Any] | None) -> Iterator[Any]:
        """Run on a thread, so that items can be yielded while a superstep runs."""
        found: queue.SimpleQueue[Any] = queue.SimpleQueue()
        follower = StreamFollower(self, found.put)
        agents = follower.open(given, config)
        failure: list[BaseException] = []

        def run() -> None:
            try:
                with agents:
                    for _ in self._runs.steps(agents):
                        pass
                    follower.at_end(agents)
                    self._runs.conclude(agents, config)
            except BaseException as error:
                failure.append(error)
            finally:
                found.put(_OVER)

        thread = threading.Thread(target=copy_context().run, args=(run,), name="stream", daemon=True)
        thread.start()
        try:
            while (item := found.get()) is not _OVER:
                yield item
        except BaseException:  # the caller has closed the generator, or has been interrupted
            agents._master.stop()
            thread.join()
            raise
        thread.join()
        if failure:
            raise failure[0]

    async def items_on_loop(self, given: Any, config: Mapping[str, Any] | None) -> AsyncIterator[Any]:
        """Run on the running event loop, and yield the items."""
        loop, found = asyncio.get_running_loop(), asyncio.Queue[Any]()

        def put(item: Any) -> None:
            loop.call_soon_threadsafe(found.put_nowait, item)

        async def run() -> None:
            try:
                await finish_on_loop(self._runs, given, config, StreamFollower(self, put))
            finally:
                put(_OVER)

        task = asyncio.create_task(run())
        try:
            while (item := await found.get()) is not _OVER:
                yield item
        except BaseException:  # the caller has closed the generator, or has been cancelled
            task.cancel()
            closing_streams().add(task)
            await asyncio.wait((task,))
            _ = task.cancelled() or task.exception()  # which nobody waits for any more
            raise
        await task

    def pack(self, mode: str, item: Any, namespace: tuple[str, ...]) -> Any:
        """Return an item as the caller gets it."""
        packed = (item,) if self._single else (mode, item)
        if self._subgraphs:
            packed = (namespace, *packed)
        return packed[0] if len(packed) == 1 else packed


class StreamFollower:
    """Follows the run of a stream.

    Parameters
    ----------
    stream : Stream
    sink : callable
        Called with each item.
    """

    def __init__(self, stream: Stream, sink: Callable[[Any], None]) -> None:
        self._stream, self._sink = stream, sink
        self._reporter = Reporter(stream._runs, self._put)

    def open(self, given: Any, config: Mapping[str, Any] | None) -> AgentRun:
        """Open the run."""
        stream, reporter = self._stream, self._reporter
        nested = stream._modes if stream._subgraphs else stream._modes & _EMITTED
        observers = (reporter.observe,) if stream._is_live else ()
        agents = open_run(stream._runs, given, config, observers, nested)
        reporter.follow(agents)
        return agents

    def at_end(self, agents: AgentRun) -> None:
        """Report the questions of a run that is held."""
        self._reporter.at_end(agents)

    def _put(self, mode: str, make: Callable[[], Any], namespace: tuple[str, ...]) -> None:
        """Pass on an item if it is asked for."""
        modes, pack = self._stream._modes, self._stream.pack
        if mode in modes:
            self._sink(pack(mode, make(), namespace))
        if "debug" in modes and mode in DEBUG:
            self._sink(pack("debug", {"type": mode, "payload": make()}, namespace))

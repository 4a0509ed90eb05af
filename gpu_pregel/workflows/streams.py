"""Streams: what happens in a run, item by item, while it runs."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from gpu_pregel.errors import ArgumentError, ArgumentTypeError
from gpu_pregel.host.agents.agent_run import AgentRun
from gpu_pregel.host.agents.fold import AgentChange
from gpu_pregel.host.agents.observers.events import Event
from gpu_pregel.workflows.calls import finish_on_loop, open_run
from gpu_pregel.workflows.commands import START
from gpu_pregel.workflows.graph_runs import INTERRUPT, GraphRuns
from gpu_pregel.workflows.questions import open_questions
from gpu_pregel.workflows.task_messages import executed
from gpu_pregel.workflows.tasks import node_of

if TYPE_CHECKING:
    from gpu_pregel.host.superstep.journal import FoldedSuperstep

MODES = ("values", "updates", "messages", "custom", "tasks", "checkpoints", "debug")
_LIVE = frozenset({"messages", "custom", "tasks", "debug"})
"""The modes whose items come while a superstep runs."""
_OVER = object()
Sink = Callable[[Any], None]


def check_modes(given: str | Sequence[str]) -> tuple[str, ...]:
    """Return the modes of a stream, checked."""
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
        self._is_live = bool(self._modes & _LIVE)

    def items(self, given: Any, config: Mapping[str, Any] | None) -> Iterator[Any]:
        """Run, and yield the items."""
        if self._is_live:
            yield from self._from_thread(given, config)
            return
        found: deque[Any] = deque()
        reporter = Reporter(self, found.append)
        agents = reporter.open(given, config)
        with agents:
            for _ in self._runs.steps(agents):
                reporter.after_step(agents)
                while found:
                    yield found.popleft()
            reporter.at_end(agents)
            yield from found
            self._runs.conclude(agents, config)

    def _from_thread(self, given: Any, config: Mapping[str, Any] | None) -> Iterator[Any]:
        """Run on a thread, so that items can be yielded while a superstep runs."""
        found: queue.SimpleQueue[Any] = queue.SimpleQueue()
        reporter = Reporter(self, found.put)
        agents = reporter.open(given, config)
        failure: list[BaseException] = []

        def run() -> None:
            try:
                with agents:
                    for _ in self._runs.steps(agents):
                        reporter.after_step(agents)
                    reporter.at_end(agents)
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
        finally:  # the caller may have closed the generator
            agents.stop()
        thread.join()
        if failure:
            raise failure[0]

    async def items_on_loop(self, given: Any, config: Mapping[str, Any] | None) -> AsyncIterator[Any]:
        """Run on the running event loop, and yield the items."""
        loop, found = asyncio.get_running_loop(), asyncio.Queue[Any]()

        def put(item: Any) -> None:
            loop.call_soon_threadsafe(found.put_nowait, item)

        reporter = Reporter(self, put)

        async def run() -> None:
            try:
                await finish_on_loop(self._runs, given, config, reporter)
            finally:
                loop.call_soon_threadsafe(found.put_nowait, _OVER)

        task = asyncio.create_task(run())
        try:
            while (item := await found.get()) is not _OVER:
                yield item
        finally:
            if not task.done():
                task.cancel()
        await task

    def pack(self, mode: str, item: Any, namespace: tuple[str, ...] = ()) -> Any:
        """Return an item as the caller gets it."""
        packed = (item,) if self._single else (mode, item)
        if self._subgraphs:
            packed = (namespace, *packed)
        return packed[0] if len(packed) == 1 else packed


class Reporter:
    """Turns the events and commits of a run into the items of a stream."""

    def __init__(self, stream: Stream, sink: Sink) -> None:
        self._stream, self._sink = stream, sink
        self._runs, self._modes = stream._runs, stream._modes
        self._changes: list[AgentChange] = []

    def open(self, given: Any, config: Mapping[str, Any] | None) -> AgentRun:
        """Open the run."""
        agents = open_run(self._runs, given, config, (self.observe,) if self._stream._is_live else ())
        self._watch(agents)
        if START not in self._runs.waiting(agents):
            self._put("values", self._runs.values(agents._policy.state.aggregates, self._runs.graph.output))
        return agents

    def _watch(self, agents: AgentRun) -> None:
        """Note the change of each commit."""
        policy = agents._policy
        commit = policy.commit

        def noted(folded: FoldedSuperstep[AgentChange]) -> None:
            commit(folded)
            self._changes.append(folded.change)

        policy.commit = noted  # type: ignore[method-assign]

    def _put(self, mode: str, item: Any, namespace: tuple[str, ...] = ()) -> None:
        if mode in self._modes:
            self._sink(self._stream.pack(mode, item, namespace))
        elif "debug" in self._modes and mode in ("tasks", "checkpoints"):
            self._sink(self._stream.pack("debug", {"type": mode, "payload": item}))

    def observe(self, event: Event) -> None:
        """Report what an attempt emits, and that one begins or ends."""
        if event.kind == "emit":
            mode, data, *namespace = event.facts["payload"]
            self._put(mode, (data, _about(event)) if mode == "messages" else data, tuple(namespace))
        elif event.kind in ("attempt", "failure", "retry"):
            self._put("tasks", {"event": event.kind, **_about(event), **event.facts})

    def after_step(self, agents: AgentRun) -> None:
        """Report the commits since the last call."""
        runs, changes = self._runs, self._changes[:]
        self._changes.clear()
        for change in changes:
            tasks = list(executed(change.records))
            for vertex, writes in tasks:
                self._put("updates", {node_of(vertex): writes or None})
            if tasks or any(vertex == self._runs.graph.ids[START] for vertex, _ in change.records):
                self._put("values", runs.values(change.aggregates, runs.graph.output))
            if self._modes & {"checkpoints", "debug"}:
                self._put(
                    "checkpoints",
                    {
                        "superstep": agents._master.superstep - 1,
                        "values": runs.values(change.aggregates, runs.graph.output),
                        "next": list(dict.fromkeys(runs.waiting(agents))),
                    },
                )

    def at_end(self, agents: AgentRun) -> None:
        """Report the questions of a run that is held."""
        questions = tuple(one.interrupt for one in open_questions(agents._policy.ledger))
        if questions:
            self._put("updates", {INTERRUPT: questions})
            values = self._runs.values(agents._policy.state.aggregates, self._runs.graph.output)
            self._put("values", {**values, INTERRUPT: questions})


def _about(event: Event) -> dict[str, Any]:
    """Return the task of an event."""
    about = {"node": node_of(event.vertex), "task": event.vertex, "superstep": event.superstep}
    return about if event.attempt is None else {**about, "attempt": event.attempt}

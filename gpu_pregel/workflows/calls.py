"""Calls of a compiled graph: from the input and the config to a run, and from the run to the output."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Protocol
from weakref import WeakKeyDictionary, WeakSet

from gpu_pregel.errors import ArgumentError, ClaimedError, RunExistsError
from gpu_pregel.host.agents.agent_run import AgentRun
from gpu_pregel.host.agents.recovery import RunChangedError
from gpu_pregel.host.superstep.interrupts import stop_on_interrupt
from gpu_pregel.workflows.breakpoints import Breakpoints
from gpu_pregel.workflows.commands import END, START, Command, Send
from gpu_pregel.workflows.graph_runs import GraphRuns, configurable_of
from gpu_pregel.workflows.graph_spec import GraphSpec
from gpu_pregel.workflows.questions import answers_by_task, open_questions
from gpu_pregel.workflows.schemas import writes_of
from gpu_pregel.workflows.stored_threads import StoredThread
from gpu_pregel.workflows.task_messages import INPUT

Config = Mapping[str, Any] | None
NOTHING = nullcontext()


class RunFollower(Protocol):
    """Follows a run, for a stream."""

    def open(self, given: Any, config: Config) -> AgentRun:
        """Open the run."""

    def at_end(self, agents: AgentRun) -> None:
        """Take note of the end."""


def thread_of(runs: GraphRuns, config: Config) -> StoredThread:
    """Return the thread that a config names."""
    store = runs.options.store
    if store is None:
        raise ArgumentError("the graph was compiled without a store, which keeps threads: pass compile(store=...)")
    thread = {} if config is None else configurable_of(config)
    if thread.get("thread_id") is None:
        raise ArgumentError('a graph with a store needs config={"configurable": {"thread_id": "..."}}')
    return StoredThread(store, str(thread["thread_id"]))


def open_run(
    runs: GraphRuns,
    given: Any,
    config: Config,
    observers: Sequence[Any] = (),
    modes: frozenset[str] = frozenset(),
) -> AgentRun:
    """Return a run that is ready to step; bad input is refused before anything is stored."""
    answers, message = read_input(runs.graph, given)
    if runs.options.store is None:
        if runs.has_breakpoints:
            raise ArgumentError("interrupt_before and interrupt_after need a store: pass compile(store=...)")
        if message is None:
            raise ArgumentError("there is no run to continue: pass the input; compile(store=...) keeps threads")
        return runs.start(message, runs.run_options(config, runs.has_start(message), observers, modes), None)
    thread = thread_of(runs, config)
    checkpoint = configurable_of(config or {}).get("checkpoint_id")
    row = thread.current()
    if row is not None and message is not None:
        runs.check_input(thread)
    if checkpoint is not None:
        drop, empty = (None, None) if message is None else (runs.graph, runs.empty_state())
        row = thread.fork_from(str(checkpoint), drop, empty)
    while True:
        try:
            if row is None:
                if message is None:
                    raise ArgumentError(f"thread {thread.name!r} has no run to continue: pass the input")
                options = runs.run_options(config, runs.has_start(message), observers, modes)
                return runs.start(message, options, thread.name)
            if message is not None and thread.has_tasks(row, runs.graph):
                row = thread.fork(row, runs.graph)
            options = runs.run_options(config, row.head + 1 + (message is not None), observers, modes)
            agents = runs.reopen(row, options, since=row)
        except RunExistsError:  # another program has begun the thread meanwhile
            runs.check_input(thread)
            row = thread.current()
        except RunChangedError:
            if checkpoint is not None:
                raise thread.continued_error() from None
            row = thread.current()
        else:
            return _resume(runs, agents, answers, message, asks_again=checkpoint is not None)


def _resume(runs: GraphRuns, agents: AgentRun, answers: tuple[Any, ...], message: Any, *, asks_again: bool) -> AgentRun:
    """Pass the input or the answers to a run that has been taken up, or give its failed tasks new attempts."""
    try:
        if message is not None:
            agents.send(START, message)
        elif answers:
            if asks_again:  # as it has been forked from before its questions
                agents.step()
            for vertex, answer in answers_by_task(open_questions(agents._policy.ledger), answers[0]).items():
                agents.answer(vertex, answer)
        else:
            runs.continue_held(agents)
    except BaseException:
        agents.__exit__()
        raise
    return agents


def read_input(graph: GraphSpec, given: Any) -> tuple[tuple[Any, ...], Any]:
    """Return the answers to questions, as a tuple of one or none, and the message to the start or None."""
    if given is None:
        return (), None
    goto: list[Any] = []
    update, keys = given, graph.input.keys
    if isinstance(given, Command):
        targets, starts = given.targets, bool(given.targets) or given.update is not None
        if given.graph is not None:
            raise ArgumentError("a command to the parent graph can only be returned by a node of a subgraph")
        if given.resume is not None or not starts:
            if starts:
                raise ArgumentError(
                    "Command(resume=...) answers a question, without update and goto: let the node that asks return "
                    "them, or call update_state, which drops the question"
                )
            return (given.resume,), None
        for target in targets:
            name = target.node if isinstance(target, Send) else target
            if name not in graph.nodes and target != END:
                raise ArgumentError(f"goto names {name!r}, which is no node: {', '.join(map(repr, graph.nodes))}")
        goto = [one if isinstance(one, str) else (one.node, one.arg) for one in targets]
        update, keys = given.update or {}, graph.keys
    writes = writes_of(update, keys, "the input")
    if not isinstance(given, Command):
        graph.input.check_values(writes, "the input")
    if graph.check is not None:
        graph.check(dict(writes), False)
    return (), (INPUT, dict(writes), goto)


def finish(runs: GraphRuns, agents: AgentRun, config: Config) -> dict[str, Any]:
    """Run to the end, or to a breakpoint."""
    with agents:
        # Without a store, nothing would be kept by stopping at the next commit.
        with NOTHING if runs.options.store is None else stop_on_interrupt(agents.stop):
            if runs.has_breakpoints:
                for _ in runs.steps(agents):
                    pass
            else:
                while agents.step():
                    pass
        return runs.conclude(agents, config)


async def finish_on_loop(runs: GraphRuns, given: Any, config: Config, follower: RunFollower | None = None) -> Any:
    """Open a run, and run to the end on the running event loop; a follower may open it."""
    from gpu_pregel.host.agents.async_driver import AsyncDriver

    breakpoints: list[Breakpoints] = []

    def start() -> AgentRun:
        agents = open_run(runs, given, config) if follower is None else follower.open(given, config)
        breakpoints.append(Breakpoints(runs, agents))
        return agents

    def stops(agents: AgentRun) -> bool:
        return breakpoints[0].is_reached(agents)

    def conclude(agents: AgentRun) -> dict[str, Any]:
        if follower is not None:
            follower.at_end(agents)
        runs.pause(agents)
        return runs.conclude(agents, config)

    reaches = stops if runs.has_breakpoints else None
    try:
        return await AsyncDriver(runs.base).run(start, True, conclude, reaches)
    except ClaimedError:
        if breakpoints:
            raise
    # A stream that was left by break keeps its run until the event loop has closed it.
    if closing := list(closing_streams()):
        await asyncio.wait(closing)
    return await AsyncDriver(runs.base).run(start, True, conclude, reaches)


_CLOSING: WeakKeyDictionary[asyncio.AbstractEventLoop, WeakSet[asyncio.Task[Any]]] = WeakKeyDictionary()


def closing_streams() -> WeakSet[asyncio.Task[Any]]:
    """Return the runs of streams of the running event loop that were closed before their end."""
    return _CLOSING.setdefault(asyncio.get_running_loop(), WeakSet())

"""Graphs as nodes of other graphs: each task of such a node is a run of its own.

With a store, the run of a task in superstep 3 of run "thread" is named ``"thread > task @3"``, so that what it has done
is not done again when the task is tried again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gpu_pregel.errors import ArgumentError, UnknownRunError
from gpu_pregel.host.agents.agent_run import AgentRun
from gpu_pregel.host.agents.codec import decode
from gpu_pregel.host.agents.encoded_context import is_observed, recorded_answers, run_of
from gpu_pregel.host.agents.recovery import begin
from gpu_pregel.host.stores.leases import owner
from gpu_pregel.workflows.commands import Command, Send
from gpu_pregel.workflows.graph_runs import GraphRuns
from gpu_pregel.workflows.graph_spec import PARENT
from gpu_pregel.workflows.node_context import NodeContext
from gpu_pregel.workflows.questions import answers_by_task, open_questions, pack_nested
from gpu_pregel.workflows.stored_threads import nested_id
from gpu_pregel.workflows.stream_reports import DEBUG, Reporter
from gpu_pregel.workflows.task_messages import INPUT

if TYPE_CHECKING:
    from gpu_pregel.host.agents.options import RunOptions
    from gpu_pregel.workflows.compiled_graph import CompiledGraph

_AGAIN = object()


def as_node(app: CompiledGraph, name: str) -> Subgraph:
    """Return a compiled graph as the function of a node."""
    if app.options.store is not None:
        raise ArgumentError(f"node {name!r} is a graph with a store: compile it without, it uses the one of its parent")
    if app._runs.has_breakpoints:
        raise ArgumentError(
            f"node {name!r} is a graph with interrupt_before or interrupt_after, at which only a call can stop: "
            f"compile it without, and use interrupt() in its nodes"
        )
    if not app._runs.is_shared:
        raise ArgumentError(f"node {name!r} is a graph with carry='messages': compile it with carry='shared'")
    return (AsyncSubgraph if app.graph.is_async else Subgraph)(app)


class Subgraph:
    """A node that runs a graph.

    Its input are the values of the keys that the graph takes; its output are those that it returns.

    Parameters
    ----------
    app : CompiledGraph
        Compiled without a store: it uses the one of the graph that it is a node of.
    """

    def __init__(self, app: CompiledGraph) -> None:
        self.graph = app.graph
        self._runs = app._runs
        self.__name__ = app.name

    def __call__(self, state: Any, context: NodeContext) -> Any:
        """Run the graph."""
        nested = NestedRun(self._runs, context)
        with nested.open(state) as agents:
            while nested.goes_on(agents):
                agents.step()
            return nested.conclude(agents)


class AsyncSubgraph(Subgraph):
    """A node that runs a graph with ``async`` nodes."""

    async def __call__(self, state: Any, context: NodeContext) -> Any:
        """Run the graph on the running event loop."""
        from gpu_pregel.host.agents.async_driver import AsyncDriver

        nested = NestedRun(self._runs, context)
        end = _AGAIN
        while end is _AGAIN:  # until there is no recorded answer to its questions
            driver = AsyncDriver(nested.runs.base)
            stops = lambda agents: not nested.goes_on(agents)  # noqa: E731
            end = await driver.run(lambda: nested.open(state), True, nested.conclude_or_answer, stops)
        return end


class NestedRun:
    """The run of a task of a node that is a graph."""

    def __init__(self, runs: GraphRuns, context: NodeContext) -> None:
        self._context, self._store, self._config = context._context, context._store, context.config
        self.runs = runs.nested(self._store)
        self._namespace = f"{self._context.vertex_id}|{self._context.superstep}"
        self._modes = context._modes if is_observed(self._context) else frozenset()
        self._reporter = Reporter(self.runs, self._pass_on) if self._modes else None
        self._held: bytes | None = None
        """The run up to a question that has been answered, if no store keeps it."""
        self._answers: dict[str, Any] = {}
        for answers in recorded_answers(self._context):
            self._answers.update(answers)

    def open(self, state: Any) -> AgentRun:
        """Begin the run, or go on with the one of an earlier attempt."""
        runs = self.runs
        run_id = nested_id(run_of(self._context), self._context.vertex_id, self._context.superstep)
        if self._held is not None:
            options = self._options(0)
            return self._reported(AgentRun(options, begin(self._held, options)))
        if self._store is not None:
            try:
                row = self._store.run(run_id)
            except UnknownRunError:
                pass
            else:
                # An attempt in this process that has the run was abandoned, as tasks are tried one attempt at a time.
                agents = runs.reopen(row, self._options(row.head + 1), takeover=row.owner == owner())
                runs.continue_held(agents)
                return self._reported(agents)
        message: tuple[str, dict[str, Any], list[Any]] = (INPUT, self._input(state), [])
        return self._reported(runs.start(message, self._options(runs.has_start(message)), run_id))

    def _options(self, begun: int) -> RunOptions:
        observers = () if self._reporter is None else (self._reporter.observe,)
        return self.runs.run_options({"configurable": self._config}, begun, observers, self._modes)

    def _reported(self, agents: AgentRun) -> AgentRun:
        """Let the reporter follow a run, if there is one."""
        if self._reporter is not None:
            self._reporter.follow(agents)
        return agents

    def _input(self, state: Any) -> dict[str, Any]:
        """Return the values of the keys that the graph takes."""
        graph = self.runs.graph
        keys = [name for name in graph.input.keys if name not in graph.own]
        if isinstance(state, dict):
            return {name: state[name] for name in keys if name in state}
        return {name: getattr(state, name) for name in keys if hasattr(state, name)}

    def goes_on(self, agents: AgentRun) -> bool:
        """Whether to step on, perhaps because of a recorded answer to an open question or a new attempt at a task."""
        if decode(agents._policy.state.aggregates[PARENT]):
            return False
        ledger = agents._policy.ledger
        if agents.status in ("interrupted", "failed") and ledger is not None:
            return self._answer(agents) or bool(ledger.with_status("pending"))
        return agents.status == "running"

    def _answer(self, agents: AgentRun) -> bool:
        """Give the recorded answers to open questions; return whether there are any."""
        questions = open_questions(agents._policy.ledger)
        known = {
            one.interrupt.id: self._answers[one.interrupt.id] for one in questions if one.interrupt.id in self._answers
        }
        if known:
            for vertex, answer in answers_by_task(questions, known).items():
                agents.answer(vertex, answer)
        return bool(known)

    def conclude(self, agents: AgentRun) -> Any:
        """Return the output or a command to the parent, or ask the open questions."""
        command = decode(agents._policy.state.aggregates[PARENT])
        if command:
            update, goto = command[0]
            return Command(update, [one if isinstance(one, str) else Send(*one) for one in goto])
        if agents.status == "interrupted":
            self._context.interrupt(pack_nested(open_questions(agents._policy.ledger)))
        return self.runs.conclude(agents)

    def conclude_or_answer(self, agents: AgentRun) -> Any:
        """Conclude, unless recorded answers let the run go on."""
        if agents.status != "interrupted" or not self._answer(agents):
            return self.conclude(agents)
        if self._store is None:
            self._held = agents.checkpoint_data()
        return _AGAIN

    def _pass_on(self, mode: str, make: Callable[[], Any], namespace: tuple[str, ...]) -> None:
        """Emit an item of the streams of the graph that this one is a node of."""
        if mode in self._modes or ("debug" in self._modes and mode in DEBUG):
            self._context.emit((mode, make(), self._namespace, *namespace))

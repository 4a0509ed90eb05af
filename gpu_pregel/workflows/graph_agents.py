"""State graphs as compute functions of agents: each computation of a vertex is a run of the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gpu_pregel.errors import ArgumentError, ArgumentTypeError
from gpu_pregel.host.agents.agent_run import AgentRun
from gpu_pregel.host.agents.encoded_context import is_observed, run_of
from gpu_pregel.host.agents.recovery import begin
from gpu_pregel.workflows.calls import read_input
from gpu_pregel.workflows.graph_runs import GraphRuns
from gpu_pregel.workflows.questions import answers_by_task, open_questions
from gpu_pregel.workflows.stored_threads import nested_id
from gpu_pregel.workflows.stream_reports import Reporter

if TYPE_CHECKING:
    from gpu_pregel.host.agents.context import Context
    from gpu_pregel.host.agents.options import RunOptions

_AGAIN = object()
_EMITTED = frozenset({"messages", "custom"})
Read = Callable[[Any], Any]
Write = Callable[[Any, dict[str, Any]], Any]


def as_agent(runs: GraphRuns, read: Any, write: Any) -> GraphAgent:
    """Return a graph as a compute function."""
    for name, function in (("read", read), ("write", write)):
        if not callable(function):
            of = "(ctx)" if name == "read" else "(ctx, output)"
            raise ArgumentTypeError(f"{name} must be a function of {of}, not {function!r:.200}")
    if runs.options.store is not None:
        raise ArgumentError("a graph with a store cannot be an agent, which the store of its run keeps: omit store=")
    if runs.has_breakpoints:
        raise ArgumentError("a graph with interrupt_before or interrupt_after cannot be an agent: use interrupt()")
    if not runs.is_shared:
        raise ArgumentError("a graph with carry='messages' cannot be an agent: compile it with carry='shared'")
    return (AsyncGraphAgent if runs.graph.is_async else GraphAgent)(runs, runs.options.name, read, write)


class GraphAgent:
    """A compute function that runs a graph.

    Parameters
    ----------
    runs : GraphRuns
    name : str
    read : callable
    write : callable
    """

    def __init__(self, runs: GraphRuns, name: str, read: Read, write: Write) -> None:
        self._runs, self._read, self._write = runs, read, write
        self.__name__ = self.__qualname__ = name

    def __call__(self, ctx: Any) -> Any:
        """Compute a vertex."""
        task = AgentTask(self._runs.nested(None), ctx)
        with task.open(self._read(ctx)) as agents:
            output = _AGAIN
            while output is _AGAIN:
                while agents.step():
                    pass
                output = task.conclude(agents)
        return self._write(ctx, output)  # type: ignore[arg-type]


class AsyncGraphAgent(GraphAgent):
    """A compute function that runs a graph with ``async`` nodes."""

    async def __call__(self, ctx: Any) -> Any:
        """Compute a vertex on the running event loop."""
        from gpu_pregel.host.agents.async_driver import AsyncDriver

        task, given, output = AgentTask(self._runs.nested(None), ctx), self._read(ctx), _AGAIN
        while output is _AGAIN:
            output = await AsyncDriver(task.runs.base).run(lambda: task.open(given), True, task.conclude)
        return self._write(ctx, output)  # type: ignore[arg-type]


class AgentTask:
    """The run of a graph that computes a vertex.

    Parameters
    ----------
    runs : GraphRuns
    ctx : Context or AgentContext
    """

    def __init__(self, runs: GraphRuns, ctx: Any) -> None:
        self.runs = runs
        self._context: Context = getattr(ctx, "_agent", ctx)
        self._reporter = Reporter(runs, self._pass_on) if is_observed(self._context) else None
        self._held: bytes | None = None
        """The run up to a question that has been answered."""

    def open(self, given: Any) -> AgentRun:
        """Begin the run, or go on with it after an answer."""
        context, runs = self._context, self.runs
        if self._held is not None:
            options = self._options(0)
            return AgentRun(options, begin(self._held, options))
        _, message = read_input(runs.graph, given)
        if message is None:
            raise ArgumentError("read must return the input of the graph, not None or an answer")
        name = nested_id(run_of(context), repr(context.vertex_id), context.superstep)
        return runs.start(message, self._options(runs.has_start(message)), name)

    def _options(self, begun: int) -> RunOptions:
        config = {"configurable": {"vertex_id": self._context.vertex_id}}
        if self._reporter is None:
            return self.runs.run_options(config, begun)
        return self.runs.run_options(config, begun, (self._reporter.observe,), _EMITTED)

    def conclude(self, agents: AgentRun) -> Any:
        """Return the output, or let the run go on with the answer to its first open question."""
        questions = open_questions(agents._policy.ledger) if agents.status == "interrupted" else []
        if not questions:
            return self.runs.conclude(agents)
        first = questions[0].interrupt
        answer = self._context.interrupt(first.value)
        for vertex, one in answers_by_task(questions, {first.id: answer}).items():
            agents.answer(vertex, one)
        self._held = agents.checkpoint_data()
        return _AGAIN

    def _pass_on(self, mode: str, make: Callable[[], Any], namespace: tuple[str, ...]) -> None:
        """Emit what nodes emit."""
        if mode in _EMITTED:
            self._context.emit((mode, make(), *namespace))

"""``MessagePassingGraph``: a compiled graph whose state travels in the messages between its nodes; runs, results."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from gpu_pregel.errors import ArgumentError, EndNotReachedError
from gpu_pregel.host.agents.agent_run import AgentRun
from gpu_pregel.host.agents.codec import decode
from gpu_pregel.host.agents.combiners import SuperstepFold
from gpu_pregel.host.agents.options import RunOptions
from gpu_pregel.host.agents.records import Id
from gpu_pregel.host.agents.recovery import read_run
from gpu_pregel.host.agents.results import VertexFailure, VertexMapping, decode_failures
from gpu_pregel.host.agents.state import State
from gpu_pregel.host.agents.stored_options import describe_options
from gpu_pregel.host.agents.vertices import Vertex, encode_vertex
from gpu_pregel.host.superstep.aggregators import Aggregator
from gpu_pregel.workflows.calls import finish, finish_on_loop, open_run, thread_of
from gpu_pregel.workflows.commands import END, START, Interrupt
from gpu_pregel.workflows.compiled_graph import CompiledGraph, Config, Modes
from gpu_pregel.workflows.graph_runs import GraphRuns
from gpu_pregel.workflows.message_runner import (
    END_ID,
    ERROR,
    NODE,
    OK,
    RESULT,
    AsyncMessageRunner,
    MessageRunner,
    sort_messages,
)
from gpu_pregel.workflows.questions import open_questions
from gpu_pregel.workflows.schemas import writes_of
from gpu_pregel.workflows.state_messages import ACTIVATED, INITIAL_STATE, inject_initial_state
from gpu_pregel.workflows.stored_threads import StoredThread

_STATELESS = frozenset({"values", "checkpoints", "debug"})
"""The modes of streams that show a state that all nodes share."""


@dataclass(frozen=True)
class NodeResult:
    """What a node has done last.

    Attributes
    ----------
    status : str
        "ok", "error", or "idle" if it has not run.
    state : dict or None
        The state that it has sent on.
    error : str or None
        Type and text of the exception.
    traceback : str or None
    """

    status: str
    state: dict[str, Any] | None = None
    error: str | None = None
    traceback: str | None = None


@dataclass(frozen=True)
class GraphResult:
    """The result of a run whose state travels in messages.

    Attributes
    ----------
    state : dict or None
        What has reached the end, merged: all keys. None if nothing has.
    nodes : dict of str to NodeResult
        The start and the end among them.
    status : str
        "completed", "partial" (nodes failed), "interrupted" (a node waits for an answer), "stopped" (at a breakpoint)
        or another status of :class:`AgentResult`.
    interrupts : tuple of Interrupt
        The open questions.
    """

    state: dict[str, Any] | None
    nodes: dict[str, NodeResult]
    status: str
    interrupts: tuple[Interrupt, ...] = ()

    @property
    def failed(self) -> dict[str, NodeResult]:
        """The nodes that failed."""
        return {name: one for name, one in self.nodes.items() if one.status == ERROR}


class EndFold(SuperstepFold):
    """The value of a key in the state that the end keeps."""

    def fold(self, before: bytes, contributions: Sequence[tuple[Id, bytes]]) -> bytes:
        """Return the value that the end has contributed, if it has."""
        return next((data for vertex, data in contributions if vertex == END_ID), before)


class MessageRuns(GraphRuns):
    """The runs of a graph whose state travels in messages."""

    _on_failure = "continue"

    is_shared, _gives_results = False, False
    _runners = (MessageRunner, AsyncMessageRunner)

    def _make_aggregators(self, is_nested: bool) -> dict[str, Aggregator]:  # noqa: ARG002 - it cannot be nested
        return {name: Aggregator(EndFold(), initial=(), persistent=True) for name in self.graph.keys}

    @property
    def runner(self) -> MessageRunner:
        """The compute function."""
        assert isinstance(self._runner, MessageRunner)
        return self._runner

    def run_options(
        self,
        config: Config | None,
        begun: int,
        observers: Sequence[Any] = (),
        modes: frozenset[str] = frozenset(),
    ) -> RunOptions:
        """Return the options of a call: the start and the end take a superstep each."""
        options = super().run_options(config, begun, observers, modes)
        options.max_supersteps = begun + self.limit(config) + 1
        return options

    def vertices(self) -> list[Vertex]:
        """Return the vertices of the graph; the start is not activated."""
        graph = self.graph
        found = []
        for name in (START, *graph.nodes, END):
            value: dict[str, Any] = {NODE: name, RESULT: None}
            if name == START:
                value |= {ACTIVATED: False, INITIAL_STATE: None}
            edges = [*graph.edges.get(name, ()), *([END] if name in graph.ends else [])]
            edges += [target for target, joins in graph.joins.items() if any(name in one for one in joins)]
            found.append(Vertex(name, value, edges))
        return found

    def check_input(self, thread: StoredThread) -> None:
        """Refuse a second input."""
        raise ArgumentError(
            f"thread {thread.name!r} has its input, and the start runs in superstep 0 only: pass None to continue it, "
            f"or choose another thread_id"
        )

    def _initial_state(self, message: Any, options: RunOptions) -> State:
        if message[2]:
            raise ArgumentError(
                "a state that travels in messages enters at the start: pass the input without goto, or compile with "
                "carry='shared'"
            )
        vertices = inject_initial_state(self.vertices(), self.initial_state(message[1]))
        encoded = dict(encode_vertex(replace(one, halted=one.id != START)) for one in vertices)
        return State(encoded, {}, dict(self._aggregates), "compute", {}, describe_options(options))

    def initial_state(self, update: Mapping[str, Any]) -> dict[str, Any]:
        """Return the state that the start sends on: the input, applied to what keys are at first."""
        state = {name: fold.key.initial[0] for name, fold in self.graph.folds.items() if fold.key.initial}
        for name, value in update.items():
            state[name] = self.graph.folds[name].take_input((state[name],) if name in state else (), value)[0]
        return state

    def has_start(self, message: Any) -> bool:  # noqa: ARG002
        """Whether a new run begins with a superstep of the start: always."""
        return True

    def due(self, state: State, active: Iterable[Id]) -> list[str]:
        """Return the nodes that run in the next superstep, among the vertices that are active, in order."""
        found = []
        for encoded in sorted(active):
            name, messages = decode(encoded), map(decode, state.inbox.get(encoded, ()))
            joins = self.graph.joins.get(name)
            if joins is None or sort_messages(joins, decode(bytes(state.vertices[encoded].value)), messages)[0]:
                found.append(name)
        return [name for name in found if name != END]

    def with_results(self) -> MessageRuns:
        """Return the same runs, which conclude with the result of each node."""
        other = copy.copy(self)
        other._gives_results = True
        return other

    def conclude(self, agents: AgentRun, config: Config | None = None) -> Any:
        """Return what the end keeps, or raise if no state has reached it; with results, return them in any case."""
        output = super().conclude(agents, config)
        if self._gives_results:
            return self.result(agents)
        if agents.status in ("completed", "partial"):
            result = self.result(agents)
            if result.state is None:
                raise EndNotReachedError(result)
        return output

    def result(self, agents: AgentRun) -> GraphResult:
        """Return the result of a run."""
        run = agents.result()
        questions = tuple(one.interrupt for one in open_questions(agents._policy.ledger))
        return _result(run.vertices, run.failed, run.status, questions)


def _result(
    vertices: VertexMapping, failed: Mapping[Any, VertexFailure], status: str, questions: tuple[Interrupt, ...]
) -> GraphResult:
    """Return the result of a run, given its vertices and those that have failed without storing why."""
    nodes = {name: _node_result(vertex.value.get(RESULT)) for name, vertex in vertices.items()}
    for name, failure in failed.items():  # such as the death of a worker
        nodes[name] = NodeResult(ERROR, None, f"{failure.type}: {failure.text}", failure.traceback)
    if status == "completed" and any(one.status == ERROR for one in nodes.values()):
        status = "partial"
    return GraphResult(nodes[END].state, nodes, status, questions)


def _node_result(result: Any) -> NodeResult:
    if result is None:
        return NodeResult("idle")
    status, data = result
    if status == OK:
        return NodeResult(OK, data)
    return NodeResult(ERROR, None, f"{data['type']}: {data['text']}", data["traceback"])


class MessagePassingGraph(CompiledGraph):
    """A graph whose state travels in messages; made by ``StateGraph.compile(carry="messages")``.

    Each node is a vertex, and so are the start and the end. The start sends the initial state along its edges in
    superstep 0. A node that states have reached merges them, runs, stores the new state as its result and sends it
    along its edges. One that fails stores its error and sends nothing, and the run goes on. The end merges all states
    that reach it.

    A state that several paths have changed is merged as :func:`aggregate_state_messages` says: each update counts once.
    A message is ``{"state": state}``; from the first node on that sends to several others, messages also have the state
    there and the updates since, and grow with each node that they pass.

    There is no state that all nodes share: ``Send``, ``defer``, ``update_state`` and the streams "values",
    "checkpoints" and "debug" need ``carry="shared"``.

    Examples
    --------
    >>> from gpu_pregel.workflows import END, START, GraphState, StateGraph
    >>> graph = StateGraph(GraphState).add_node("think", lambda state: {"scratchpad": "a thought", "iteration": 1})
    >>> graph = graph.add_node("fail", lambda state: 1 / 0)
    >>> graph = graph.add_edge(START, "think").add_edge(START, "fail").add_edge(["think", "fail"], END)
    >>> app = graph.compile(carry="messages")
    >>> app.invoke({"iteration": 3})["iteration"]
    4
    >>> result = app.run({"iteration": 3})
    >>> result.status, result.nodes["fail"].error
    ('partial', 'ZeroDivisionError: division by zero')
    """

    _runs: MessageRuns

    def _make_runs(self) -> MessageRuns:
        return MessageRuns(self.graph, self.options)

    @property
    def compute(self) -> Callable[..., Any]:
        """The compute function, for ``gp.agents.run(inject_initial_state(graph.vertices(), state), graph.compute)``."""
        return self._runs.runner

    def vertices(self, given: Any = None) -> list[Vertex]:
        """Return the vertices: the start, the nodes and the end.

        Parameters
        ----------
        given : mapping or state, optional
            The input, with which the start is activated.
        """
        vertices = self._runs.vertices()
        if given is None:
            return vertices
        update = dict(writes_of(given, self.graph.input.keys, "the input"))
        return inject_initial_state(vertices, self._runs.initial_state(update))

    def run(self, given: Any, config: Config | None = None) -> GraphResult:
        """Run like :meth:`invoke`; return the result of each node too, whether or not a state has reached the end."""
        runs = self._runs.with_results()
        result: Any = finish(runs, open_run(runs, given, config), config)
        assert isinstance(result, GraphResult)
        return result

    async def arun(self, given: Any, config: Config | None = None) -> GraphResult:
        """Run like :meth:`run`, without blocking the event loop, on which ``async`` nodes run."""
        result: Any = await finish_on_loop(self._runs.with_results(), given, config)
        assert isinstance(result, GraphResult)
        return result

    def get_result(self, config: Config) -> GraphResult:
        """Return the result so far of a thread.

        Raises
        ------
        ArgumentError
            There is no store, or no such thread.
        """
        thread = thread_of(self._runs, config)
        row = thread.current()
        if row is None:
            raise ArgumentError(f"there is no thread {thread.name!r} in {thread.store.name}")
        state = read_run(thread.store, row.id).state
        questions = self.get_state(config).interrupts
        return _result(VertexMapping(state.vertices), decode_failures(state.failed), row.status, questions)

    def stream(
        self, given: Any, config: Config | None = None, *, stream_mode: Modes = "updates", subgraphs: bool = False
    ) -> Iterator[Any]:
        """Run, and yield what happens; see :meth:`CompiledGraph.stream` for the modes that need no shared state."""
        _check_stream(stream_mode)
        return super().stream(given, config, stream_mode=stream_mode, subgraphs=subgraphs)

    def astream(
        self, given: Any, config: Config | None = None, *, stream_mode: Modes = "updates", subgraphs: bool = False
    ) -> AsyncIterator[Any]:
        """Run like :meth:`stream`, without blocking the event loop."""
        _check_stream(stream_mode)
        return super().astream(given, config, stream_mode=stream_mode, subgraphs=subgraphs)

    def update_state(self, config: Config, values: Any, as_node: str | None = None) -> NoReturn:  # noqa: ARG002
        """Raise: there is no state that all nodes share."""
        raise ArgumentError(
            "update_state needs compile(carry='shared'): with carry='messages', the state is in messages on their way"
        )


def _check_stream(modes: Modes) -> None:
    for mode in (modes,) if isinstance(modes, str) else modes:
        if mode in _STATELESS:
            raise ArgumentError(
                f"stream_mode {mode!r} shows a state that all nodes share, and needs compile(carry='shared'): use "
                f"'updates', 'tasks', 'messages' or 'custom'"
            )

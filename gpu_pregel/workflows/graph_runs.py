"""The runs of a state graph: their options, how they start and go on, what they return."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, CodecError, NodesFailedError, SuperstepLimitError
from gpu_pregel.host.agents.agent_run import AgentRun
from gpu_pregel.host.agents.codec import encode
from gpu_pregel.host.agents.combiners import ContributionsError
from gpu_pregel.host.agents.ledger import Ledger
from gpu_pregel.host.agents.observers.timeline import Timeline
from gpu_pregel.host.agents.options import STORED, RunOptions
from gpu_pregel.host.agents.records import Id
from gpu_pregel.host.agents.recovery import begin_from_store, begin_state
from gpu_pregel.host.agents.retry import RetryPolicy
from gpu_pregel.host.agents.state import State
from gpu_pregel.host.agents.stored_options import describe_options
from gpu_pregel.host.agents.vertices import Vertex, encode_vertex
from gpu_pregel.host.arguments import check_integer
from gpu_pregel.host.superstep.aggregators import Aggregator, InternalAggregator
from gpu_pregel.host.superstep.master import ENDED
from gpu_pregel.workflows.async_node_runner import AsyncNodeRunner
from gpu_pregel.workflows.breakpoints import Breakpoints
from gpu_pregel.workflows.commands import END, START
from gpu_pregel.workflows.deferral import NOT_BUSY, TriggerFold
from gpu_pregel.workflows.function_threads import THREADS
from gpu_pregel.workflows.graph_spec import BUSY, LIMIT, PARENT, GraphSpec
from gpu_pregel.workflows.key_folds import FirstUpdate, packed_update
from gpu_pregel.workflows.node_cache import Cache
from gpu_pregel.workflows.node_runner import NodeRunner
from gpu_pregel.workflows.questions import open_questions
from gpu_pregel.workflows.schemas import Schema
from gpu_pregel.workflows.stored_threads import claims_explained
from gpu_pregel.workflows.task_messages import due_tasks, inputs_after
from gpu_pregel.workflows.tasks import node_of

if TYPE_CHECKING:
    from gpu_pregel.host.stores.rows import RunRow
    from gpu_pregel.host.stores.store import Store
    from gpu_pregel.workflows.stored_threads import StoredThread


from dataclasses import replace

from gpu_pregel.workflows.graph_spec import NodeSpec

ONCE = RetryPolicy(attempts=1)
INTERRUPT = "__interrupt__"
"""The key of the open questions in what a run returns."""


@dataclass(frozen=True)
class CompileOptions:
    """What was passed to ``StateGraph.compile``."""

    store: Store | None
    workers: int
    threads: int | None
    retry: RetryPolicy | None
    max_supersteps: int
    interrupt_before: frozenset[str]
    interrupt_after: frozenset[str]
    durability: str
    cache: Cache | None
    record: bool
    name: str


class CompileKeywords(TypedDict, total=False):
    """The parameters of ``StateGraph.compile``, for type checkers."""

    store: Store | None
    workers: int
    threads: int | None
    retry: RetryPolicy | None
    max_supersteps: int
    interrupt_before: Sequence[str] | str
    interrupt_after: Sequence[str] | str
    durability: str
    cache: Cache | None
    record: bool
    name: str


class GraphRuns:
    """The runs of a graph.

    Parameters
    ----------
    graph : GraphSpec
    options : CompileOptions
    is_nested : bool
        Whether the graph is a node of another one, to which its nodes may return commands.

    Attributes
    ----------
    base : RunOptions
        Those that all runs have in common.
    """

    is_shared = True
    """Whether all nodes share a state."""
    _runners: tuple[type[NodeRunner], type[NodeRunner]] = (NodeRunner, AsyncNodeRunner)
    _on_failure = "raise"

    def __init__(self, graph: GraphSpec, options: CompileOptions, *, is_nested: bool = False) -> None:
        self.graph, self.options, self.interrupt_after = graph, options, options.interrupt_after
        check_integer("max_supersteps", options.max_supersteps, 1, 1 << 62)
        if options.threads is not None:
            check_integer("threads", options.threads, 1, 1024)
            if options.workers:
                raise ArgumentError("nodes run on threads of this process or in workers: pass threads= or workers=")
        self._runner = self._make_runner()
        self.base = RunOptions(
            self._runner,
            workers=options.workers,
            threads=0 if options.workers or graph.is_async else options.threads or THREADS,
            aggregators=self._make_aggregators(is_nested),
            on_failure=self._on_failure,
            retry=_retry(graph, options.retry or ONCE),
            timeout=_timeout(graph),
            on_missing="create",
            store=options.store,
            durability=options.durability,
            max_supersteps=options.max_supersteps,
        )
        describe_options(self.base)  # once for all runs
        halted = encode_vertex(Vertex(START, halted=True))[1]
        self._begun = encode_vertex(Vertex(START, inputs_after(None, 1), halted=True))[1]
        self._vertices = dict.fromkeys(graph.ids.values(), halted)
        self._aggregates = {name: encode(one.initial) for name, one in self.base.aggregators_by_name.items()}
        self._nested: dict[int, GraphRuns] = {}

    def _make_runner(self) -> NodeRunner:
        """Return the compute function."""
        graph, options = self.graph, self.options
        store = options.store
        if options.workers and not (
            type(store).__reduce__ is not object.__reduce__ and any(one.is_graph for one in graph.nodes.values())
        ):
            store = None  # workers cannot open it, or do not need it
        return self._runners[graph.is_async](graph, {}, options.retry or ONCE, store, options.cache)

    def _make_aggregators(self, is_nested: bool) -> dict[str, Aggregator]:
        """Return the aggregators, which hold the state."""
        aggregators = {
            name: Aggregator(fold, initial=fold.key.initial, persistent=True) for name, fold in self.graph.folds.items()
        }
        if self.graph.has_deferred:
            aggregators[BUSY] = InternalAggregator(TriggerFold(self.graph), initial=NOT_BUSY, persistent=True)
        if is_nested:
            aggregators[PARENT] = Aggregator(FirstUpdate(), initial=(), persistent=True)
        return aggregators

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_nested": {}}  # workers make their own, and stores stay in their process

    def nested(self, store: Store | None) -> GraphRuns:
        """Return the runs of this graph as a node of another one, whose store they use."""
        found = self._nested.get(id(store))
        if found is None:
            options = copy.copy(self.options)
            object.__setattr__(options, "store", store)
            object.__setattr__(options, "workers", 0)
            found = self._nested[id(store)] = GraphRuns(self.graph, options, is_nested=True)
        return found

    def run_options(
        self,
        config: Mapping[str, Any] | None,
        begun: int,
        observers: Sequence[Any] = (),
        modes: frozenset[str] = frozenset(),
    ) -> RunOptions:
        """Return the options of a call whose first nodes run in superstep ``begun``.

        ``modes`` are those of a stream in which subgraphs are shown.
        """
        options = self.base.copy()
        configurable = {} if config is None else configurable_of(config)
        options.max_supersteps = begun + self.limit(config)
        if self.graph.needs_limit:
            configurable[LIMIT] = options.max_supersteps
        if configurable or modes:
            options.compute = self._runner.with_config(configurable, modes)
            options.functions_by_name = {"compute": options.compute}
        if self.options.record and self.options.store is not None:
            observers = [*observers, Timeline(self.options.store)]
        options.observer = options.observers = list(observers)
        return options

    def limit(self, config: Mapping[str, Any] | None) -> int:
        """Return how many supersteps a call may run."""
        if config is None or "recursion_limit" not in config:
            return self.options.max_supersteps
        return check_integer('config["recursion_limit"]', config["recursion_limit"], 1, 1 << 62)

    # Start and go on.

    def check_input(self, thread: StoredThread) -> None:
        """Refuse an input that a thread which has begun cannot take."""

    def start(self, message: Any, options: RunOptions, run_id: str | None) -> AgentRun:
        """Begin a run; where no router has to be asked, with the input applied and its first tasks waiting."""
        if self.graph.check is not None:
            self.graph.check(message[1], not message[2])
        try:
            state = self._initial_state(message, options)
        except CodecError as error:
            raise CodecError(f"the input: {error}") from None
        agents = AgentRun(options, begin_state(state, options, run_id=run_id, forced=False))
        if self.options.interrupt_before and self.is_before_breakpoint(agents):
            self.pause(agents)
        return agents

    def begin_empty(self, run_id: str) -> AgentRun:
        """Begin a run without an input."""
        options = self.run_options(None, 0)
        return AgentRun(options, begin_state(self.empty_state(), options, run_id=run_id, forced=False))

    def empty_state(self) -> State:
        """Return the state before the first input."""
        aggregates, options = dict(self._aggregates), describe_options(self.base)
        return State(self._vertices.copy(), {}, aggregates, "compute", {}, options)

    def with_finished(self, state: State, ledger: Ledger | None) -> Mapping[str, bytes]:
        """Return the aggregates with the updates of the tasks of a held superstep that have finished.

        Updates that cannot be folded are left out.
        """
        if ledger is None or not ledger.records or not self.is_shared:
            return state.aggregates
        made: dict[str, list[tuple[Id, bytes]]] = {}
        for vertex, record in sorted(ledger.records.items()):
            for name, data in record.aggregates:
                made.setdefault(name, []).append((vertex, data))
        aggregates = dict(state.aggregates)
        for name in made.keys() & self.graph.folds.keys():
            with suppress(ContributionsError):
                aggregates[name] = self.graph.folds[name].fold(aggregates[name], made[name])
        return aggregates

    def _initial_state(self, message: Any, options: RunOptions) -> State:
        graph, update = self.graph, message[1]
        aggregates, inbox, vertices = dict(self._aggregates), {}, self._vertices.copy()
        if self.has_start(message):
            vertices[graph.ids[START]] = encode_vertex(Vertex(START, message))[1]
        else:
            changed = {}
            for name, value in update.items():
                fold = graph.folds[name]
                aggregates[name] = packed_update(fold.take_input(fold.key.initial, value)[0], name)
                is_plain = not fold.key.initial or aggregates[name] == packed_update(value) != self._aggregates[name]
                if options.store is not None and not is_plain:
                    changed[name] = value
            start = encode_vertex(Vertex(START, (1, changed), halted=True))[1] if changed else self._begun
            vertices[graph.ids[START]] = start
            inbox = {target: [trigger] for target, trigger in graph.followers.get(START, ())}
            if graph.has_deferred:
                leads = encode((START, START in graph.busy_sources))
                aggregates[BUSY] = TriggerFold(graph).fold(aggregates[BUSY], [(graph.ids[START], leads)])
        return State(vertices, inbox, aggregates, "compute", {}, describe_options(options))

    def has_start(self, message: Any) -> bool:
        """Whether a run begins with a superstep of the start, as it has a node, or others choose the first nodes."""
        return bool(message[2]) or START in self.graph.branches or self.graph.start is not None

    def reopen(
        self, row: RunRow, options: RunOptions, *, takeover: bool = False, since: RunRow | None = None
    ) -> AgentRun:
        """Take up a run in the store; ``takeover`` and ``since`` as in :func:`begin_from_store`."""
        assert options.store is not None
        options.override = STORED  # the graph may have been mended since, and its keys be others
        with claims_explained():
            recovered = begin_from_store(options.store, row.id, options, takeover=takeover, since=since)
        return AgentRun(options, recovered)

    def continue_held(self, agents: AgentRun) -> None:
        """Give the failed tasks of a held superstep new attempts."""
        ledger = agents._policy.ledger
        if ledger is not None and ledger.with_status("failed"):
            agents.retry()

    # Step to the end, or to a breakpoint.

    @property
    def has_breakpoints(self) -> bool:
        """Whether runs stop before or after some nodes."""
        return bool(self.options.interrupt_before or self.options.interrupt_after)

    def steps(self, agents: AgentRun) -> Iterator[None]:
        """Step until the end or a breakpoint; yields after each superstep."""
        breakpoints = Breakpoints(self, agents)
        may_continue = agents.status not in ENDED
        while may_continue:
            may_continue = agents.step()
            yield
            if breakpoints.is_reached(agents):
                break
        self.pause(agents)

    def pause(self, agents: AgentRun) -> None:
        """End a run at a breakpoint; it can be continued."""
        if agents.status == "running":
            agents._master.end("stopped")

    def waiting(self, agents: AgentRun) -> Iterator[str]:
        """Yield the nodes of the next superstep."""
        return map(node_of, self.due(agents._policy.state, agents._policy._active))

    def due(self, state: State, active: Iterable[Id]) -> list[str]:
        """Return the tasks that run a node in the next superstep, among those that are active, in order."""
        return due_tasks(self.graph, state, active)

    def is_before_breakpoint(self, agents: AgentRun) -> bool:
        """Whether a node of the next superstep is one to stop before."""
        wanted = self.options.interrupt_before
        return bool(wanted) and agents._policy.ledger is None and not wanted.isdisjoint(self.waiting(agents))

    # Results.

    def conclude(self, agents: AgentRun, config: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the output of a run that has ended or is held, or raise the error that has its result."""
        status = agents.status
        if status == "failed":
            raise NodesFailedError(agents.result())
        if status == "max_supersteps":
            names = list(dict.fromkeys(self.waiting(agents))) or [END]
            raise SuperstepLimitError(self.limit(config), agents.result(), names)
        if agents._master.is_stopping:
            raise KeyboardInterrupt
        policy = agents._policy
        output = self.values(self.with_finished(policy.state, policy.ledger), self.graph.output)
        if status == "interrupted":
            questions = [one.interrupt for one in open_questions(policy.ledger)]
            if self.options.store is None:
                raise ArgumentError(
                    f"node {questions[0].node!r} asks a question, but the graph was compiled without a store, which "
                    f"keeps the run until there is an answer: pass compile(store=...)"
                )
            output[INTERRUPT] = questions
        return output

    def values(self, aggregates: Mapping[str, bytes], schema: Schema) -> dict[str, Any]:
        """Return the values of the keys of a schema that have one."""
        return self._runner.state.read(aggregates, schema.keys)

    def all_values(self, aggregates: Mapping[str, bytes]) -> dict[str, Any]:
        """Return the values of all keys that have one."""
        return self._runner.state.read(aggregates, self.graph.keys)


def _retry(graph: GraphSpec, default: RetryPolicy) -> Any:
    """Return the retry policy of a run, or of each of its tasks if they differ."""
    if all(node.retry is None and node.error_handler is None for node in graph.computed.values()):
        return default
    return NodeRetry(graph.computed, default)


def _timeout(graph: GraphSpec) -> Any:
    """Return the timeout of each task, if there are any."""
    return NodeTimeout(graph.computed) if any(node.timeout is not None for node in graph.computed.values()) else None


def configurable_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``config["configurable"]``, checked."""
    if not isinstance(config, Mapping):
        raise ArgumentTypeError(
            f'config must be a dict like {{"configurable": {{"thread_id": "1"}}}}, not {config!r:.200}'
        )
    configurable = config.get("configurable") or {}
    if not isinstance(configurable, Mapping):
        raise ArgumentTypeError(f'config["configurable"] must be a dict, not {configurable!r:.200}')
    return dict(configurable)


class NodeRetry:
    """The retry policy of a task.

    A node with an error handler has one attempt more than its policy allows, in which the handler is called if the last
    one has ended with a timeout or the death of its worker.
    """

    def __init__(self, nodes: Mapping[str, NodeSpec], default: RetryPolicy) -> None:
        self._default = default
        self._policies = {name: self._policy(node) for name, node in nodes.items()}

    def _policy(self, node: NodeSpec) -> RetryPolicy:
        retry = node.retry or self._default
        return retry if node.error_handler is None else replace(retry, attempts=retry.attempts + 1)

    def __call__(self, vertex: str) -> RetryPolicy:
        """Return the policy of a task."""
        return self._policies.get(node_of(vertex), self._default)


class NodeTimeout:
    """The maximum seconds of an attempt of a task, or None."""

    def __init__(self, nodes: Mapping[str, NodeSpec]) -> None:
        self._seconds = {name: node.timeout for name, node in nodes.items()}

    def __call__(self, vertex: str) -> float | None:
        """Return the timeout of a task."""
        return self._seconds.get(node_of(vertex))

"""Opens and finishes the runs of a state graph: new ones, and those of threads in a store."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpu_pregel.errors import AgentsFailedError, ArgumentError, ArgumentTypeError, CodecError, SuperstepLimitError
from gpu_pregel.host.agents.agent_run import AgentRun
from gpu_pregel.host.agents.codec import decode, encode
from gpu_pregel.host.agents.options import RunOptions
from gpu_pregel.host.agents.recovery import begin_from_store, begin_state
from gpu_pregel.host.agents.retry import RetryPolicy
from gpu_pregel.host.agents.state import State
from gpu_pregel.host.agents.stored_options import describe_options
from gpu_pregel.host.agents.vertices import Vertex, encode_vertex
from gpu_pregel.host.arguments import check_integer
from gpu_pregel.host.superstep.aggregators import Aggregator
from gpu_pregel.host.superstep.interrupts import stop_on_interrupt
from gpu_pregel.workflows.commands import START, Command, Interrupt, Send
from gpu_pregel.workflows.graph_spec import BUSY, GraphSpec
from gpu_pregel.workflows.node_runner import INPUT, THREADS, AsyncNodeRunner, NodeRunner
from gpu_pregel.workflows.schemas import Schema, writes_of
from gpu_pregel.workflows.stored_threads import StoredThread
from gpu_pregel.workflows.tasks import node_of

if TYPE_CHECKING:
    from gpu_pregel.host.stores.store import Store
    from gpu_pregel.workflows.streams import Reporter

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
    name: str


class GraphRuns:
    """The runs of a graph.

    Parameters
    ----------
    graph : GraphSpec
    options : CompileOptions
    """

    def __init__(self, graph: GraphSpec, options: CompileOptions) -> None:
        self.graph, self.options = graph, options
        check_integer("max_supersteps", options.max_supersteps, 1, 1 << 62)
        self._runner = (AsyncNodeRunner if graph.is_async else NodeRunner)(graph, {}, options.retry or ONCE)
        aggregators = {
            name: Aggregator(channel, initial=channel.key.initial, persistent=True)
            for name, channel in graph.channels.items()
        }
        if graph.has_deferred:
            aggregators[BUSY] = Aggregator("sum", initial=0)
        self._base = RunOptions(
            self._runner,
            workers=options.workers,
            threads=0 if options.workers or graph.is_async else options.threads or THREADS,
            aggregators=aggregators,
            retry=options.retry or ONCE,
            on_missing="create",
            store=options.store,
            durability=options.durability,
            max_supersteps=options.max_supersteps,
        )
        describe_options(self._base)  # once for all runs
        halted = encode_vertex(Vertex(START, halted=True))[1]
        self._vertices = dict.fromkeys(graph.ids.values(), halted)
        self._aggregates = {name: encode(one.initial) for name, one in self._base.aggregators_by_name.items()}

    # Options.

    def run_options(self, config: Mapping[str, Any] | None, begun: int, observers: Sequence[Any] = ()) -> RunOptions:
        """Return the options of a call that starts at superstep ``begun``."""
        options = copy.copy(self._base)
        limit, configurable = self.options.max_supersteps, {}
        if config is not None:
            configurable = configurable_of(config)
            if "recursion_limit" in config:
                limit = check_integer('config["recursion_limit"]', config["recursion_limit"], 1, 1 << 62)
        if configurable:
            options.functions_by_name = {"compute": self._runner.with_config(configurable)}
        options.max_supersteps = begun + limit + 1  # that of the start
        options.observers = list(observers)
        return options

    def thread(self, config: Mapping[str, Any] | None) -> StoredThread:
        """Return the thread that a config names."""
        store = self.options.store
        if store is None:
            raise ArgumentError("the graph was compiled without a store, which keeps threads: pass compile(store=...)")
        configurable = {} if config is None else configurable_of(config)
        thread = configurable.get("thread_id")
        if thread is None:
            raise ArgumentError('a graph with a store needs config={"configurable": {"thread_id": "..."}}')
        return StoredThread(store, str(thread))

    # Open.

    def open(self, given: Any, config: Mapping[str, Any] | None, observers: Sequence[Any] = ()) -> AgentRun:
        """Return a run that is ready to step; bad input is refused before anything is stored."""
        answers, message = self._read_input(given)
        if self.options.store is None:
            if message is None:
                raise ArgumentError(
                    "there is no run to continue: pass the input, or compile(store=...) to continue threads"
                )
            return self._start(message, self.run_options(config, 0, observers), None)
        thread = self.thread(config)
        checkpoint = configurable_of(config or {}).get("checkpoint_id")
        if checkpoint is not None:
            thread.fork_from(str(checkpoint), keep_tasks=message is None)
        row = thread.current()
        if row is None:
            if message is None:
                raise ArgumentError(f"thread {thread.name!r} has no run to continue: pass the input")
            return self._start(message, self.run_options(config, 0, observers), thread.name)
        if message is not None and thread.has_tasks(row):
            row = thread.drop_tasks(row)
        options = self.run_options(config, row.head + 1, observers)
        options.override = ("aggregators",)  # keys may have been added or removed since
        agents = AgentRun(options, begin_from_store(thread.store, row.id, options, takeover=False))
        try:
            if message is not None:
                agents.send(START, message)
            else:
                self._continue(agents, answers)
        except BaseException:
            agents.__exit__()
            raise
        return agents

    def _start(self, message: Any, options: RunOptions, run_id: str | None) -> AgentRun:
        """Begin a run; where no router has to be asked, with the input applied and its first tasks waiting."""
        try:
            state = self._initial_state(message, options)
        except CodecError as error:
            raise CodecError(f"the input: {error}") from None
        return AgentRun(options, begin_state(state, options, run_id=run_id))

    def _initial_state(self, message: Any, options: RunOptions) -> State:
        graph, (_, update, goto) = self.graph, message
        aggregates, inbox, vertices = dict(self._aggregates), {}, self._vertices.copy()
        if goto or START in graph.branches:
            vertices[graph.ids[START]] = encode_vertex(Vertex(START, message))[1]
        else:
            for name, value in update.items():
                channel = graph.channels[name]
                aggregates[name] = encode(channel.take(channel.key.initial, value), name=name)
            inbox = {target: [trigger] for target, trigger in graph.followers[START]}
            if graph.has_deferred:
                aggregates[BUSY] = encode(graph.busy_followers[START])
        return State(vertices, inbox, aggregates, "compute", {}, describe_options(options))

    def _read_input(self, given: Any) -> tuple[tuple[Any, ...], Any]:
        """Return the answers to questions, as a tuple of one or none, and the message to the start or None."""
        if given is None:
            return (), None
        goto: list[Any] = []
        update = given
        if isinstance(given, Command):
            if given.graph is not None:
                raise ArgumentError("a command to the parent graph can only be returned by a node of a subgraph")
            targets = given.targets
            if given.resume is not None or not (targets or given.update is not None):
                if targets or given.update is not None:
                    raise ArgumentError("Command(resume=...) answers a question: call update_state for update and goto")
                return (given.resume,), None
            for target in targets:
                name = target.node if isinstance(target, Send) else target
                if name not in self.graph.nodes:
                    raise ArgumentError(f"goto names {name!r}, which is no node: {', '.join(map(repr, self.graph.nodes))}")
            goto = [target if isinstance(target, str) else (target.node, target.arg) for target in targets]
            update = given.update or {}
        keys = self.graph.input.keys if not goto else self.graph.keys
        return (), (INPUT, dict(writes_of(update, keys, "the input")), goto)

    def _continue(self, agents: AgentRun, answers: tuple[Any, ...]) -> None:
        """Answer the questions of a held run, or give its failed tasks new attempts."""
        ledger = agents._policy.ledger
        if answers:
            self._answer(agents, answers[0])
        elif ledger is not None and ledger.with_status("failed"):
            agents.retry()

    def _answer(self, agents: AgentRun, answer: Any) -> None:
        questions = open_questions(agents)
        if not questions:
            raise ArgumentError("the thread waits for no answer: its run has no open question")
        by_id = {question.id: vertex for vertex, question in questions.items()}
        given = answer if isinstance(answer, dict) and answer and answer.keys() <= by_id.keys() else None
        if given is None:
            if len(questions) > 1:
                raise ArgumentError(
                    f"several questions are open: pass Command(resume={{id: answer}}) with some of the ids "
                    f"{', '.join(map(repr, by_id))}"
                )
            given = {next(iter(by_id)): answer}
        encoded = {name: encode(one, name="the answer") for name, one in given.items()}
        for name in encoded:  # all of them can be stored
            agents.answer(by_id[name], given[name])

    # Run and finish.

    def finish(self, agents: AgentRun) -> dict[str, Any]:
        """Run to the end."""
        with agents:
            with stop_on_interrupt(agents.stop):
                if self._has_breakpoints:
                    for _ in self.steps(agents):
                        pass
                else:
                    while agents.step():
                        pass
            return self.conclude(agents)

    @property
    def _has_breakpoints(self) -> bool:
        return bool(self.options.interrupt_before or self.options.interrupt_after)

    def steps(self, agents: AgentRun) -> Iterator[None]:
        """Step until the end or a breakpoint; yields after each superstep."""
        may_continue, is_first = True, True
        while may_continue and not (self._is_before_breakpoint(agents) and not is_first):
            before = set(self.waiting(agents)) if self.options.interrupt_after else set()
            may_continue, is_first = agents.step(), False
            yield
            if not before.isdisjoint(self.options.interrupt_after) and agents._policy.ledger is None:
                break
        self.pause(agents)

    def pause(self, agents: AgentRun) -> None:
        """End a run at a breakpoint; it can be continued."""
        if agents.status == "running":
            agents._master.end("stopped")

    def waiting(self, agents: AgentRun) -> Any:
        """Return the nodes of the next superstep."""
        return (node_of(decode(vertex)) for vertex in sorted(agents._policy._active))

    def _is_before_breakpoint(self, agents: AgentRun) -> bool:
        """Whether a node of the next superstep is one to stop before."""
        wanted = self.options.interrupt_before
        return bool(wanted) and agents._policy.ledger is None and not wanted.isdisjoint(self.waiting(agents))

    def conclude(self, agents: AgentRun) -> dict[str, Any]:
        """Return the output of a run that has ended or is held, or raise the error that has its result."""
        status = agents.status
        if status == "failed":
            raise AgentsFailedError(agents.result())
        if status == "max_supersteps":
            raise SuperstepLimitError(self.options.max_supersteps, agents.result())
        if agents._master.is_stopping:
            raise KeyboardInterrupt
        output = self.values(agents._policy.state.aggregates, self.graph.output)
        if status == "interrupted":
            output[INTERRUPT] = list(open_questions(agents).values())
        return output

    def values(self, aggregates: Mapping[str, bytes], schema: Schema) -> dict[str, Any]:
        """Return the values of the keys of a schema that have one."""
        return {name: value[0] for name in schema.keys if (value := decode(aggregates[name]))}

    async def finish_on_loop(
        self, given: Any, config: Mapping[str, Any] | None, reporter: Reporter | None = None
    ) -> dict[str, Any]:
        """Open a run, and run to the end on the running event loop; a reporter is told of each superstep."""
        from gpu_pregel.host.agents.async_driver import AsyncDriver

        wanted = self.options.interrupt_after
        waiting: set[str] = set()

        def start() -> AgentRun:
            agents = self.open(given, config) if reporter is None else reporter.open(given, config)
            waiting.update(self.waiting(agents) if wanted else ())
            return agents

        def stops(agents: AgentRun) -> bool:
            if reporter is not None:
                reporter.after_step(agents)
            is_after = not waiting.isdisjoint(wanted) and agents._policy.ledger is None
            waiting.clear()
            waiting.update(self.waiting(agents) if wanted else ())
            return is_after or self._is_before_breakpoint(agents)

        def conclude(agents: AgentRun) -> dict[str, Any]:
            if reporter is not None:
                reporter.after_step(agents)
                reporter.at_end(agents)
            self.pause(agents)
            return self.conclude(agents)

        has_stops = reporter is not None or self._has_breakpoints
        return await AsyncDriver(self._base).run(start, True, conclude, stops if has_stops else None)


def open_questions(agents: AgentRun) -> dict[Any, Interrupt]:
    """Return the open question of each task that waits for an answer."""
    ledger = agents._policy.ledger
    found: dict[Any, Interrupt] = {}
    if ledger is not None:
        for vertex, payload in ledger.interrupts().items():
            name, entry = decode(vertex), ledger.entry(vertex)
            found[name] = Interrupt(decode(payload), question_id(ledger.step, name, entry.asked), node_of(name))
    return found


def question_id(superstep: int, vertex: Any, number: int) -> str:
    """Return the id of the k-th question of a task."""
    return f"{superstep}:{vertex}:{number}"


def configurable_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``config["configurable"]``, checked."""
    if not isinstance(config, Mapping):
        raise ArgumentTypeError(f'config must be a dict like {{"configurable": {{"thread_id": "1"}}}}, not {config!r:.200}')
    configurable = config.get("configurable") or {}
    if not isinstance(configurable, Mapping):
        raise ArgumentTypeError(f'config["configurable"] must be a dict, not {configurable!r:.200}')
    return dict(configurable)

"""What streams tell of a run, and of the runs of its subgraphs: which items its events and commits are."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from gpu_pregel.host.agents.agent_run import AgentRun
from gpu_pregel.host.agents.fold import AgentChange
from gpu_pregel.host.agents.observers.events import Event
from gpu_pregel.host.agents.records import Id
from gpu_pregel.workflows.commands import START, Interrupt
from gpu_pregel.workflows.graph_runs import INTERRUPT, GraphRuns
from gpu_pregel.workflows.questions import open_questions
from gpu_pregel.workflows.task_messages import executed
from gpu_pregel.workflows.tasks import node_of

if TYPE_CHECKING:
    from gpu_pregel.host.agents.ledger import Ledger
    from gpu_pregel.host.superstep.journal import FoldedSuperstep, Journal
    from gpu_pregel.host.superstep.master import Waits

DEBUG = frozenset({"tasks", "checkpoints"})
"""The modes whose items are those of the mode "debug"."""
Put = Callable[[str, Callable[[], Any], tuple[str, ...]], None]
"""Called with a mode, a function that makes the item, and the namespace of the subgraph that it comes from."""


class Reporter:
    """Turns the events and commits of a run into items.

    Parameters
    ----------
    runs : GraphRuns
    put : callable
    """

    def __init__(self, runs: GraphRuns, put: Put) -> None:
        self._runs, self._put = runs, put
        self._told: set[Id] = set()
        """The tasks of the superstep that is held whose updates have been reported."""
        self._ran: set[str] = set()
        """The nodes of the superstep that was committed last."""

    def follow(self, agents: AgentRun) -> None:
        """Report the state before the first superstep, and each start and commit of a superstep."""
        policy, runs = agents._policy, self._runs
        commit, execute = policy.commit, policy.execute

        def reported_commit(folded: FoldedSuperstep[AgentChange]) -> None:
            commit(folded)
            self._on_commit(agents, folded)

        def reported_execute(superstep: int, order: Ledger, limit: int, journal: Journal | None) -> Waits[Ledger]:
            self._put_starts(agents, superstep, order)
            return execute(superstep, order, limit, journal)

        policy.commit = reported_commit  # type: ignore[method-assign]
        policy.execute = reported_execute  # type: ignore[method-assign]
        if START not in runs.waiting(agents):
            self._put("values", lambda: runs.values(policy.state.aggregates, runs.graph.output), ())
        self._put_finished(policy.ledger, {"__metadata__": {"cached": True}})

    def _put_starts(self, agents: AgentRun, superstep: int, order: Ledger) -> None:
        """Report the tasks that are about to be computed."""
        policy = agents._policy
        due = order.with_status("pending") if order.has_begun else order.vertices
        for vertex in self._runs.due(policy.state, due):
            self._put("tasks", partial(_start, vertex, superstep), ())

    def _put_finished(self, ledger: Ledger | None, more: dict[str, Any]) -> None:
        """Report the updates of tasks of a held superstep that have finished, unless they have been reported."""
        records = [] if ledger is None else sorted(ledger.records.items())
        records = [one for one in records if one[0] not in self._told]
        self._told.update(vertex for vertex, _ in records)
        for vertex, writes in executed(records):
            self._put("updates", partial(dict, [(node_of(vertex), writes or None)], **more), ())

    def _on_commit(self, agents: AgentRun, folded: FoldedSuperstep[AgentChange]) -> None:
        """Report a superstep."""
        runs, change = self._runs, folded.change
        values = partial(runs.values, change.aggregates, runs.graph.output)
        tasks = list(executed(change.records))
        for vertex, writes in executed([one for one in change.records if one[0] not in self._told]):
            self._put("updates", partial(dict, [(node_of(vertex), writes or None)]), ())
        self._told.clear()
        self._ran = {node_of(vertex) for vertex, _ in tasks}
        if tasks or any(vertex == runs.graph.ids[START] for vertex, _ in change.records):
            self._put("values", values, ())
        self._put(
            "checkpoints",
            lambda: {
                "superstep": folded.superstep,
                "values": values(),
                "next": list(dict.fromkeys(runs.waiting(agents))),
            },
            (),
        )

    def observe(self, event: Event) -> None:
        """Report what an attempt emits, and how one ends."""
        if event.kind == "emit":
            mode, data, *namespace = event.facts["payload"]
            if mode == "messages" and not namespace:
                data = (data, _about(event))
            self._put(mode, lambda: data, tuple(namespace))
        elif event.kind in ("attempt", "failure", "retry"):
            self._put("tasks", lambda: {"event": event.kind, **_about(event), **event.facts}, ())

    def at_end(self, agents: AgentRun) -> None:
        """Report why a run does not go on: a breakpoint, or what tasks ask, with what others have done."""
        runs, policy = self._runs, agents._policy
        state, ledger = policy.state, policy.ledger
        self._put_finished(ledger, {})
        asked: dict[str, list[Interrupt]] = {}
        for one in open_questions(ledger):
            asked.setdefault(one.vertex, []).append(one.interrupt)
        for questions in map(tuple, asked.values()):
            self._put("updates", partial(dict, {INTERRUPT: questions}), ())
            values = runs.values(state.aggregates, runs.graph.output)
            self._put("values", partial(dict, values, **{INTERRUPT: questions}), ())
        is_stopped = runs.has_breakpoints and agents.status in ("running", "stopped")
        if (is_stopped and not agents._master.is_stopping) or not self._ran.isdisjoint(runs.interrupt_after):
            self._put("updates", lambda: {INTERRUPT: ()}, ())
        if asked and ledger is not None and any(True for _ in executed(list(ledger.records.items()))):
            self._put("values", lambda: runs.values(runs.with_finished(state, ledger), runs.graph.output), ())


def _start(vertex: str, superstep: int) -> dict[str, Any]:
    return {"event": "start", "node": node_of(vertex), "task": vertex, "superstep": superstep}


def _about(event: Event) -> dict[str, Any]:
    """Return the task of an event."""
    about = {"node": node_of(event.vertex), "task": event.vertex, "superstep": event.superstep}
    return about if event.attempt is None else {**about, "attempt": event.attempt}

"""A run of agent vertices: the master's state, and the phases of a superstep over any transport."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from gpu_pregel.errors import AgentError
from gpu_pregel.host.agents.codec import decode, encode
from gpu_pregel.host.agents.collecting import patience
from gpu_pregel.host.agents.combining import Folding
from gpu_pregel.host.agents.events import Event, Observer
from gpu_pregel.host.agents.executor import Job
from gpu_pregel.host.agents.ledger import Entry, Ledger
from gpu_pregel.host.agents.mutations import ConflictError, Resolve, resolve_mutations
from gpu_pregel.host.agents.records import Batch, Change, Failure, Id, Record, Vertex
from gpu_pregel.host.agents.transport import Death, Done, Transport
from gpu_pregel.host.agents.waiting import Waiting


@dataclass(frozen=True)
class Aggregate:
    """An aggregator as the master has it: how it folds, what it is at first, and whether it carries over."""

    folding: Folding
    initial: Any
    persistent: bool


@dataclass(frozen=True)
class Rules:
    """How a run goes on, beside its compute functions.

    Attributes
    ----------
    function : str
        Name of the compute function at first.
    aggregates : dict of str to Aggregate
    master : callable or None
    on_failure : "raise", "continue" or callable
    on_missing : "error", "create" or "drop"
    resolve : callable or None
        Decides about added vertices that are there already, or are wanted twice.
    max_supersteps : int
    """

    function: str
    aggregates: dict[str, Aggregate]
    master: Callable[[MasterContext], Any] | None
    on_failure: Any
    on_missing: str
    resolve: Resolve | None
    max_supersteps: int


class MasterContext:
    """What master compute sees after each superstep, and what it may decide.

    Attributes
    ----------
    superstep, num_vertices : int
    """

    def __init__(self, superstep: int, num_vertices: int, aggregates: dict[str, Any], names: Iterable[str]) -> None:
        self.superstep, self.num_vertices = superstep, num_vertices
        self.halted = False
        self.function: str | None = None
        self._aggregates, self._names = aggregates, tuple(names)

    def aggregated(self, name: str) -> Any:
        """The aggregate of this superstep."""
        return self._aggregates[name]

    def halt(self) -> None:
        """End the run after this superstep."""
        self.halted = True

    def use(self, name: str) -> None:
        """Compute by the function of this name from the next superstep on."""
        if name not in self._names:
            raise KeyError(f"there is no compute function {name!r}: there are {', '.join(map(repr, self._names))}")
        self.function = name


@dataclass
class State:
    """What a commit makes visible, and the next superstep starts from."""

    vertices: dict[Id, Vertex]
    inbox: dict[Id, list[bytes]]
    aggregates: dict[str, Any]
    function: str
    superstep: int = 0
    """The superstep that comes next."""
    failed: dict[Id, tuple[int, Failure, list[bytes]]] = field(default_factory=dict)
    """Vertices that failed for good: superstep, failure and input."""


class AgentRun:
    """Runs supersteps one by one; after a failure or an interrupt it holds the superstep, to go on when told."""

    def __init__(self, job: Job, rules: Rules, state: State, transport: Transport, observers: list[Observer]) -> None:
        self.state, self.rules = state, rules
        self.status = "running"
        self.trace: list[dict[str, Any]] = []
        self.ledger: Ledger | None = None
        self._job, self._transport, self._observers = job, transport, observers
        self._waiting = Waiting(transport.partitions)
        self._order: list[Id] = []
        """All vertices in order, empty if it is not known."""
        self._awake = {vertex for vertex, one in state.vertices.items() if not one.halted}
        self._place = {vertex: transport.place(vertex) for vertex in state.vertices}
        parts: list[dict[Id, Vertex]] = [{} for _ in range(transport.partitions)]
        for vertex, one in state.vertices.items():
            parts[self._place[vertex]][vertex] = one
        self._generation = [0] * transport.partitions
        transport.start(parts, self._committed)

    def _committed(self, partition: int) -> dict[Id, Vertex]:
        """A partition's vertices, for a worker that replaces another."""
        return {vertex: one for vertex, one in self.state.vertices.items() if self._place[vertex] == partition}

    # The phases of a superstep.

    def step(self) -> bool:
        """Run one superstep, or what is left of one that was held; False when the run has ended or is held."""
        if self.status in ("completed", "halted", "partial", "max_supersteps", "stopped"):
            return False
        with patience(beside_users_code=self._transport.is_local):
            return self._step()

    def _step(self) -> bool:
        begin = time.perf_counter()
        if self.ledger is None:
            self.ledger = self._plan()
            if self.ledger is None:
                return self._end("partial" if self.state.failed else "completed")
            if self.state.superstep >= self.rules.max_supersteps:
                self.ledger = None
                return self._end("max_supersteps")
            self._tell("superstep", active=len(self.ledger.vertices))
        ledger = self.ledger
        while True:
            self._execute(ledger)
            verdict = self._judge(ledger)
            if verdict != "again":
                break
        if verdict != "commit":
            self.status = verdict
            return False
        self.status = "running"
        self._fold_and_commit(ledger, begin)
        return self.status == "running"

    def _plan(self) -> Ledger | None:
        """Who is active: vertices with messages, and those that have not voted to halt."""
        state = self.state
        active = self._awake | state.inbox.keys()
        if not active:
            return None
        if 4 * len(active) < len(state.vertices):
            ordered = sorted(active)
        else:  # most of those that there are
            self._order = self._order or sorted(state.vertices)
            ordered = [vertex for vertex in self._order if vertex in active]
        return Ledger(state.superstep, ordered, state.inbox)

    def _execute(self, ledger: Ledger) -> None:
        """Let the partitions compute until no attempt is under way or due."""
        state, place = self.state, self._place
        waiting = self._waiting = Waiting(self._transport.partitions)
        if ledger.has_begun:
            for vertex in ledger.of_status("pending"):
                entry = ledger.entry(vertex)
                waiting.add(vertex, place[vertex], entry.ready, entry.suspect)
        else:
            for vertex in ledger.vertices:
                waiting.due[place[vertex]].append(vertex)
        aggregates = {name: encode(value) for name, value in state.aggregates.items()}
        while True:
            for partition, vertices in waiting.take(time.monotonic()):
                tasks = ledger.begin(vertices)
                batch = Batch(ledger.step, len(state.vertices), state.function, aggregates, tasks)
                self._transport.submit(partition, batch)
            if waiting.is_over():
                return
            for event in self._transport.wait(waiting.next_time()):
                if isinstance(event, Done):
                    waiting.ended(event.partition, len(event.outcomes))
                    self._take(ledger, event)
                else:
                    self._bury(ledger, event)

    def _take(self, ledger: Ledger, event: Done) -> None:
        observed = bool(self._observers)
        for outcome in ledger.record_outcomes(event.outcomes, event.generation):
            if observed:
                self._tell("attempt", outcome, status=outcome.status)
                if outcome.status == "interrupted":
                    self._tell("interrupt", outcome)
            if outcome.status == "failed":
                self._failed(ledger.entry(outcome.id), outcome.id)

    def _failed(self, entry: Entry, vertex: Id) -> None:
        """Try again, or leave it failed."""
        failure = entry.failure
        assert failure is not None
        if failure.retryable and entry.attempts < self._job.retry.attempts:
            wait = self._job.retry.seconds_before(entry.attempts + 1)
            entry.status, entry.ready = "pending", time.monotonic() + wait
            self._waiting.add(vertex, self._place[vertex], entry.ready, entry.suspect)
            self._tell("retry", vertex=vertex, attempt=entry.attempts, seconds=round(wait, 3), text=failure.text)
        else:
            self._tell("failure", vertex=vertex, attempt=entry.attempts, type=failure.type, text=failure.text)

    def _bury(self, ledger: Ledger, death: Death) -> None:
        """A worker died: of one vertex under way it is charged with that, of several each is suspected."""
        self._generation[death.partition] = death.generation + 1
        self._tell("death", partition=death.partition, reason=death.reason)
        self._waiting.died(death.partition)
        under_way = set(death.under_way)
        for vertex in ledger.of_status("in_progress"):
            if self._place[vertex] != death.partition:
                continue
            entry = ledger.entry(vertex)
            if len(under_way) == 1 and vertex in under_way:
                entry.failure = Failure("death", "WorkerDied", death.reason, "", True)
                entry.status, entry.suspect = "failed", True
                self._failed(entry, vertex)
            else:
                entry.status, entry.suspect = "pending", entry.suspect or vertex in under_way
                entry.attempts -= 1
                self._waiting.add(vertex, death.partition, 0.0, entry.suspect)

    def _judge(self, ledger: Ledger) -> str:
        """Commit, hold ("failed" or "interrupted"), or compute some again."""
        failed = ledger.of_status("failed")
        if failed:
            decision = self.rules.on_failure
            if callable(decision):
                decision = decision(self.failures())
            if decision == "raise":
                return "failed"
            if decision != "continue":
                ledger.retry([encode(vertex) for vertex in decision])
                return "again"
        return "interrupted" if ledger.of_status("interrupted") else "commit"

    def _fold_and_commit(self, ledger: Ledger, begin: float) -> None:
        """Fold aggregates, resolve mutations, route messages; then make it all the state."""
        state, records = self.state, ledger.completed()
        failed = ledger.of_status("failed")
        if len(records) + len(failed) != len(ledger.vertices):
            raise AgentError(f"superstep {ledger.step} was cut off: the last commit stands")
        aggregates = self._fold_aggregates(records)
        after = dict(state.vertices)
        change = Change()
        for vertex, record in records:
            old, value = after[vertex], record.value
            if value is not None:
                after[vertex] = Vertex(value, old.edges, record.halted)
            elif record.halted is not old.halted:
                after[vertex] = Vertex(old.value, old.edges, record.halted)
        if any(self._generation):
            for vertex, _ in records:
                if ledger.generation(vertex) != self._generation[self._place[vertex]]:
                    change.set[vertex] = after[vertex]
        for vertex in failed:
            old = after[vertex]
            after[vertex] = Vertex(old.value, old.edges, True)
            change.halt.append(vertex)
        try:
            mutated, _ = resolve_mutations(records, after, self.rules.resolve)
        except ConflictError as error:
            raise AgentError(f"vertex {decode(error.vertex)!r} in superstep {ledger.step}: {error.problem}") from None
        for vertex in mutated.remove:
            after.pop(vertex, None)
        after.update(mutated.set)
        change.set.update(mutated.set)
        change.remove = mutated.remove
        inbox = self._route(records, after, change, ledger.step)
        decided = self._ask_master(ledger.step, len(after), aggregates)
        # From here on nothing fails: what was computed becomes the state.
        for vertex in failed:
            entry = ledger.entry(vertex)
            assert entry.failure is not None
            state.failed[vertex] = (ledger.step, entry.failure, list(entry.messages))
        self._commit(change, ledger.step, records, after)
        state.vertices, state.inbox, state.aggregates = after, inbox, aggregates
        state.superstep += 1
        if decided is not None and decided.function is not None:
            state.function = decided.function
        self.ledger = None
        row = {
            "superstep": ledger.step,
            "active": len(ledger.vertices),
            "messages": sum(map(len, inbox.values())),
            "failed": len(failed),
            "retries": ledger.retries(),
            "seconds": time.perf_counter() - begin,
        }
        self.trace.append(row)
        self._tell("commit", facts=row)
        if decided is not None and decided.halted:
            self._end("halted")

    def _fold_aggregates(self, records: list[tuple[Id, Record]]) -> dict[str, Any]:
        """Fold the contributions of completed attempts, in the order of (vertex, sequence)."""
        totals = {}
        contributions: dict[str, list[Any]] = {}
        for _, record in records:
            for name, data in record.aggregates:
                contributions.setdefault(name, []).append(decode(data))
        for name, aggregate in self.rules.aggregates.items():
            before = self.state.aggregates[name] if aggregate.persistent else aggregate.initial
            totals[name] = aggregate.folding.grown(before, contributions.get(name, []))
        return totals

    def _route(
        self, records: list[tuple[Id, Record]], after: dict[Id, Vertex], change: Change, step: int
    ) -> dict[Id, list[bytes]]:
        """Every vertex's messages for the next superstep, in the order of (sender, sequence)."""
        inbox: defaultdict[Id, list[bytes]] = defaultdict(list)
        for _, record in records:
            for target, message in record.outbox:
                inbox[target].append(message)
        inbox.default_factory = None
        if not inbox.keys() <= after.keys():
            for target in [target for target in inbox if target not in after]:
                if not self._missing(records, target, after, change, step):
                    del inbox[target]
        return inbox

    def _missing(
        self, records: list[tuple[Id, Record]], target: Id, after: dict[Id, Vertex], change: Change, step: int
    ) -> bool:
        """What becomes of messages to a vertex that is not there; True if it is now."""
        if self.rules.on_missing == "error":
            sender = next(sender for sender, record in records if target in [to for to, _ in record.outbox])
            raise AgentError(
                f"vertex {decode(sender)!r} sent a message in superstep {step} to {decode(target)!r}, which is not "
                f"there: add that vertex, or pass on_missing='create' or 'drop'"
            )
        if self.rules.on_missing == "create":
            after[target] = change.set[target] = Vertex(encode(None), [])
            return True
        return False

    def _ask_master(self, step: int, count: int, aggregates: dict[str, Any]) -> MasterContext | None:
        if self.rules.master is None:
            return None
        context = MasterContext(step, count, aggregates, self._job.functions)
        self.rules.master(context)
        return context

    def _commit(self, change: Change, step: int, records: list[tuple[Id, Record]], after: dict[Id, Vertex]) -> None:
        """Tell the partitions; each gets what concerns its own vertices."""
        for vertex in change.set:
            if vertex not in self._place:
                self._place[vertex] = self._transport.place(vertex)
        parts = [Change() for _ in range(self._transport.partitions)]
        for vertex, one in change.set.items():
            parts[self._place[vertex]].set[vertex] = one
        for vertex in change.halt:
            parts[self._place[vertex]].halt.append(vertex)
        for vertex in change.remove:
            parts[self._place[vertex]].remove.append(vertex)
        for partition, part in enumerate(parts):
            self._transport.commit(partition, step, part)
        # Whoever was awake was active.
        self._awake = {vertex for vertex, record in records if not record.halted}
        for vertex in change.set:
            if vertex in after and not after[vertex].halted:
                self._awake.add(vertex)
            else:
                self._awake.discard(vertex)
        self._awake.difference_update(change.remove)
        if len(after) != len(self.state.vertices) or change.remove or change.set:
            self._order = []

    def _end(self, status: str) -> bool:
        self.status = status
        self._tell("end", status=status)
        return False

    def _tell(
        self,
        kind: str,
        outcome: Any = None,
        *,
        vertex: Id | None = None,
        attempt: int | None = None,
        facts: dict[str, Any] | None = None,
        **more: Any,
    ) -> None:
        if not self._observers:
            return
        if outcome is not None:
            vertex, attempt = outcome.id, outcome.attempt
        name = None if vertex is None else decode(vertex)
        event = Event(kind, self.state.superstep, name, attempt, {**(facts or {}), **more})
        for observer in self._observers:
            observer(event)

    # What a user may ask and do while a superstep is held.

    def failures(self) -> dict[Any, Failure]:
        """The vertices of the held superstep that failed, and why."""
        if self.ledger is None:
            return {}
        failed = {vertex: self.ledger.entry(vertex).failure for vertex in self.ledger.of_status("failed")}
        return {decode(vertex): failure for vertex, failure in failed.items() if failure is not None}

    def interrupts(self) -> dict[Any, Any]:
        """The vertices of the held superstep that wait for an answer, and what they ask."""
        if self.ledger is None:
            return {}
        ledger = self.ledger
        return {
            decode(vertex): decode(ledger.entry(vertex).payload or b"") for vertex in ledger.of_status("interrupted")
        }

    def close(self) -> None:
        """End all workers."""
        self._transport.close()

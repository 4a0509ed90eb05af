"""What the master asks of agent vertices: who is computed, which attempt, what a failure means, what is committed."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from typing import Any

from gpu_pregel.errors import AgentError
from gpu_pregel.host.agents.codec import decode, encode
from gpu_pregel.host.agents.fold import Next, fold_superstep
from gpu_pregel.host.agents.formats import Segment
from gpu_pregel.host.agents.journal import Journal
from gpu_pregel.host.agents.ledger import Entry, Ledger
from gpu_pregel.host.agents.observers.events import Event, Observer
from gpu_pregel.host.agents.ready_queue import Waiting
from gpu_pregel.host.agents.records import NOTHING, Batch, Change, Failure, Id, Outcome, Vertex
from gpu_pregel.host.agents.rules import Rules
from gpu_pregel.host.agents.state import State
from gpu_pregel.host.agents.workers.executor import Job
from gpu_pregel.host.agents.workers.transport import Death, Done, Transport
from gpu_pregel.host.agents.workers.transport import Event as Arrival
from gpu_pregel.host.superstep.master import AGAIN, COMMIT, Folded


class AgentPolicy:
    """The policy of a run of agents; an order is a ledger, which is also what the partitions report into.

    Parameters
    ----------
    job : Job
    rules : Rules
    state : State
    transport : Transport
    observers : list of callables
    journal : Journal, optional
        Where the superstep's records are kept while it goes on.
    """

    def __init__(
        self,
        job: Job,
        rules: Rules,
        state: State,
        transport: Transport,
        observers: list[Observer],
        journal: Journal | None = None,
    ) -> None:
        self.state = state
        self.ledger: Ledger | None = None
        """Of the superstep that is under way or held."""
        self._job, self._rules, self._transport, self._observers = job, rules, transport, observers
        self._journal = journal
        self._superstep = 0
        self._is_partial = bool(state.failed)
        self._waiting = Waiting(transport.partitions)
        self._arrivals: deque[Arrival] = deque()
        self._untold: deque[Event] = deque()
        self._sorted: list[Id] = []
        """All vertices in order, empty if it is not known."""
        self._awake = {vertex for vertex, one in state.vertices.items() if not one.halted}
        self._active: set[Id] = set()
        self._place = {vertex: transport.place(vertex) for vertex in state.vertices}
        parts: list[dict[Id, Vertex]] = [{} for _ in range(transport.partitions)]
        for vertex, one in state.vertices.items():
            parts[self._place[vertex]][vertex] = one
        self._generation = [0] * transport.partitions
        transport.start(parts, self._committed)

    def _committed(self, partition: int) -> dict[Id, Vertex]:
        """A partition's vertices, for a worker that replaces another."""
        return {vertex: one for vertex, one in self.state.vertices.items() if self._place[vertex] == partition}

    def begin(self, superstep: int) -> tuple[int | None, bool]:
        """Active are vertices with messages, and those that have not voted to halt."""
        self._superstep = superstep
        self._active = active = self._awake | self.state.inbox.keys()
        return len(active), False

    # Plan and order.

    def order(self, superstep: int) -> Ledger:
        """A ledger of those that are active."""
        self._superstep = superstep
        active, state = self._active, self.state
        if 4 * len(active) < len(state.vertices):
            ordered = sorted(active)
        else:  # most of those that there are
            self._sorted = self._sorted or sorted(state.vertices)
            ordered = [vertex for vertex in self._sorted if vertex in active]
        self.ledger = Ledger(superstep, ordered, state.inbox)
        return self.ledger

    # Execute.

    def execute(self, superstep: int, order: Ledger, most: int) -> Ledger:  # noqa: ARG002
        """Let the partitions compute until no attempt is under way or due."""
        self._begin_waiting(order)
        state, waiting, transport, journal = self.state, self._waiting, self._transport, self._journal
        count = len(state.vertices)
        while not waiting.is_over():
            if journal is not None:
                journal.flush_if_due(at_once=transport.blocks)
            for partition, vertices in waiting.take(time.monotonic()):
                tasks = order.begin(vertices)
                transport.submit(partition, Batch(superstep, count, state.function, state.aggregates, tasks))
            until = waiting.next_time()
            if journal is not None and journal.due is not None:
                until = journal.due if until is None else min(until, journal.due)
            self._arrivals += transport.wait(until)
            self._take_arrivals(order)
        return order

    def _begin_waiting(self, ledger: Ledger) -> None:
        """All vertices wait for their first attempts; or, in a superstep that goes on, those that are left."""
        place, due = self._place, self._waiting.due
        if not ledger.has_begun:
            if len(due) == 1:
                due[0] += ledger.vertices
            else:
                for vertex in ledger.vertices:
                    due[place[vertex]].append(vertex)
            return
        # Where the last call was cut off, attempts are still under way, and others wait.
        self._take_arrivals(ledger)
        waiting = self._waiting.vertices()
        for vertex in ledger.of_status("pending"):
            if vertex not in waiting:
                entry = ledger.entry(vertex)
                self._waiting.add(vertex, place[vertex], entry.ready, entry.suspect)

    def _take_arrivals(self, ledger: Ledger) -> None:
        while self._arrivals:
            event = self._arrivals.popleft()
            if isinstance(event, Done):
                self._waiting.ended(event.partition, len(event.outcomes))
                self._take(ledger, event)
            else:
                self._bury(ledger, event)
            self._tell_all()

    def _take(self, ledger: Ledger, event: Done) -> None:
        observed, journal = bool(self._observers), self._journal
        outcomes = ledger.record_outcomes(event.outcomes, event.generation)
        if journal is not None:
            journal.add(outcomes)
        for outcome in outcomes:
            if observed:
                self._tell("attempt", outcome, status=outcome.status)
                if outcome.status == "interrupted":
                    self._tell("interrupt", outcome)
            if outcome.status == "failed":
                self._failed(ledger.entry(outcome.id), outcome.id)
            elif outcome.status == "interrupted" and journal is not None:
                entry = ledger.entry(outcome.id)
                journal.add_question(outcome.id, entry.attempts, outcome.result, entry.asked)

    def _failed(self, entry: Entry, vertex: Id) -> None:
        """Try again, or leave it failed."""
        failure = entry.failure
        assert failure is not None
        again = bool(failure.retryable) and entry.attempts < self._job.retry.attempts
        if self._journal is not None:
            self._journal.add_failure(vertex, entry.attempts, failure, again)
        if again:
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

    # Judge, fold, commit.

    def judge(self, reports: Ledger) -> str:
        """Commit, hold ("failed" or "interrupted"), or compute some again."""
        if reports.is_complete():
            return COMMIT
        failed = reports.of_status("failed")
        if failed:
            decision = self._rules.on_failure
            if callable(decision):
                decision = decision({decode(vertex): why for vertex, (_, why, _) in reports.failures().items()})
            if decision == "raise":
                return "failed"
            if decision != "continue":
                self._retry(reports, self._chosen(decision, failed))
                return AGAIN
        return "interrupted" if reports.of_status("interrupted") else COMMIT

    def _chosen(self, decision: Any, failed: list[Id]) -> list[Id]:
        """The vertices that ``on_failure`` wants to be tried again."""
        try:
            chosen = [] if isinstance(decision, (str, bytes)) else [encode(vertex) for vertex in decision]
        except TypeError:
            chosen = []
        if not chosen or not set(chosen) <= set(failed):
            raise AgentError(
                f"on_failure returned {decision!r}: return 'raise', 'continue', or a list of vertices that have failed"
            )
        return chosen

    def fold(self, reports: Ledger, seconds: float) -> Iterable[Folded]:
        """Fold aggregates, resolve mutations, route messages, and ask master compute."""
        after = fold_superstep(self.state, reports, self._rules, self._job.functions)
        self._is_partial = bool(self.state.failed or after.failed)
        awake = {vertex for vertex, record in after.records if not record.halted}  # whoever was awake was active
        if after.mutated is not NOTHING:
            for vertex, one in after.mutated.set.items():
                (awake.discard if one.halted else awake.add)(vertex)
            awake.difference_update(after.mutated.remove)
        active = awake.union(after.inbox)
        row = {
            "superstep": reports.step,
            "computed": len(reports.vertices),
            "active_vertices": len(active),
            "messages": sum(map(len, after.inbox.values())),
            "failed": len(after.failed),
            "retries": reports.retries(),
            "seconds": seconds,
        }
        return [Folded(reports.step, len(active), after.halted, (after, awake, active), row)]

    def commit(self, folded: Folded) -> None:
        """Make what was computed the state, here and at the partitions."""
        state, ledger = self.state, self.ledger
        after: Next
        after, self._awake, self._active = folded.change
        assert ledger is not None
        change = after.mutated
        if after.failed or ledger.has_foreign or any(self._generation):
            change = Change(dict(change.set), list(after.failed), change.remove)
            for vertex, _ in after.records:  # those of workers that are gone
                if ledger.generation(vertex) != self._generation[self._place[vertex]] and vertex in after.changed:
                    change.set[vertex] = after.changed[vertex]
        self._send_change(ledger.step, change)
        state.failed.update(after.failed)
        state.vertices.update(after.changed)
        if after.mutated is not NOTHING:
            for vertex in after.mutated.remove:
                state.vertices.pop(vertex, None)
            self._sorted = []
        state.inbox, state.aggregates, state.function = after.inbox, after.aggregates, after.function
        self.ledger = None

    def _send_change(self, step: int, change: Change) -> None:
        """Tell the partitions; each gets what concerns its own vertices."""
        place, count = self._place, self._transport.partitions
        parts = [change] * count
        if change is not NOTHING:
            place |= {vertex: self._transport.place(vertex) for vertex in change.set if vertex not in place}
            if count > 1:
                parts = [Change() for _ in range(count)]
                for vertex, one in change.set.items():
                    parts[place[vertex]].set[vertex] = one
                for vertex in change.halt:
                    parts[place[vertex]].halt.append(vertex)
                for vertex in change.remove:
                    parts[place[vertex]].remove.append(vertex)
        for partition, part in enumerate(parts):
            self._transport.commit(partition, step, part)

    def status_of(self, end: str) -> str:
        """A run that went on without vertices that failed is partial."""
        return "partial" if end == "completed" and self._is_partial else end

    def standing(self) -> str:
        """The status of a run whose superstep was begun elsewhere."""
        ledger = self.ledger
        if ledger is None or ledger.of_status("pending"):
            return "running"
        if ledger.of_status("failed"):
            return "failed"
        return "interrupted" if ledger.of_status("interrupted") else "running"

    # What a user may see and do between two supersteps, or while one is held.

    def retry(self, vertices: list[Id]) -> None:
        """Give failed vertices of the held superstep a fresh set of attempts."""
        if self.ledger is not None:
            self._retry(self.ledger, vertices)

    def _retry(self, ledger: Ledger, vertices: list[Id]) -> None:
        if self._journal is not None:
            self._journal.add_retry(vertices)
        ledger.retry(vertices)

    def is_asked(self, vertex: Id) -> bool:
        """Whether a vertex waits for an answer."""
        entry = None if self.ledger is None else self.ledger.known(vertex)
        return entry is not None and entry.status == "interrupted"

    def is_answered(self, vertex: Id, answer: bytes) -> bool:
        """Whether the latest answer to a vertex, which has not run again since, was this one."""
        entry = None if self.ledger is None else self.ledger.known(vertex)
        return entry is not None and entry.status == "pending" and list(entry.answers[-1:]) == [answer]

    def answer(self, vertex: Id, answer: bytes) -> None:
        """Answer an interrupt of the held superstep."""
        assert self.ledger is not None
        if self._journal is not None:
            self._journal.answer(vertex, len(self.ledger.entry(vertex).answers), answer)
        self.ledger.answer(vertex, answer)

    def send(self, target: Id, message: bytes) -> None:
        """Send a message from outside, which comes after those of the vertices."""
        if self._journal is not None:
            self._journal.add_message(target, message, held=self.ledger is not None)
        inbox = self.state.inbox if self.ledger is None else self.ledger.sent
        inbox.setdefault(target, []).append(message)

    def take_over(self, segments: Iterable[Segment], answers: Iterable[tuple[Id, bytes]]) -> Ledger:
        """Go on with a superstep that was begun elsewhere; the master is to have its ledger as order."""
        ledger = self.order(self._superstep)
        for segment in segments:
            segment.replay(ledger)
        ledger.has_begun = True
        ledger.suspend()
        ledger.judge_again(self._job.retry.attempts)
        for vertex, answer in answers:
            ledger.answer(vertex, answer)
        return ledger

    def close(self) -> None:
        """End all workers, and give the run's claim back."""
        try:
            self._transport.close()
        finally:
            if self._journal is not None:
                self._journal.close()

    # Observers.

    def observe(self, kind: str, facts: dict[str, Any]) -> None:
        """Tell observers what the master tells."""
        if self._observers:
            self._tell(kind, **facts)
            self._tell_all()

    def _tell(
        self,
        kind: str,
        outcome: Outcome | None = None,
        *,
        vertex: Id | None = None,
        attempt: int | None = None,
        **facts: Any,
    ) -> None:
        """Note an event; observers are told when all that it is about is in place, as one of them may raise."""
        if not self._observers:
            return
        if outcome is not None:
            vertex, attempt = outcome.id, outcome.attempt
        name = None if vertex is None else decode(vertex)
        self._untold.append(Event(kind, self._superstep, name, attempt, facts, self._job.run))

    def _tell_all(self) -> None:
        while self._untold:
            event = self._untold.popleft()
            for observer in self._observers:
                observer(event)

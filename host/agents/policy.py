"""The policy of agent vertices: which ones are computed and retried, the effect of failures, and the commit."""

from __future__ import annotations

import time
from _thread import RLock
from collections import deque
from collections.abc import Iterable, Set
from functools import partial

from gpu_pregel.errors import AgentError
from gpu_pregel.host.agents.companion import Companion
from gpu_pregel.host.agents.decisions import decide, refusal
from gpu_pregel.host.agents.emissions import Emission
from gpu_pregel.host.agents.fold import AgentChange, RefusedError, change_of_partitions, fold_superstep, row_of
from gpu_pregel.host.agents.formats import BegunSuperstep
from gpu_pregel.host.agents.ledger import Entry, Ledger
from gpu_pregel.host.agents.observers.events import EventQueue
from gpu_pregel.host.agents.options import RunOptions
from gpu_pregel.host.agents.partition_options import PartitionOptions
from gpu_pregel.host.agents.parts import EarlyMessage, FailedAttempts, Part, Question, Retry, WakeUp
from gpu_pregel.host.agents.placement import Placement
from gpu_pregel.host.agents.ready_queue import ReadyQueue
from gpu_pregel.host.agents.records import NO_CHANGE, UNREADABLE, Batch, Change, Failure, Id
from gpu_pregel.host.agents.state import State
from gpu_pregel.host.agents.superstep_state import SuperstepState
from gpu_pregel.host.agents.work_stealing import WorkStealing
from gpu_pregel.host.agents.workers.transport import Arrival, OutcomeBatch, ReturnedTasks, Transport, WorkerDeath
from gpu_pregel.host.superstep.journal import Answer, FoldedSuperstep, Journal
from gpu_pregel.host.superstep.master import AGAIN, COMMIT, Start, Waits
from gpu_pregel.kernels.library.interrupts import deferred_interrupts

_new_folded = partial(tuple.__new__, FoldedSuperstep)  # three times as fast


class _HandingOver:
    """A block that other threads, and a run that continues after Ctrl-C, see as a whole or not at all."""

    def __init__(self) -> None:
        self._lock, self._interrupts = RLock(), deferred_interrupts()

    def __enter__(self) -> None:
        self._lock.acquire()
        self._interrupts.__enter__()

    def __exit__(self, *exception: object) -> None:
        try:
            self._interrupts.__exit__()
        finally:
            self._lock.release()


class AgentPolicy:
    """The policy of a run of agents; a ledger serves as the order of a superstep and collects the partitions' reports.

    Parameters
    ----------
    options : RunOptions
    partition_options : PartitionOptions
    state : State
    transport : Transport
    begun : BegunSuperstep, optional
        The part of the next superstep that another program has computed.
    halted : bool
        Whether master compute has ended the run.
    """

    def __init__(
        self,
        options: RunOptions,
        partition_options: PartitionOptions,
        state: State,
        transport: Transport,
        begun: BegunSuperstep | None = None,
        halted: bool = False,
    ) -> None:
        self.state, self.wait = state, transport.wait
        self.ledger: Ledger | None = None
        """The ledger of the superstep that is running or held."""
        self._options, self._partition_options, self._transport = options, partition_options, transport
        self._begun, self._halted = begun, halted
        self._given_up: list[FailedAttempts] = []
        self._is_partial, self._has_timers = bool(state.failed), bool(state.timers)
        self._queue = ReadyQueue(transport.partitions)
        self._arrivals: deque[Arrival] = deque()
        self._handing_over = _HandingOver() if transport.is_concurrent else RLock()
        """While arrivals, the ledger and the state are changed."""
        self.companion: Companion | None = None
        self._events = EventQueue(options.observers, partition_options.run_id)
        self.observe, self._place = self._events.observe, Placement(transport)
        asleep = [vertex for vertex, one in state.vertices.items() if one.halted]
        self._awake: Set[Id] = state.vertices.keys() - asleep if asleep else state.vertices.keys()
        self._active: Set[Id] = set()
        self._folded: AgentChange | None = None
        self._has_failure = self._is_aborting = False
        """Whether a vertex has failed since the superstep began or continued; whether this ends it."""
        self._is_unfinished = False
        """Whether the folded change is partly visible, because its commit has been interrupted."""
        self._stealing = WorkStealing(partition_options, self._queue, transport) if transport.partitions > 1 else None
        self._generation, self._has_deaths, self._is_started = [0] * transport.partitions, False, False
        if state.vertices:
            self._start()

    def _start(self) -> None:
        """Start the partitions, once there are vertices."""
        vertices, self._is_started = self.state.vertices, True
        parts = [vertices] if self._transport.is_local else self._place.split_state(vertices)
        committed = lambda partition: self._place.split_state(self.state.vertices)[partition]  # noqa: E731
        self._transport.start(parts, committed, self._events.emit)

    @property
    def has_begun(self) -> bool:
        """Whether another program has begun the next superstep."""
        return self._begun is not None

    def begin(self, superstep: int) -> Start[Ledger]:
        """Return where the run stands; vertices that have messages or have not voted to halt are active."""
        self._events.superstep = superstep
        self._active = active = self._awake | self.state.inbox.keys() if self.state.inbox else self._awake
        begun, self._begun = self._begun, None
        if begun is not None:
            ledger = self._take_over(begun)
            return Start(len(active), order=ledger, status=ledger.run_status())
        return Start(len(active), status="halted" if self._halted else "running")

    # Order.

    def order(self, superstep: int) -> Ledger:
        """Return a ledger of the active vertices."""
        self._events.superstep = superstep
        inbox, companion = self.state.inbox, self.companion
        active = self._active if companion is None else self._active | companion.due()
        ordered = self._place.sort(active, self.state.vertices)
        if ordered and not self._is_started:
            self._start()
        inbox = inbox if companion is None or not ordered else companion.add_inputs(ordered, inbox)
        self.ledger = Ledger(superstep, ordered, inbox)
        return self.ledger

    # Execute.

    def execute(self, superstep: int, order: Ledger, limit: int, journal: Journal | None) -> Waits[Ledger]:  # noqa: ARG002
        """Let the partitions compute until no attempt is running or queued."""
        self._fill_queue(order, journal)
        state, queue, transport, stealing = self.state, self._queue, self._transport, self._stealing
        count, aggregates = len(state.vertices), state.aggregates
        if unsent := self._options.unsent:
            aggregates = {name: data for name, data in aggregates.items() if name not in unsent}
        while not queue.is_empty():
            now = time.monotonic()
            if journal is not None:
                journal.flush_if_due(now)
            with self._handing_over:
                for partition, vertices in queue.take(now):
                    guests = {}
                    if stealing is not None:
                        submitted = stealing.on_submit(partition, vertices, now)
                        guests = {one: state.vertices[one] for one in submitted}
                    tasks = order.begin(vertices)
                    transport.submit(partition, Batch(superstep, count, state.function, aggregates, tasks, guests))
            until = queue.next_time()
            if stealing is not None and (look := stealing.recall(superstep, state.function, now)) is not None:
                until = look if until is None else min(until, look)
            if journal is not None:
                until = journal.before_wait(now, until, transport.finished if transport.is_local else None)
            yield until
            with self._handing_over:
                self._arrivals += transport.take()
            self._handle_arrivals(order, journal)
            if order.is_complete():
                break
        return order

    def _fill_queue(self, ledger: Ledger, journal: Journal | None) -> None:
        """Queue all vertices for their first attempts or, in a resumed superstep, those that remain."""
        due, self._has_failure, self._is_aborting = self._queue.due, False, False
        ledger.cancelled.clear()
        if not ledger.has_begun:
            if len(due) == 1:
                due[0] += ledger.vertices
            else:
                for queued, vertices in zip(due, self._place.split(ledger.vertices), strict=True):
                    queued += vertices
            return
        if journal is not None and self._given_up:
            journal.add(self._given_up)
        self._given_up = []
        # If the last call was interrupted, some attempts are still running and others are queued.
        self._handle_arrivals(ledger, journal)
        known = self._queue.vertices()
        for vertex in ledger.with_status("pending"):
            if vertex not in known:
                self._requeue(vertex, ledger.entry(vertex))

    def _requeue(self, vertex: Id, entry: Entry) -> None:
        """Queue a vertex for another attempt in its own partition, unless the superstep is aborted."""
        if self._is_aborting:
            return
        if self._stealing is not None:
            self._stealing.moved.pop(vertex, None)
        self._queue.add(vertex, self._place.of(vertex), entry.ready, entry.suspect)

    def _handle_arrivals(self, ledger: Ledger, journal: Journal | None) -> None:
        while self._arrivals:
            with self._handing_over:
                event = self._arrivals.popleft()
                if isinstance(event, OutcomeBatch):
                    self._record_outcomes(ledger, event, journal)
                elif isinstance(event, ReturnedTasks):
                    self._move(ledger, event)
                elif isinstance(event, Emission):
                    self._events.add_emission(event)
                else:
                    self._handle_death(ledger, event, journal)
            if self._has_failure and not self._is_aborting and self._options.on_failure == "abort":
                self._abort(ledger)
            if self._events.observers:
                self._events.notify()

    def _move(self, ledger: Ledger, event: ReturnedTasks) -> None:
        """Queue returned vertices for idle partitions, unless the superstep is aborted."""
        ledger.take_back(event.vertices)
        self._queue.finish(event.partition, len(event.vertices))
        if self._is_aborting:
            return
        assert self._stealing is not None
        for vertex, partition in self._stealing.on_return(event.partition, event.vertices):
            self._queue.add(vertex, partition)

    def _record_outcomes(self, ledger: Ledger, event: OutcomeBatch, journal: Journal | None) -> None:
        observed = self._events.observers
        self._queue.finish(event.partition, len(event.outcomes))
        outcomes, others = ledger.record_outcomes(event.outcomes, event.generation)
        if self._stealing is not None:
            for vertex in self._stealing.on_outcomes(event.partition, outcomes):
                ledger.mark_foreign(vertex)
        if journal is not None:
            journal.add([one for one in outcomes if one.status == "completed"] if others else outcomes)
        for outcome in outcomes if observed else others:
            if observed:
                self._events.add_attempt(outcome)
            if outcome.status == "failed":
                self._handle_failure(ledger.entry(outcome.id), outcome.id, journal)
            elif outcome.status == "interrupted" and journal is not None:
                entry = ledger.entry(outcome.id)
                journal.add([Question(outcome.id, entry.attempts, outcome.result, entry.asked)])

    def _handle_failure(self, entry: Entry, vertex: Id, journal: Journal | None) -> None:
        """Retry a vertex, or leave it failed."""
        failure = entry.failure
        assert failure is not None
        retry = self._partition_options.retry_of(vertex)
        again = bool(failure.retryable) and entry.attempts < retry.attempts
        if journal is not None and failure.kind != UNREADABLE:
            journal.add([FailedAttempts(vertex, entry.attempts, failure, again)], urgent=again)
        if again:
            left = failure.seconds_left()
            wait = retry.seconds_before(entry.attempts + 1) if left is None else left
            entry.status, entry.ready = "pending", time.monotonic() + wait
            self._requeue(vertex, entry)
            self._events.add("retry", vertex=vertex, attempt=entry.attempts, seconds=round(wait, 3), text=failure.text)
        else:
            self._has_failure = True
            self._events.add("failure", vertex=vertex, attempt=entry.attempts, type=failure.type, text=failure.text)

    def _abort(self, ledger: Ledger) -> None:
        """Cancel what is running or queued; each attempt ends with an outcome, its return or its worker's death."""
        self._is_aborting = True
        ledger.take_back([one for one in self._queue.vertices() if ledger.find_entry(one) is None])
        self._queue.clear()
        self._transport.abort()
        with self._handing_over:
            self._arrivals += self._transport.take()

    def _handle_death(self, ledger: Ledger, death: WorkerDeath, journal: Journal | None) -> None:
        """Charge the death of a worker to its only running vertex; if several were running, make each a suspect."""
        self._generation[death.partition], self._has_deaths = death.generation + 1, True
        self._events.add("death", partition=death.partition, reason=death.reason)
        self._queue.reset(death.partition)
        running, moved = set(death.running), {}
        if self._stealing is not None:
            self._stealing.on_death(death.partition)
            moved = self._stealing.moved
        for vertex in ledger.with_status("in_progress"):
            if (moved[vertex] if vertex in moved else self._place.of(vertex)) != death.partition:
                continue
            entry = ledger.entry(vertex)
            if len(running) == 1 and vertex in running:
                entry.failure = Failure("death", "WorkerDied", death.reason, "", True)
                entry.status, entry.suspect = "failed", True
                self._handle_failure(entry, vertex, journal)
            else:
                entry.status, entry.suspect = "pending", entry.suspect or vertex in running
                entry.attempts -= 1
                self._requeue(vertex, entry)

    # Judge, fold, commit.

    def judge(self, reports: Ledger, journal: Journal | None) -> str:
        """Commit, hold ("failed" or "interrupted"), or compute some vertices again.

        A superstep that may be committed is folded: vertices whose messages or requests cannot be taken fail.
        """
        if self._is_unfinished:
            return COMMIT
        while (verdict := COMMIT if reports.is_complete() else self._judge_failures(reports, journal)) == COMMIT:
            try:
                self._folded = fold_superstep(self.state, reports, self._options, self.companion)
            except RefusedError as error:
                self._refuse(reports, error.reasons, journal)
                if not self._queue.is_empty():
                    return AGAIN
            else:
                break
        return verdict

    def _refuse(self, ledger: Ledger, reasons: dict[Id, AgentError], journal: Journal | None) -> None:
        """Charge vertices whose records cannot be folded, and retry them or leave them failed."""
        if journal is not None:
            journal.flush()  # a segment's failures come before its records
        for vertex, reason in reasons.items():
            failure = refusal(reason, self._partition_options.retry_of(vertex))
            self._handle_failure(ledger.refuse(vertex, failure), vertex, journal)
        self._events.notify()

    def _judge_failures(self, reports: Ledger, journal: Journal | None) -> str:
        """Commit, hold, or compute some vertices again, as far as the outcomes of attempts decide it."""
        if reports.with_status("failed"):
            decision = decide(self._options.on_failure, reports)
            if self._is_aborting:
                reports.cancelled = reports.with_status("pending")
            if decision in ("raise", "abort"):
                return "failed"
            if decision != "continue":
                if journal is not None:
                    journal.record(*map(Retry, decision))
                reports.retry(decision)
                return AGAIN
        return "interrupted" if reports.with_status("interrupted") else COMMIT

    def fold(self, reports: Ledger, seconds: float) -> Iterable[FoldedSuperstep[AgentChange]]:
        """Return the superstep as :meth:`judge` has folded it."""
        after = self._folded
        assert after is not None
        self._is_partial, self._has_timers = bool(self.state.failed or after.failed), bool(after.timers)
        row = row_of(reports, after, self._options.traced, seconds)
        return (_new_folded((reports.step, len(after.active), after.halted, after, row)),)

    def commit(self, folded: FoldedSuperstep[AgentChange]) -> None:
        """Make the superstep's results the state, here and at the partitions."""
        state, ledger, after = self.state, self.ledger, folded.change
        self._awake, self._active = after.awake, after.active
        assert ledger is not None
        change = after.mutated
        if after.failed or ledger.has_foreign or ledger.refused or self._has_deaths:
            change = change_of_partitions(state, ledger, after, self._has_record)
        with self._handing_over:
            self._is_unfinished = True
            state.change(after.changed, after.mutated.remove, after.failed)
        if after.mutated is not NO_CHANGE:
            self._place.clear()
        if self._stealing is not None:
            self._stealing.moved.clear()
        state.inbox, state.aggregates, state.function = after.inbox, after.aggregates, after.function
        state.timers = after.timers
        self.tell_partitions(ledger.step, change)
        for target in sorted(ledger.sent.keys() - after.inbox.keys()) if ledger.sent else ():
            self._events.add("undeliverable", vertex=target, text="there is no such vertex")
        self.ledger, self._folded, self._is_unfinished = None, None, False

    def tell_partitions(self, superstep: int, change: Change = NO_CHANGE) -> None:
        """Commit a superstep at the partitions, if they have been started."""
        if self._is_started:
            for partition, part in enumerate(self._place.split_change(change)):
                self._transport.commit(partition, superstep, part)

    def _has_record(self, vertex: Id) -> bool:
        """Whether the worker of a vertex's partition has computed its record."""
        assert self.ledger is not None
        return self.ledger.generation(vertex) == self._generation[self._place.of(vertex)]

    def status_of(self, end: str) -> str:
        """Return the final status: a run waits for its timers, and one without its failed vertices is partial."""
        if end == "completed" and self._has_timers:
            return "waiting"
        return "partial" if end == "completed" and self._is_partial else end

    def progress(self) -> SuperstepState | None:
        """Return the state of the superstep that is running or held, as it is now; any thread may call this."""
        with self._handing_over:
            ledger, retry_of = self.ledger, self._partition_options.retry_of
            if ledger is None or self._is_unfinished:
                return None
            return SuperstepState(ledger, self.state.vertices, self._transport.progress(), self._arrivals, retry_of)

    # Between two supersteps, or while one is held.

    def receive(self, part: Part | Answer) -> None:
        """Apply a retry, an answer or a message from outside; such messages come after those of vertices."""
        ledger = self.ledger
        if isinstance(part, EarlyMessage):
            self.state.deliver(part.target, part.message)
        elif isinstance(part, WakeUp):
            self.state.wake(part.vertex)
            self._has_timers = bool(self.state.timers)
        elif ledger is not None:
            ledger.receive(part)

    def _take_over(self, begun: BegunSuperstep) -> Ledger:
        """Return the ledger of a superstep that another program began."""
        ledger = self.order(self._events.superstep)
        begun.replay(ledger)
        ledger.suspend()
        given_up = ledger.apply_attempts(lambda vertex: self._partition_options.retry_of(vertex).attempts)
        for vertex, one in ledger.failures({}, given_up).items():
            self._given_up.append(FailedAttempts(vertex, one.attempts or 0, one.failure, False))
        begun.give_answers(ledger)
        return ledger

    def close(self) -> None:
        """End all workers."""
        self._transport.close()

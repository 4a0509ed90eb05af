"""A run of agents step by step, and what a user can read and do between two steps."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any

from gpu_pregel.errors import ArgumentError
from gpu_pregel.host.agents.codec import decode, encode, id_key
from gpu_pregel.host.agents.ledger import Entry
from gpu_pregel.host.agents.options import RunOptions
from gpu_pregel.host.agents.partition_options import PartitionOptions
from gpu_pregel.host.agents.parts import EarlyMessage, LaterMessage, Retry, WakeUp
from gpu_pregel.host.agents.policy import AgentPolicy
from gpu_pregel.host.agents.records import Id
from gpu_pregel.host.agents.recovery import RecoveredRun
from gpu_pregel.host.agents.requests import POLL_SECONDS, RequestReader, Requests, chosen_failures
from gpu_pregel.host.agents.results import (
    AgentResult,
    VertexMapping,
    decode_aggregates,
    decode_failures,
    decode_interrupts,
)
from gpu_pregel.host.agents.snapshots import RunSnapshot
from gpu_pregel.host.agents.superstep_state import SuperstepState
from gpu_pregel.host.agents.timers import due_timers
from gpu_pregel.host.agents.workers.garbage_collection import FEW, relaxed_gc
from gpu_pregel.host.agents.workers.thread_transport import ThreadTransport
from gpu_pregel.host.agents.workers.transport import InProcessTransport, Transport
from gpu_pregel.host.superstep.journal import Answer
from gpu_pregel.host.superstep.master import ENDED, Master, Policy
from gpu_pregel.host.superstep.trace import Trace

_NOTHING = nullcontext()


class AgentRun:
    """A run that is executed step by step: made by :func:`start`, ended by its ``with`` block or by :meth:`stop`.

    Attributes
    ----------
    run_id : str
    status : str
        "running" between supersteps, or as in :class:`AgentResult`.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> def ask(ctx):
    ...     ctx.value = ctx.interrupt("how much?")
    ...     ctx.vote_to_halt()
    >>> with gp.agents.start([gp.agents.Vertex("a")], ask) as agents:
    ...     _ = agents.step()
    ...     print(agents.status, agents.result().interrupts)
    ...     agents.answer("a", 42)
    ...     while agents.step():
    ...         pass
    ...     print(agents.result().values)
    interrupted {'a': 'how much?'}
    {'a': 42}
    """

    def __init__(
        self,
        options: RunOptions,
        recovered: RecoveredRun,
        beside: Callable[[AgentPolicy], Policy[Any, Any, Any]] | None = None,
    ) -> None:
        """``beside`` returns the policy of a run in which other vertices are computed beside the agents."""
        self.run_id, self._branch, self._options = recovered.run_id, recovered.branch, options
        self._stepping = threading.Lock()
        journal = recovered.journal
        partition_options = options.for_partitions(recovered.run_id, recovered.branch)
        transport: Transport | None = None
        try:
            self._transport = transport = _transport(
                options, partition_options, in_slices=journal is not None or options.on_failure == "abort"
            )
            with _NOTHING if len(recovered.state.vertices) < FEW else relaxed_gc(beside_users_code=False):
                self._policy = AgentPolicy(
                    options,
                    partition_options,
                    recovered.state,
                    transport,
                    begun=recovered.begun or None,
                    halted=recovered.status == "halted",
                )
            self._master: Master[Any, Any, Any] = Master(
                self._policy if beside is None else beside(self._policy),
                max_supersteps=options.max_supersteps,
                observe=self._policy.observe if options.observers else None,
                journal=journal,
                superstep=recovered.superstep,
                trace=recovered.rows,
            )
        except BaseException:
            try:
                if transport is not None:
                    transport.close()
            finally:
                if journal is not None:
                    journal.close()
            raise
        self._requests = None
        if journal is not None:
            self._requests = RequestReader(journal.store, self.run_id)
            weakref.finalize(self, journal.drop).atexit = False  # the lease of a process that has ended is ignored

    @property
    def status(self) -> str:
        """The status of the run."""
        return self._master.status

    def step(self) -> bool:
        """Run a superstep, or the rest of a held one; return whether another may follow."""
        with self._stepping:
            if self._requests is not None and self._requests_are_due():
                self._take_requests()
            state = self._policy.state
            if state.timers and (seconds := self._wake_due()) is not None:
                time.sleep(seconds)
                return True
            if len(state.vertices) < FEW:
                may_continue = self._master.step()
            else:
                with relaxed_gc(beside_users_code=self._transport.is_local):
                    may_continue = self._master.step()
            if may_continue:
                return True
            may_continue = self._take_requests() or self._is_waiting
            if self.status in ("stopped", "cancelled"):
                self._master.close()
            return may_continue

    def _requests_are_due(self) -> bool:
        """Whether it is time to look for what other programs ask: now and then, and always if the run is held."""
        return self._requests is not None and (self._master.status != "running" or self._requests.is_due())

    def _take_requests(self) -> bool:
        """Take up what other programs ask of the run; return whether a superstep may follow."""
        reader, policy, status = self._requests, self._policy, self.status
        if reader is None or status in ENDED - {"completed", "partial", "waiting"}:
            return False
        requests = reader.read()
        if requests.is_cancelled and not self._master.is_over:  # it may have ended before the request was stored
            self._master.end("cancelled")
        if requests.numbers:
            self._deliver(requests)
        ledger = policy.ledger
        if ledger is None or self.status == "cancelled":
            return self.status == "running"
        for step in range(ledger.step, self._master.superstep + 1) if ledger.with_status("interrupted") else ():
            for answer in reader.answers(step):
                entry = ledger.find_entry(answer.vertex)
                if entry is not None and answer.number >= len(entry.answers):
                    policy.receive(answer)
        return not ledger.cancelled_only()

    @property
    def _is_waiting(self) -> bool:
        """Whether the program waits for a timer, or the time of one has come."""
        if self.status != "waiting":
            return False
        return self._options.on_waiting == "wait" or bool(due_timers(self._policy.state.timers, time.time()))

    def _wake_due(self) -> float | None:
        """Wake the vertices whose time has come; return how long to sleep if there is nothing to compute yet."""
        timers = self._policy.state.timers
        if not timers or self._policy.ledger is not None or self.status not in ("running", "waiting"):
            return None
        now = time.time()
        due = due_timers(timers, now)
        if due:
            self._master.receive(*map(WakeUp, due))
        elif self._is_waiting and self._master.is_stopping:
            self._master.end()
        elif self._is_waiting:
            return min(min(timers.values()) - now, POLL_SECONDS)
        return None

    def _deliver(self, requests: Requests) -> None:
        """Deliver messages of other programs, and remove their requests."""
        policy, parts = self._policy, []
        for target, message in requests.messages:
            if target in policy.state.vertices:
                parts.append((EarlyMessage if policy.ledger is None else LaterMessage)(target, message))
            else:
                policy.observe("undeliverable", {"vertex": target, "text": "there is no such vertex"})
        self._master.receive(*parts, taken=requests.numbers)

    def retry(self, vertices: Iterable[Any] | None = None) -> None:
        """Give failed vertices of the held superstep, by default all, new attempts with the same input."""
        self._master.receive(*map(Retry, chosen_failures(self._policy.ledger, vertices)))

    def answer(self, vertex: Any, answer: Any) -> None:
        """Answer a vertex's interrupt; the next :meth:`step` runs the vertex again from its start.

        Repeating the same answer before that changes nothing.
        """
        key, data = id_key(vertex), encode(answer, name="answer")
        entry = self._entry(key)
        if entry is not None and entry.status == "pending" and list(entry.answers[-1:]) == [data]:
            return
        if entry is None or entry.status != "interrupted":
            raise ArgumentError(
                f"vertex {vertex!r} is not waiting for an answer; waiting vertices: {list(self.result().interrupts)}"
            )
        self._master.receive(Answer(key, len(entry.answers), data))

    def _is_asking(self, vertex: Any) -> bool:
        """Whether a vertex waits for an answer."""
        entry = self._entry(id_key(vertex))
        return entry is not None and entry.status == "interrupted"

    def _entry(self, vertex: Id) -> Entry | None:
        """The ledger's entry of a vertex of the held superstep."""
        ledger = self._policy.ledger
        return None if ledger is None else ledger.find_entry(vertex)

    def send(self, target: Any, message: Any) -> None:
        """Send a message from outside for the next superstep; a completed run continues.

        It is delivered after the messages of vertices. If a superstep is held, it is delivered in the one after that,
        unless the vertex is removed meanwhile.
        """
        if self.status in ENDED - {"completed", "partial", "waiting"}:
            raise ArgumentError(
                f"the run has ended ({self.status}), so the message cannot be delivered: start or resume a run first"
            )
        vertex = id_key(target, name="target")
        if vertex not in self._policy.state.vertices:
            raise ArgumentError(f"there is no vertex {target!r}: send to a vertex of the run")
        kind = EarlyMessage if self._policy.ledger is None else LaterMessage
        self._master.receive(kind(vertex, encode(message, name="message")))

    def stop(self) -> None:
        """End the run and its workers, after the current superstep if another thread is computing one.

        The last commit stands.
        """
        self._master.stop()
        if self._stepping.acquire(blocking=False):
            try:
                self._master.end()
            finally:  # another program may own the run by now, but its workers are ours
                try:
                    self._master.close()
                finally:
                    self._stepping.release()

    def checkpoint_data(self) -> bytes:
        """Everything that is needed to continue the run elsewhere with ``start(data, compute, …)``.

        For a held superstep it has the records of completed vertices, failures and questions, so that only the other
        vertices are computed. It contains data only, no functions.

        Examples
        --------
        >>> import gpu_pregel as gp
        >>> def count(ctx):
        ...     ctx.value += 1
        >>> with gp.agents.start([gp.agents.Vertex("a", 0)], count, max_supersteps=5) as agents:
        ...     _ = agents.step(), agents.step()
        ...     data = agents.checkpoint_data()
        >>> with gp.agents.start(data, count, max_supersteps=5) as agents:
        ...     while agents.step():
        ...         pass
        ...     agents.result().values
        {'a': 5}
        """
        policy = self._policy
        return RunSnapshot.of(self.run_id, self._branch, self._master.superstep, policy.state, policy.ledger).pack()

    @property
    def superstep_state(self) -> SuperstepState | None:
        """The state of the superstep that is running or held; None between two supersteps.

        While :meth:`step` runs a superstep, observers, compute functions in this process and other threads read it.

        Examples
        --------
        >>> import gpu_pregel as gp
        >>> def compute(ctx):
        ...     states.append({name: one.status for name, one in agents.superstep_state.items()})
        >>> states = []
        >>> with gp.agents.start([gp.agents.Vertex("a"), gp.agents.Vertex("b")], compute) as agents:
        ...     _ = agents.step()
        >>> states
        [{'a': 'in_progress', 'b': 'pending'}, {'a': 'completed', 'b': 'in_progress'}]
        """
        return self._policy.progress()

    def result(self) -> AgentResult:
        """The current result."""
        policy, superstep = self._policy, self._master.superstep
        state, ledger = policy.state, policy.ledger
        failed, interrupts = ({}, {}) if ledger is None else (ledger.failures(state.vertices), ledger.interrupts())
        return AgentResult(
            vertices=VertexMapping(dict(state.vertices)),
            status=self.status,
            failed=decode_failures({**state.failed, **failed}),
            superstep=superstep,
            aggregates=decode_aggregates(state.aggregates),
            interrupts=decode_interrupts(interrupts),
            trace=Trace(self._master.trace),
            timers={decode(vertex): when for vertex, when in state.timers.items()},
            cancelled=[] if ledger is None else list(map(decode, ledger.cancelled)),
        )

    def __enter__(self) -> AgentRun:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self.status not in ENDED:
                self._policy.observe("end", {"status": self.status})
        finally:
            self._master.close()


def _transport(options: RunOptions, partition_options: PartitionOptions, *, in_slices: bool) -> Transport:
    if options.workers:
        from gpu_pregel.host.agents.workers.pool import WorkerPool

        return WorkerPool(partition_options, options.workers)
    if options.threads:
        return ThreadTransport(partition_options, options.threads, in_slices=in_slices, quick=options.quick)
    return InProcessTransport(partition_options, in_slices=in_slices)

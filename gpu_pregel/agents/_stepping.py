"""A run of agents under way: its steps, and what a user may see and do between them."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

from gpu_pregel.agents._given import Call, Vertex, new_run_id
from gpu_pregel.agents._results import AgentResult, Failed, Vertices
from gpu_pregel.errors import ArgumentError
from gpu_pregel.host.agents.codec import decode, encode, id_key
from gpu_pregel.host.agents.collecting import patience
from gpu_pregel.host.agents.executor import Job
from gpu_pregel.host.agents.policy import AgentPolicy
from gpu_pregel.host.agents.saving import Checkpoint
from gpu_pregel.host.agents.transport import InProcess, Transport
from gpu_pregel.host.master import ENDED, Master
from gpu_pregel.trace import Trace


class AgentRun:
    """A run under way: made by :func:`start`, and ended by leaving its ``with`` block or by :meth:`stop`.

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

    def __init__(self, given: Iterable[Vertex] | bytes, call: Call) -> None:
        saved = Checkpoint.unpack(given) if isinstance(given, bytes) else None
        if saved is None:
            assert not isinstance(given, bytes)
            state, run_id = call.load(given), call.run_id or new_run_id()
            superstep = 0
        else:
            state, run_id, superstep = saved.state, saved.run_id, saved.superstep
            call.check_fits(state)
        rules, job = call.rules(), call.job(run_id)
        self.run_id = run_id
        self._transport = _transport(call.workers, job)
        self._policy = AgentPolicy(job, rules, state, self._transport, call.observers)
        self._master = Master(
            self._policy, max_supersteps=call.max_supersteps, observe=self._policy.observe, superstep=superstep
        )
        if saved is not None and saved.segment is not None:
            self._master.order = self._policy.take_over(saved.segment, saved.answers)
        self._stepping = threading.Lock()

    @property
    def status(self) -> str:
        """How it stands."""
        return self._master.status

    def step(self) -> bool:
        """Run a superstep, or what is left of a held one; whether another may follow."""
        with self._stepping, patience(beside_users_code=self._transport.is_local):
            goes_on = self._master.step()
            if self.status == "stopped":
                self._policy.close()
            return goes_on

    def retry(self, vertices: Iterable[Any] | None = None) -> None:
        """Give failed vertices of the held superstep new attempts, with the same input; default: all of them."""
        failed = self._policy.failures()
        chosen = list(failed) if vertices is None else list(vertices)
        unknown = [vertex for vertex in chosen if vertex not in failed]
        if unknown:
            raise ArgumentError(f"vertex {unknown[0]!r} has not failed in a held superstep: failed are {list(failed)}")
        if self._policy.ledger is not None:
            self._policy.ledger.retry([encode(vertex) for vertex in chosen])

    def answer(self, vertex: Any, answer: Any) -> None:
        """Answer a vertex's interrupt: it runs again, from its start, with the next :meth:`step`."""
        waiting = self._policy.interrupts()
        if vertex not in waiting or self._policy.ledger is None:
            raise ArgumentError(f"vertex {vertex!r} waits for no answer: waiting are {list(waiting)}")
        self._policy.ledger.answer(encode(vertex), encode(answer, name="answer"))

    def send(self, target: Any, message: Any) -> None:
        """Send a message from outside, for the next superstep; a run that had completed goes on.

        It comes after the messages of vertices. While a superstep is held, it is for the one after that.
        """
        if self.status in ENDED - {"completed", "partial"}:
            raise ArgumentError(f"the run has ended ({self.status}): nobody would see the message")
        vertex = id_key(target, name="target")
        if vertex not in self._policy.state.vertices:
            raise ArgumentError(f"there is no vertex {target!r} to send a message to")
        self._policy.send(vertex, encode(message, name="message"))
        if self._policy.ledger is None:
            self._master.refresh()

    def stop(self) -> None:
        """End the run and its workers: after the superstep that another thread computes just now, else where it is.

        The last commit stands.
        """
        self._master.stop()
        if self._stepping.acquire(blocking=False):
            try:
                self._master.end()
                self._policy.close()
            finally:
                self._stepping.release()

    def checkpoint_data(self) -> bytes:
        """All that the run needs to go on elsewhere: ``start(data, compute, …)`` takes it up.

        Of a held superstep it has the records of vertices that have completed, failures and questions, so that only
        the others are computed then. It holds data alone, no functions.

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
        return Checkpoint.of(self.run_id, self._master.superstep, self._policy.state, self._policy.ledger).pack()

    def result(self) -> AgentResult:
        """What there is now."""
        policy, superstep = self._policy, self._master.superstep
        state, ledger = policy.state, policy.ledger
        failed = {
            decode(vertex): Failed(step, *failure[:4], [decode(message) for message in messages])
            for vertex, (step, failure, messages) in state.failed.items()
        }
        for vertex, failure in policy.failures().items():
            messages = [] if ledger is None else ledger.entry(encode(vertex)).messages
            failed[vertex] = Failed(superstep, *failure[:4], [decode(message) for message in messages])
        return AgentResult(
            vertices=Vertices(dict(state.vertices)),
            status=self.status,
            failed=failed,
            superstep=superstep,
            aggregates={name: decode(value) for name, value in state.aggregates.items()},
            interrupts=policy.interrupts(),
            trace=Trace(self._master.trace),
        )

    def __enter__(self) -> AgentRun:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self.status not in ENDED:
                self._policy.observe("end", {"status": self.status})
        finally:
            self._policy.close()


def _transport(workers: int, job: Job) -> Transport:
    if workers == 0:
        return InProcess(job)
    from gpu_pregel.host.agents.workers import Workers

    return Workers(job, workers)

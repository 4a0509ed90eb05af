"""The master: one superstep loop for numeric and agent vertices.

It owns the clock, the phases, the termination rule, limits, stopping, the trace and the journal. A policy decides what
differs between kinds of vertices.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from time import perf_counter
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

from gpu_pregel.host.superstep.journal import FoldedSuperstep, Journal, PolicyChange

COMMIT, AGAIN = "commit", "again"
LONG_RUN = 10_000
"""A run without a limit that passes this many supersteps says how to limit or stop it."""
ENDED = frozenset({"completed", "partial", "halted", "max_supersteps", "stopped", "cancelled", "waiting"})
"""The statuses of a run that has ended, or waits for a time."""

Order = TypeVar("Order")
Reports = TypeVar("Reports")


class Start(NamedTuple, Generic[Order]):
    """Where a run stands before its next superstep.

    Attributes
    ----------
    active : int or None
        Number of active vertices; None before superstep 0, which determines it.
    halted : bool
        Whether the program has ended the run.
    order : object, optional
        The order of that superstep, if an earlier program began it.
    status : str
        "running", or the status in which that superstep is held or the run has ended.
    """

    active: int | None
    halted: bool = False
    order: Order | None = None
    status: str = "running"


Waits = Generator[float | None, None, Reports]
"""Work that returns ``Reports``. It yields where it waits for the partitions, with the time until which it waits."""


class Policy(Protocol[Order, Reports, PolicyChange]):
    """The decisions that the master leaves to a kind of vertices."""

    def begin(self, superstep: int) -> Start[Order]:
        """Return where the run stands before a superstep."""

    def order(self, superstep: int) -> Order:
        """Decide what the partitions do: in which direction, or which vertices are computed."""

    def execute(self, superstep: int, order: Order, limit: int, journal: Journal | None) -> Waits[Reports]:
        """Let the partitions execute one superstep or, where that is faster, up to ``limit``; return their reports."""

    def wait(self, until: float | None) -> None:
        """Block until the partitions have something to report, or until a time on the monotonic clock."""

    def judge(self, reports: Reports, journal: Journal | None) -> str:
        """Return ``COMMIT``, ``AGAIN`` to execute the rest, or the status in which the superstep is held.

        Errors in reports that only folding finds may be found here, as failures of those who made them.
        """

    def fold(self, reports: Reports, seconds: float) -> Iterable[FoldedSuperstep[PolicyChange]]:
        """Fold each superstep's reports; errors in them are raised here, before anything changes."""

    def commit(self, folded: FoldedSuperstep[PolicyChange]) -> None:
        """Make a superstep visible to the partitions; repeating it changes nothing."""

    def receive(self, part: Any) -> None:
        """Apply a part from outside, which is already durable."""

    def status_of(self, end: str) -> str:
        """Return the final status of a run that ends as "completed", "halted" or "max_supersteps"."""

    def close(self) -> None:
        """Release what the partitions hold, such as worker processes."""


def limit_problem(begun: int, max_supersteps: int | None) -> str | None:
    """Return why a run that has begun ``begun`` supersteps cannot be resumed with this limit, or None if it can."""
    if max_supersteps is None or begun <= max_supersteps:
        return None
    return (
        f"holds {begun:,} supersteps, more than max_supersteps={max_supersteps}: raise it, or start a new run with "
        f"another run_id"
    )


Observe = Callable[[str, dict[str, Any]], None]
"""Called with "superstep" (one begins, or continues), "commit" (with its row), "hold" and "end" (with the status)."""


class Master(Generic[Order, Reports, PolicyChange]):
    """Runs supersteps until no vertex is active, the program ends the run, or a limit is reached.

    Parameters
    ----------
    policy : Policy
    max_supersteps : int or None
        Maximum number of supersteps; 3 runs supersteps 0, 1 and 2.
    observe : callable, optional
    journal : Journal, optional
        Makes commits durable before they become visible.
    superstep : int
        The first superstep to run, if the run is resumed.
    trace : list of dict
        The rows of the supersteps so far.
    """

    def __init__(
        self,
        policy: Policy[Order, Reports, PolicyChange],
        *,
        max_supersteps: int | None,
        observe: Observe | None = None,
        journal: Journal | None = None,
        superstep: int = 0,
        trace: Iterable[dict[str, Any]] = (),
    ) -> None:
        self.superstep, self.trace = superstep, list(trace)
        self._policy, self._max, self._observe, self._journal = policy, max_supersteps, observe, journal
        start = policy.begin(superstep)
        self._active, self._halted, self.status = start.active, start.halted, start.status
        self.order: Order | None = start.order
        """The order of the superstep that is running or held."""
        self._stopping = self._continues = False
        """Whether the run ends at its next commit; whether it goes on if not."""

    def run(self) -> str:
        """Step until the run has ended or is held; return its status."""
        while self.step():
            pass
        return self.status

    def step(self) -> bool:
        """Run a superstep, or the rest of one that was held; return whether another may follow."""
        for until in self.advance():
            self._policy.wait(until)
        return self.status == "running"

    def advance(self) -> Waits[None]:
        """Run a superstep, or the rest of one that was held; the caller waits whenever this yields.

        It is the one loop of programs that block and of those on an event loop. If it is closed while it waits, the
        next call continues the superstep.
        """
        if self.status in ENDED:
            return
        policy, journal, begin = self._policy, self._journal, perf_counter()
        if self.order is None:
            may_end = self._stopping or not self._continues
            if may_end and (end := self._find_end(self._active, self._halted)) is not None:
                self._rest(end)
                return
            self.order = policy.order(self.superstep)
        if self._observe is not None:
            self._observe("superstep", {"active": self._active})
        self.status = "running"
        # To the limit, or to the next commit in the store.
        limit = sys.maxsize if self._max is None else self._max - self.superstep
        if journal is not None:
            limit = min(limit, journal.until_commit(self.superstep))
        while True:
            reports = yield from policy.execute(self.superstep, self.order, limit, journal)
            verdict = policy.judge(reports, journal)
            if verdict != AGAIN:
                break
        if verdict != COMMIT:
            self._rest(verdict)
            return
        steps = list(policy.fold(reports, perf_counter() - begin))
        for folded in steps:
            self._commit(folded, is_last=folded is steps[-1])

    def stop(self) -> None:
        """End the run at its next commit; may be called from a signal handler or another thread."""
        self._stopping = True

    @property
    def is_stopping(self) -> bool:
        """Whether the run is to end at its next commit."""
        return self._stopping

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to compute or to wait for."""
        return self.order is None and self._find_end(self._active, self._halted, may_stop=False) not in (
            None,
            "waiting",
        )

    def receive(self, *parts: Any, taken: Sequence[int] = ()) -> None:
        """Accept answers, retries or messages from outside, between two calls of :meth:`step`.

        They are durable when this returns, and the requests ``taken`` are removed from the store. A run that had
        completed continues if a vertex becomes active.
        """
        if self._journal is not None:
            self._journal.record(*parts, taken=taken)
        if not parts:
            return
        for part in parts:
            self._policy.receive(part)
        if self.order is None:
            start = self._policy.begin(self.superstep)
            self._active, self._halted, self._continues = start.active, start.halted, False
            if self.status in ("completed", "partial", "waiting"):
                self.status = "running"

    def end(self, status: str = "stopped") -> None:
        """End the run where it is, between two calls of :meth:`step`; the last commit stands."""
        if self.status not in ENDED - {"waiting"}:
            self._rest(status)

    def close(self) -> None:
        """Release the partitions and the claim on the store."""
        try:
            self._policy.close()
        finally:
            if self._journal is not None:
                self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _find_end(self, active: int | None, halted: bool, *, may_stop: bool = True) -> str | None:
        """Return the status of a run that ends before the next superstep, or None if it continues."""
        if halted:
            return self._policy.status_of("halted")
        if active == 0:
            return self._policy.status_of("completed")
        if self._max is not None and self.superstep >= self._max:
            return self._policy.status_of("max_supersteps")
        return "stopped" if self._stopping and may_stop else None

    def _commit(self, folded: FoldedSuperstep[PolicyChange], *, is_last: bool) -> None:
        """Make a superstep durable, then visible to the partitions, then known to the observers.

        ``is_last``: whether it is the last of those executed together, where the partitions are.
        """
        self.superstep = folded.superstep + 1
        end = self._find_end(folded.active, folded.halted, may_stop=is_last)
        try:
            if self._journal is not None:
                self._journal.commit(folded, end or "running")
            self._policy.commit(folded)
        except BaseException:
            self.superstep = folded.superstep
            raise
        self._active, self.order, self._continues = folded.active, None, end is None
        self.status = end or "running"
        if self._max is None and end is None and self.superstep == LONG_RUN + 1:
            print(
                f"the run has passed {LONG_RUN:,} supersteps and has no limit: Ctrl-C stops it, max_supersteps=N "
                f"limits it",
                file=sys.stderr,
                flush=True,
            )
        self.trace.append(folded.row)
        if self._observe is not None:
            self._observe("commit", folded.row)
            if end is not None:
                self._observe("end", {"status": end})

    def _rest(self, status: str) -> None:
        """Hold the running superstep, or end the run before the next one."""
        if self._journal is not None:
            self._journal.hold(self.superstep, status)
        self.status = status
        if self._observe is not None:
            self._observe("end" if status in ENDED else "hold", {"status": status})

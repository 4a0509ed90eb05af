"""The master: one superstep loop for numeric and for agent vertices.

It has the clock, the phases, the rule when a run ends, limits, stopping, the trace and whom it tells; what differs
between kinds of vertices is their policy's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

COMMIT, AGAIN = "commit", "again"
ENDED = frozenset({"completed", "partial", "halted", "max_supersteps", "stopped"})
"""The statuses of a run that does not go on."""

Order = TypeVar("Order")
Reports = TypeVar("Reports")


class Folded(NamedTuple):
    """What a superstep left, once the reports of all partitions are folded: it is committed as a whole.

    Attributes
    ----------
    superstep : int
    active : int
        Vertices that are active next.
    halted : bool
        Whether the user's program says that the run ends here.
    change : object
        What the policy commits.
    row : dict
        Of the trace.
    """

    superstep: int
    active: int
    halted: bool
    change: Any
    row: dict[str, Any]


class Policy(Protocol[Order, Reports]):
    """What the master asks of a kind of vertices: it decides, and reaches the partitions by their transport."""

    def begin(self, superstep: int) -> tuple[int | None, bool]:
        """Vertices that are active at first, None if the first superstep finds out; whether the program has ended."""

    def order(self, superstep: int) -> Order:
        """Decide what the partitions do: in which direction, or who is computed."""

    def execute(self, superstep: int, order: Order, most: int) -> Reports:
        """Let the partitions do it, for one superstep or, if that pays, for up to ``most``."""

    def judge(self, reports: Reports) -> str:
        """``COMMIT``, ``AGAIN`` to execute what is left, or the status in which the superstep is held."""

    def fold(self, reports: Reports, seconds: float) -> Iterable[Folded]:
        """Fold each superstep's reports; whatever is wrong with them is raised here, and nothing has changed."""

    def commit(self, folded: Folded) -> None:
        """Make it visible to the partitions; doing so again changes nothing."""

    def status_of(self, end: str) -> str:
        """The status of a run that ends as "completed", "halted" or "max_supersteps"."""


class Journal(Protocol):
    """Where commits become durable, before they become visible."""

    def commit(self, folded: Folded, status: str) -> None:
        """Keep a superstep, after which the run is "running" or has ended; doing so again changes nothing."""

    def hold(self, superstep: int, status: str) -> None:
        """Keep what there is of a superstep that is held, or that the run stops in."""


Observe = Callable[[str, dict[str, Any]], None]
"""Told "superstep" (one begins, or goes on), "commit" (with its row), "hold" and "end" (with the status)."""


class Master(Generic[Order, Reports]):
    """Runs superstep after superstep until nothing is active, the program says so, or there have been enough.

    Parameters
    ----------
    policy : Policy
    max_supersteps : int or None
        3 runs the supersteps 0, 1 and 2.
    observe : callable
    journal : Journal, optional
    superstep : int
        That comes next, for a run that goes on.
    trace : list of dict
        The rows so far.
    """

    def __init__(
        self,
        policy: Policy[Order, Reports],
        *,
        max_supersteps: int | None,
        observe: Observe,
        journal: Journal | None = None,
        superstep: int = 0,
        trace: Iterable[dict[str, Any]] = (),
    ) -> None:
        self.superstep, self.trace, self.status = superstep, list(trace), "running"
        self.order: Order | None = None
        """Of the superstep that is under way or held."""
        self._policy, self._max, self._observe, self._journal = policy, max_supersteps, observe, journal
        self._active, self._halted = policy.begin(superstep)
        self._stopping = False

    def run(self) -> str:
        """Step until the run has ended or is held; its status."""
        while self.step():
            pass
        return self.status

    def step(self) -> bool:
        """Run a superstep, or what is left of one that was held; whether another may follow."""
        if self.status in ENDED:
            return False
        policy, begin = self._policy, perf_counter()
        if self.order is None:
            end = self._find_end(self._active, self._halted)
            if end is not None:
                return self._rest(end)
            self.order = policy.order(self.superstep)
        self._observe("superstep", {"active": self._active})
        self.status = "running"
        while True:
            reports = policy.execute(self.superstep, self.order, self._most())
            verdict = policy.judge(reports)
            if verdict != AGAIN:
                break
        if verdict != COMMIT:
            return self._rest(verdict)
        for folded in policy.fold(reports, perf_counter() - begin):
            self._commit(folded)
        return self.status == "running"

    def stop(self) -> None:
        """Let the run end at its next commit; may be called from a signal handler or another thread."""
        self._stopping = True

    def refresh(self) -> None:
        """Ask anew what is active, as something came from outside; a run that had completed goes on."""
        self._active, self._halted = self._policy.begin(self.superstep)
        if self.status in ("completed", "partial"):
            self.status = "running"

    def end(self) -> None:
        """End the run where it stands, between two calls of :meth:`step`; the last commit stands."""
        if self.status not in ENDED:
            self._rest("stopped")

    def _most(self) -> int:
        """Supersteps that may be executed together; where each commit is kept, one."""
        if self._journal is not None:
            return 1
        return sys.maxsize if self._max is None else self._max - self.superstep

    def _find_end(self, active: int | None, halted: bool) -> str | None:
        """The status of a run that ends before the superstep that comes next, or None if it goes on."""
        if halted:
            return self._policy.status_of("halted")
        if active == 0:
            return self._policy.status_of("completed")
        if self._max is not None and self.superstep >= self._max:
            return self._policy.status_of("max_supersteps")
        return "stopped" if self._stopping else None

    def _commit(self, folded: Folded) -> None:
        """Make a superstep durable, then visible, then known."""
        self.superstep = folded.superstep + 1
        end = self._find_end(folded.active, folded.halted)
        try:
            if self._journal is not None:
                self._journal.commit(folded, end or "running")
            self._policy.commit(folded)
        except BaseException:
            self.superstep = folded.superstep
            raise
        self._active, self.order = folded.active, None
        self.status = end or "running"
        self.trace.append(folded.row)
        self._observe("commit", folded.row)
        if end is not None:
            self._observe("end", {"status": end})

    def _rest(self, status: str) -> bool:
        """Hold the superstep that is under way, or end before the next one."""
        if self._journal is not None:
            self._journal.hold(self.superstep, status)
        self.status = status
        self._observe("end" if status in ENDED else "hold", {"status": status})
        return False

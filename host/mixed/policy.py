"""The policy of a run with numeric vertices and agents: both are computed side by side and committed together."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

from gpu_pregel.host.agents.ledger import Ledger
from gpu_pregel.host.agents.policy import AgentPolicy
from gpu_pregel.host.mixed.change import MixedChange
from gpu_pregel.host.mixed.format import MixedFormat
from gpu_pregel.host.mixed.numeric_side import NumericSide
from gpu_pregel.host.programs.policy import NumericPolicy
from gpu_pregel.host.programs.state import SuperstepFigures
from gpu_pregel.host.superstep.journal import FoldedSuperstep, Journal
from gpu_pregel.host.superstep.master import COMMIT, Start, Waits

Item = TypeVar("Item")


class MixedOrder(NamedTuple):
    """The direction in which messages move along edges, and the agents to compute."""

    direction: str
    ledger: Ledger


class MixedPolicy:
    """The policy of a run in which agents are computed beside the vertices of a program.

    In a superstep agents compute what the last one left, while kernels run. What they return and send reaches the
    numeric vertices when the superstep is folded, after the kernels.

    Parameters
    ----------
    numeric : NumericPolicy
    agents : AgentPolicy
    side : NumericSide
    format : MixedFormat or None
        The format of the run's journal, if it has one.
    has_wake : bool
        Whether vertices of the program wake agents.
    max_lag : int
        How many supersteps may end before the agents that begin in the first of them.
    max_supersteps : int or None
    begun_at : int, optional
        The superstep in which agents began that an earlier program has not seen end.
    """

    def __init__(
        self,
        numeric: NumericPolicy,
        agents: AgentPolicy,
        side: NumericSide,
        format: MixedFormat | None,
        *,
        has_wake: bool,
        max_lag: int = 0,
        max_supersteps: int | None = None,
        begun_at: int | None = None,
    ) -> None:
        self._numeric, self._agents, self._side, self._format = numeric, agents, side, format
        self._has_wake, self._max_lag, self._begun_at = has_wake, max_lag, begun_at
        self._last = None if max_supersteps is None else max_supersteps - 1
        self._ledger: Ledger | None = None
        """The agents that are being computed, since superstep ``_begun_at``."""
        self._is_open, self._waits_for_all, self._woken = False, False, 0
        self.wait = agents.wait
        agents.companion = side
        self._reports: list[SuperstepFigures] | None = None
        """The figures of the running superstep, once its kernels have ended."""
        self._folded: FoldedSuperstep[MixedChange] | None = None
        """The running superstep, once its effects are in the arrays; a commit that failed is repeated with it."""

    def begin(self, superstep: int) -> Start[MixedOrder]:
        """Return where the run stands; before superstep 0 the active vertices are unknown."""
        numeric, order, resumes = self._numeric.begin(superstep), None, self._agents.has_begun
        if resumes and superstep == 0:
            self._run_kernels(0, self._numeric.order(0), None)
        agents = self._agents.begin(superstep if self._begun_at is None else self._begun_at)
        if agents.order is not None:
            if self._begun_at is None:
                self._side.clear_due()
            self._side.resume_inputs(None)
            direction = "init" if superstep == 0 else self._numeric.order(superstep)
            self._ledger = agents.order
            order, self._begun_at = MixedOrder(direction, agents.order), agents.order.step
        if numeric.active is None:
            return Start(None, order=order, status=agents.status)
        active = numeric.active + (agents.active or 0) + self._pending()
        return Start(active, numeric.halted, order, "halted" if numeric.halted else agents.status)

    def _pending(self) -> int:
        """Return the number of vertices to compute in the next superstep besides active ones."""
        return len(self._side.due()) + self._side.posted

    def order(self, superstep: int) -> MixedOrder:
        """Choose the direction and the agents, which in superstep 0 see the values of ``init``."""
        direction = self._numeric.order(superstep)
        if superstep == 0:
            self._run_kernels(0, direction, None)
        if self._ledger is None:
            if self._begun_at is None:
                self._begun_at = superstep
                self._ledger = self._agents.order(superstep)
                self._side.clear_due()
            else:  # an earlier program has begun to compute them, and none has ended
                self._ledger = self._agents.order(self._begun_at)
            self._side.resume_inputs(None)
        return MixedOrder(direction, self._ledger)

    def execute(self, superstep: int, order: MixedOrder, limit: int, journal: Journal | None) -> Waits[Ledger]:  # noqa: ARG002
        """Let agents begin, run the kernels, and wait for the agents, unless they may be late."""
        self._is_open, ledger = False, order.ledger
        agents = self._agents.execute(ledger.step, ledger, 1, journal)
        while True:
            try:
                until = next(agents)
            except StopIteration:
                self._run_kernels(superstep, order.direction, journal)
                return ledger
            if self._run_kernels(superstep, order.direction, journal) and self._may_be_late(superstep):
                self.wait(time.monotonic())
                continue
            if self._may_be_late(superstep):
                agents.close()
                self._is_open = True
                return ledger
            yield until

    def _may_be_late(self, superstep: int) -> bool:
        """Whether the superstep may end before its agents."""
        assert self._begun_at is not None
        return superstep - self._begun_at < self._max_lag and not self._waits_for_all

    def _run_kernels(self, superstep: int, direction: str, journal: Journal | None) -> bool:
        """Run the kernels of a superstep, once; return whether they have run now."""
        if self._reports is not None:
            return False
        waits = self._numeric.execute(superstep, direction, 1, journal)
        try:
            next(waits)
        except StopIteration as ended:
            self._reports = ended.value
        self._woken = self._side.find_woken() if self._has_wake and superstep > 0 else 0
        if self._max_lag > 0:
            assert self._reports is not None
            activity, _, totals = one_of(self._reports)
            is_idle = activity.active_vertices == 0  # nothing can run ahead, in superstep after superstep
            is_last = superstep == self._last or self._numeric.decide(superstep, activity, totals).halted
            self._waits_for_all = is_idle or is_last
        return True

    def judge(self, reports: Ledger, journal: Journal | None) -> str:
        """Commit, hold, or compute some agents again; kernels cannot fail."""
        return COMMIT if self._is_open or self._folded is not None else self._agents.judge(reports, journal)

    def fold(self, reports: Ledger, seconds: float) -> Iterable[FoldedSuperstep[MixedChange]]:
        """Carry out what agents do to numeric vertices, and fold both sides into one row."""
        if self._folded is None:
            assert self._reports is not None
            agents = None if self._is_open else one_of(self._agents.fold(reports, seconds))
            figures, superstep = one_of(self._reports), self._numeric.superstep
            activity = self._side.conclude(superstep, figures.activity, figures.totals)
            self._side.find_arrivals()
            numeric = one_of(self._numeric.fold([figures._replace(activity=activity)], seconds))
            row = {
                **numeric.row,
                "woken": self._woken,
                **{name: 0 if agents is None else agents.row[name] for name in ("computed", "failed", "retries")},
                "lag": 0 if agents is None else superstep - reports.step,
            }
            waiting = self._pending() + (len(reports.vertices) if agents is None else agents.active)
            has_agents = bool(row["computed"] or waiting)
            change = MixedChange(numeric.change, agents, reports.step, has_agents)
            is_halted = numeric.halted or (agents is not None and agents.halted)
            self._folded = FoldedSuperstep(superstep, numeric.active + waiting, is_halted, change, row)
        return (self._folded,)

    def commit(self, folded: FoldedSuperstep[MixedChange]) -> None:
        """Make the results of both sides the state."""
        if self._format is not None:
            self._format.note_commit()
        numeric, agents, begun, _ = folded.change
        if agents is not None:
            self._agents.commit(agents)
            for superstep in range(begun + 1, folded.superstep + 1):
                self._agents.tell_partitions(superstep)
            self._begun_at = self._ledger = None
        self._numeric.commit(FoldedSuperstep(*folded[:3], numeric, folded.row))
        self._side.set_parameters(self._numeric.parameters)
        self._reports = self._folded = None

    def receive(self, part: Any) -> None:
        """Apply a part from outside, which is for agents."""
        self._agents.receive(part)

    def status_of(self, end: str) -> str:
        """Return the final status: a run without its failed agents is partial."""
        return self._agents.status_of(end)

    def close(self) -> None:
        """End all workers."""
        self._agents.close()


def one_of(items: Iterable[Item]) -> Item:
    """Return the only item."""
    (item,) = items
    return item

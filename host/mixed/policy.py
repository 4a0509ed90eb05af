"""The policy of a run with numeric vertices and agents: both are computed side by side and committed together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from gpu_pregel.host.agents.ledger import Ledger
from gpu_pregel.host.agents.policy import AgentPolicy
from gpu_pregel.host.mixed.change import MixedChange
from gpu_pregel.host.mixed.format import MixedFormat
from gpu_pregel.host.mixed.numeric_side import NumericSide
from gpu_pregel.host.programs.policy import NumericPolicy
from gpu_pregel.host.programs.state import SuperstepFigures
from gpu_pregel.host.superstep.journal import FoldedSuperstep, Journal
from gpu_pregel.host.superstep.master import Start, Waits


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
    """

    def __init__(
        self,
        numeric: NumericPolicy,
        agents: AgentPolicy,
        side: NumericSide,
        format: MixedFormat | None,
        *,
        has_wake: bool,
    ) -> None:
        self._numeric, self._agents, self._side, self._format = numeric, agents, side, format
        self._has_wake = has_wake
        self.wait = agents.wait
        agents.companion = side
        self._reports: list[SuperstepFigures] | None = None
        """The figures of the running superstep, once its kernels have ended."""
        self._folded: FoldedSuperstep[MixedChange] | None = None
        """The running superstep, once its effects are in the arrays; a commit that failed is repeated with it."""

    def begin(self, superstep: int) -> Start[MixedOrder]:
        """Return where the run stands; before superstep 0 the active vertices are unknown."""
        numeric, order = self._numeric.begin(superstep), None
        if self._agents.has_begun:
            direction = self._numeric.order(superstep)
            if superstep == 0:
                self._run_kernels(0, direction, None)
        agents = self._agents.begin(superstep)
        if agents.order is not None:
            order = MixedOrder(direction, agents.order)
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
        return MixedOrder(direction, self._agents.order(superstep))

    def execute(self, superstep: int, order: MixedOrder, limit: int, journal: Journal | None) -> Waits[Ledger]:  # noqa: ARG002
        """Let agents begin, run the kernels, and wait for the agents."""
        agents = self._agents.execute(superstep, order.ledger, 1, journal)
        while True:
            try:
                until = next(agents)
            except StopIteration as ended:
                self._run_kernels(superstep, order.direction, journal)
                ledger: Ledger = ended.value
                return ledger
            self._run_kernels(superstep, order.direction, journal)
            yield until

    def _run_kernels(self, superstep: int, direction: str, journal: Journal | None) -> None:
        """Run the kernels of a superstep, once."""
        if self._reports is None:
            waits = self._numeric.execute(superstep, direction, 1, journal)
            try:
                next(waits)
            except StopIteration as ended:
                self._reports = ended.value
            if self._has_wake and superstep > 0:
                self._side.find_woken()

    def judge(self, reports: Ledger, journal: Journal | None) -> str:
        """Commit, hold, or compute some agents again; kernels cannot fail."""
        return "commit" if self._folded is not None else self._agents.judge(reports, journal)

    def fold(self, reports: Ledger, seconds: float) -> Iterable[FoldedSuperstep[MixedChange]]:
        """Carry out what agents do to numeric vertices, and fold both sides into one row."""
        if self._folded is None:
            assert self._reports is not None
            (agents,) = self._agents.fold(reports, seconds)
            (figures,) = self._reports
            activity = self._side.conclude(agents.superstep, figures.activity, figures.totals)
            self._side.find_arrivals()
            (numeric,) = self._numeric.fold([figures._replace(activity=activity)], seconds)
            row = {
                **numeric.row,
                "computed": agents.row["computed"],
                "woken": len(self._side.woken),
                "failed": agents.row["failed"],
                "retries": agents.row["retries"],
            }
            pending = self._pending()
            active = numeric.active + agents.active + pending
            change = MixedChange(numeric.change, agents, bool(row["computed"] or agents.active or pending))
            self._folded = FoldedSuperstep(agents.superstep, active, numeric.halted or agents.halted, change, row)
        return (self._folded,)

    def commit(self, folded: FoldedSuperstep[MixedChange]) -> None:
        """Make the results of both sides the state."""
        if self._format is not None:
            self._format.note_commit()
        self._agents.commit(folded.change.agents)
        self._numeric.commit(FoldedSuperstep(*folded[:3], folded.change.numeric, folded.row))
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

"""The policy of numeric vertices: push or pull, how many supersteps to run together, and when the program ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from gpu_pregel.errors import DeviceError
from gpu_pregel.host.programs.directions import DirectionRule
from gpu_pregel.host.programs.master_compute import MasterCompute
from gpu_pregel.host.programs.master_step import Decision
from gpu_pregel.host.programs.program import VertexProgram
from gpu_pregel.host.programs.state import Activity, ProgramState, SuperstepFigures
from gpu_pregel.host.superstep.journal import FoldedSuperstep, Journal
from gpu_pregel.host.superstep.master import COMMIT, Start, Waits
from gpu_pregel.host.superstep.trace import aggregate_columns, without_extremes
from gpu_pregel.kernels.library.compile_clock import compile_seconds


class NumericChange(NamedTuple):
    """What a numeric superstep commits besides the arrays of the state.

    Attributes
    ----------
    activity : Activity
        The vertices that send in the next superstep, and their edges.
    totals : tuple
        The aggregates that ``apply`` sees in the next superstep.
    decision : Decision
        What ``halt`` or ``master`` has decided.
    """

    activity: Activity
    totals: tuple[Any, ...]
    decision: Decision


class NumericPolicy:
    """The policy of a vertex program's run; an order is a direction, and reports are the figures of supersteps.

    Parameters
    ----------
    state : ProgramState
    program : VertexProgram
    directions : DirectionRule
    parameters : tuple of scalars
        Those of superstep 0, of the declared dtypes.
    compute : MasterCompute or None
        Decides after each superstep.
    """

    def __init__(
        self,
        state: ProgramState,
        program: VertexProgram,
        directions: DirectionRule,
        parameters: tuple[Any, ...],
        compute: MasterCompute | None,
    ) -> None:
        self._state, self._directions, self._compute = state, directions, compute
        self._combines = [one.combine for one in program.aggregators.values()]
        self._activity, self._totals = Activity(0, 0), state.initial_totals
        self._decision = Decision(False, parameters)
        self._direction, self._rule, self._superstep, self._compiled = "init", "only", 0, 0.0
        self._sent = 0

    def resume(self, superstep: int, activity: Activity, totals: tuple[Any, ...], decision: Decision | None) -> None:
        """Continue an earlier run whose state has been restored, as it was after a superstep.

        Without a ``decision``, ``halt`` decides again.
        """
        self._activity, self._totals = activity, totals
        if decision is None:
            decision = self.decide(superstep, activity, totals)
        self._decide(decision)

    @property
    def superstep(self) -> int:
        """The superstep that was ordered last."""
        return self._superstep

    @property
    def totals(self) -> tuple[Any, ...]:
        """The aggregates of the last superstep that was committed."""
        return self._totals

    def begin(self, superstep: int) -> Start[str]:
        """Return where the run stands; before superstep 0 the active vertices are unknown."""
        if superstep == 0:
            return Start(None)
        return Start(self._activity.active_vertices, self._decision.halted)

    def order(self, superstep: int) -> str:
        """Choose the direction; superstep 0 initialises."""
        self._superstep, self._compiled = superstep, compile_seconds()
        self._direction = self._directions.choose(self._activity, self._sent) if superstep else "init"
        self._rule = self._directions.name(self._activity, self._sent) if superstep else "only"
        return self._direction

    def execute(
        self,
        superstep: int,
        order: str,
        limit: int,
        journal: Journal | None,  # noqa: ARG002
    ) -> Waits[list[SuperstepFigures]]:
        """Run a superstep; a device may run several at once if nothing is decided between them."""
        yield from ()  # waits for nothing
        if superstep == 0:
            return [SuperstepFigures(self._state.initialise(), 0, self._totals)]
        limit = limit if self._compute is None else 1
        reports = self._state.execute(order, superstep, self._activity, self._totals, limit)
        if not reports:
            raise DeviceError(f"superstep {superstep} reports nothing, so that the run would not advance: report this")
        return reports

    def wait(self, until: float | None) -> None:
        """Return: kernels have ended when ``execute`` has."""

    def judge(self, reports: list[SuperstepFigures], journal: Journal | None) -> str:  # noqa: ARG002
        """Commit every superstep: the kernels of single vertices cannot fail."""
        return COMMIT

    def fold(self, reports: list[SuperstepFigures], seconds: float) -> list[FoldedSuperstep[NumericChange]]:
        """Make a row of the trace for each superstep; kernels were compiled in the first one."""
        direction, sent, superstep = self._direction, self._activity, self._superstep
        compiled = compile_seconds() - self._compiled
        seconds = (max(0.0, seconds - compiled) if compiled else seconds) / len(reports)
        result: list[FoldedSuperstep[NumericChange]] = []
        for activity, applied, totals in reports:
            shown: Sequence[Any] = totals
            if not applied:
                shown = without_extremes(self._combines, totals, self._state.initial_totals)
            row = {
                "superstep": superstep,
                "direction": direction,
                "rule": self._rule,
                "active_vertices": activity.active_vertices,
                "active_edges": activity.active_edges,
                "messages": sent.active_edges,
                "applied": applied,
                "seconds": seconds,
                "compile_seconds": compiled,
                "bytes": self._state.bytes_moved(direction, sent),
                **aggregate_columns(self._state.aggregate_names, shown),
            }
            decision = self.decide(superstep, activity, totals)
            change = NumericChange(activity, totals, decision)
            result.append(FoldedSuperstep(superstep, activity.active_vertices, decision.halted, change, row))
            superstep, sent, compiled = superstep + 1, activity, 0.0
        return result

    @property
    def parameters(self) -> tuple[Any, ...]:
        """The parameters that the next superstep sees."""
        return self._decision.parameters

    def decide(self, superstep: int, activity: Activity, totals: tuple[Any, ...]) -> Decision:
        """Return what the program decides after a superstep."""
        if self._compute is None:
            return Decision(False, self.parameters)
        return self._compute.decide(superstep, activity.active_vertices, totals, self.parameters)

    def _decide(self, decision: Decision) -> None:
        self._decision = decision
        self._state.change_parameters(decision.parameters)

    def commit(self, folded: FoldedSuperstep[NumericChange]) -> None:
        """Start the next superstep from here; values and frontier are already in place."""
        self._sent += self._activity.active_edges
        self._activity, self._totals, decision = folded.change
        self._decide(decision)

    def receive(self, part: Any) -> None:
        """Refuse the part: numeric vertices receive nothing from outside."""
        raise NotImplementedError(part)

    def close(self) -> None:
        """Release nothing: the state has only arrays."""

    def status_of(self, end: str) -> str:
        """Return ``end``: no other statuses are needed, as single vertices cannot fail."""
        return end

"""The policy of numeric vertices: push or pull, how many supersteps to run together, and when the program ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpu_pregel.errors import DeviceError
from gpu_pregel.host.programs.directions import DirectionRule
from gpu_pregel.host.programs.state import Activity, ProgramState, SuperstepFigures
from gpu_pregel.host.superstep.journal import FoldedSuperstep, Journal
from gpu_pregel.host.superstep.master import COMMIT, Start, Waits
from gpu_pregel.host.superstep.trace import AGGREGATED
from gpu_pregel.kernels.library.compile_clock import compile_seconds


class NumericChange(NamedTuple):
    """What a numeric superstep commits besides the arrays of the state.

    Attributes
    ----------
    activity : Activity
        The vertices that send in the next superstep, and their edges.
    totals : tuple
        The aggregates that ``apply`` sees in the next superstep.
    """

    activity: Activity
    totals: tuple[Any, ...]


def aggregate_columns(names: Sequence[str], totals: Sequence[Any]) -> dict[str, Any]:
    """Return the columns of a row of the trace for the aggregates of a superstep."""
    numbers = (total.item() if isinstance(total, np.generic) else total for total in totals)
    return {f"{AGGREGATED}{name}": number for name, number in zip(names, numbers, strict=True)}


class NumericPolicy:
    """The policy of a vertex program's run; an order is a direction, and reports are the figures of supersteps.

    Parameters
    ----------
    state : ProgramState
    directions : DirectionRule
    halt : callable or None
        Called with the aggregates after each superstep from superstep 1 on; true ends the run.
    start : (Activity, tuple), optional
        Activity and aggregates of an earlier run whose state ``state`` has.
    """

    def __init__(
        self,
        state: ProgramState,
        directions: DirectionRule,
        *,
        halt: Callable[[tuple[Any, ...]], Any] | None,
        start: tuple[Activity, tuple[Any, ...]] | None = None,
    ) -> None:
        self._state, self._directions, self._halt = state, directions, halt
        self._activity, self._totals = start or (Activity(0, 0), state.initial_totals)
        self._direction, self._superstep, self._compiled = "init", 0, 0.0
        self._sent = 0

    def resume(self, activity: Activity, totals: tuple[Any, ...]) -> None:
        """Continue an earlier run whose state has been restored."""
        self._activity, self._totals = activity, totals

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
        return Start(self._activity.active_vertices, self.is_halted(superstep - 1, self._totals))

    def order(self, superstep: int) -> str:
        """Choose the direction; superstep 0 initialises."""
        self._superstep, self._compiled = superstep, compile_seconds()
        self._direction = self._directions.choose(self._activity, self._sent) if superstep else "init"
        return self._direction

    def execute(
        self,
        superstep: int,
        order: str,
        limit: int,
        journal: Journal | None,  # noqa: ARG002
    ) -> Waits[list[SuperstepFigures]]:
        """Run a superstep; without ``halt`` a device may run several before the host reads their figures."""
        yield from ()  # waits for nothing
        if superstep == 0:
            return [SuperstepFigures(self._state.initialise(), 0, self._totals)]
        limit = limit if self._halt is None else 1
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
            row = {
                "superstep": superstep,
                "direction": direction,
                "active_vertices": activity.active_vertices,
                "active_edges": activity.active_edges,
                "messages": sent.active_edges,
                "applied": applied,
                "seconds": seconds,
                "compile_seconds": compiled,
                "bytes": self._state.bytes_moved(direction, sent),
                **aggregate_columns(self._state.aggregate_names, totals),
            }
            halted = self._halt is not None and self.is_halted(superstep, totals)
            result.append(
                FoldedSuperstep(superstep, activity.active_vertices, halted, NumericChange(activity, totals), row)
            )
            superstep, sent, compiled = superstep + 1, activity, 0.0
        return result

    def is_halted(self, superstep: int, totals: tuple[Any, ...]) -> bool:
        """Whether the program's ``halt`` ends the run after a superstep."""
        return superstep > 0 and self._halt is not None and bool(self._halt(totals))

    def commit(self, folded: FoldedSuperstep[NumericChange]) -> None:
        """Start the next superstep from here; values and frontier are already in place."""
        self._sent += self._activity.active_edges
        self._activity, self._totals = folded.change

    def receive(self, part: Any) -> None:
        """Refuse the part: numeric vertices receive nothing from outside."""
        raise NotImplementedError(part)

    def close(self) -> None:
        """Release nothing: the state has only arrays."""

    def status_of(self, end: str) -> str:
        """Return ``end``: no other statuses are needed, as single vertices cannot fail."""
        return end

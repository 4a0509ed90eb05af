"""What the master asks of numeric vertices: push or pull, how many supersteps at once, and when the program ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gpu_pregel.host.programs.compiler import CompiledProgram
from gpu_pregel.host.programs.cpu_state import Plan, Run, Step
from gpu_pregel.host.programs.program import VertexProgram
from gpu_pregel.host.superstep.journal import Folded, Journal
from gpu_pregel.host.superstep.master import COMMIT, Start

PULL_SHARE = 20
"""Push while active edges are below one in so many of the stored ones (Gemini's threshold)."""


@dataclass(frozen=True)
class Directions:
    """Which directions a run may take.

    Attributes
    ----------
    mode : {"auto", "push", "pull"}
    can_push : bool
    stored_edges : int
    """

    mode: str
    can_push: bool
    stored_edges: int

    def choose(self, plan: Plan) -> str:
        """Push where few edges are active, else pull; or as ``mode`` says."""
        if self.mode != "auto":
            return self.mode
        if not self.can_push:
            return "pull"
        return "push" if plan.active_edges * PULL_SHARE < self.stored_edges else "pull"


class NumericPolicy:
    """The policy of a vertex program's run; an order is a direction, and a report a superstep's figures.

    Parameters
    ----------
    run : Run
        The state on the device, and the phases on its partitions.
    directions : Directions
    always : bool
        Whether every vertex applies in every superstep, so that ``max_supersteps`` is an end like any other.
    halt : callable or None
        Asked, from superstep 1 on, about the aggregates.
    start : (Plan, tuple), optional
        What is active, and the aggregates, of an earlier run whose state ``run`` has.
    """

    def __init__(
        self,
        run: Run,
        directions: Directions,
        *,
        always: bool,
        halt: Callable[[tuple[Any, ...]], Any] | None,
        start: tuple[Plan, tuple[Any, ...]] | None = None,
    ) -> None:
        self._run, self._directions, self._always, self._halt = run, directions, always, halt
        self._plan, self._totals = start or (Plan(0, 0), run.fold())
        self._direction, self._superstep = "init", 0

    def begin(self, superstep: int) -> Start[str]:
        """Before superstep 0 the active vertices are unknown: ``init`` finds them."""
        if superstep == 0:
            return Start(None)
        return Start(self._plan.active_vertices, self._is_halted(superstep - 1, self._totals))

    def order(self, superstep: int) -> str:
        """Superstep 0 initialises; the others push or pull."""
        self._superstep = superstep
        self._direction = self._directions.choose(self._plan) if superstep else "init"
        return self._direction

    def execute(self, superstep: int, order: str, limit: int, journal: Journal | None) -> list[Step]:  # noqa: ARG002
        """Run a superstep; where nothing looks between two, a device may run several before its figures are read."""
        if superstep == 0:
            return [Step(self._run.initialise(), 0, self._totals)]
        return self._run.execute(order, superstep, self._plan, self._totals, limit if self._halt is None else 1)

    def judge(self, reports: list[Step], journal: Journal | None) -> str:  # noqa: ARG002
        """Commit: kernels do not fail one by one."""
        return COMMIT

    def fold(self, reports: list[Step], seconds: float) -> list[Folded]:
        """A row for each superstep."""
        run, direction, sent, superstep = self._run, self._direction, self._plan, self._superstep
        seconds /= len(reports)
        result = []
        for plan, applied, totals in reports:
            row = {
                "superstep": superstep,
                "direction": direction,
                "active_vertices": plan.active_vertices,
                "active_edges": plan.active_edges,
                "messages": sent.active_edges,
                "applied": applied,
                "seconds": seconds,
                "bytes": run.bytes_moved(direction, sent),
            }
            halted = self._halt is not None and self._is_halted(superstep, totals)
            result.append(Folded(superstep, plan.active_vertices, halted, (plan, totals), row))
            superstep, sent = superstep + 1, plan
        return result

    def _is_halted(self, superstep: int, totals: tuple[Any, ...]) -> bool:
        """Whether the program's ``halt`` ends the run after a superstep."""
        return superstep > 0 and self._halt is not None and bool(self._halt(totals))

    def commit(self, folded: Folded) -> None:
        """The next superstep starts from here; values and frontier are in place already."""
        self._plan, self._totals = folded.change

    def receive(self, part: Any) -> None:
        """Nothing reaches numeric vertices from outside."""
        raise NotImplementedError(part)

    def close(self) -> None:
        """Nothing is held beyond the arrays."""

    def status_of(self, end: str) -> str:
        """Reaching ``max_supersteps`` is a normal end where every vertex applies always."""
        return "completed" if end == "max_supersteps" and self._always else end


def push_obstacle(program: VertexProgram, compiled: CompiledProgram, deterministic: bool) -> str | None:
    """Why a program cannot push, or None."""
    if compiled.push is None:
        return "messages are tuples, and only single numbers are combined atomically"
    ordered = program.combine == "sum" or not isinstance(program.combine, str)
    if ordered and compiled.message.dtypes[0].kind == "f" and deterministic:
        return "floating-point messages would combine in an order of chance (deterministic=False allows it)"
    return None

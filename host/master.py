"""The master: the superstep loop of a run of a vertex program.

Each superstep plans what is active, orders a direction, executes the edges, applies the messages, judges whether to go
on, and folds the aggregates into what the next superstep sees.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from gpu_pregel.host.numeric import NumericRun, Plan

PULL_SHARE = 20
"""Push while active edges are below one in so many of the stored ones (Gemini's threshold)."""


@dataclass(frozen=True)
class Limits:
    """When a run ends beside having nothing active, and which directions it may take."""

    max_supersteps: int | None
    always: bool
    halt: Callable[[tuple[Any, ...]], Any] | None
    mode: str
    can_push: bool
    stored_edges: int


@dataclass(frozen=True)
class Outcome:
    """How a run ended: ``completed``, ``halted`` or ``max_supersteps``; and a row per superstep."""

    status: str
    trace: tuple[dict[str, Any], ...]


def run_supersteps(run: NumericRun, limits: Limits, observe: Callable[[dict[str, Any]], None]) -> Outcome:
    """Run superstep after superstep until nothing is active, ``halt`` says so, or there have been enough."""
    rows: list[dict[str, Any]] = []
    totals = run.fold()
    superstep, direction = 0, "init"
    while True:
        begin = perf_counter()
        if superstep == 0:
            sent = Plan(0, 0)
            plan, applied = run.initialise(), 0
        else:
            sent = plan
            direction = choose_direction(limits, plan)
            (run.push if direction == "push" else run.pull)(superstep - 1, plan)
            run.publish(totals)
            plan, applied = run.apply(superstep)
            totals = run.fold()
        rows.append(
            {
                "superstep": superstep,
                "direction": direction,
                "active_vertices": plan.active_vertices,
                "active_edges": plan.active_edges,
                "messages": sent.active_edges,
                "applied": applied,
                "seconds": perf_counter() - begin,
                "bytes": run.bytes_moved(direction, sent),
            }
        )
        observe(rows[-1])
        superstep += 1
        if superstep > 1 and limits.halt is not None and limits.halt(totals):
            return Outcome("halted", tuple(rows))
        if plan.active_vertices == 0:
            return Outcome("completed", tuple(rows))
        if limits.max_supersteps is not None and superstep >= limits.max_supersteps:
            return Outcome("completed" if limits.always else "max_supersteps", tuple(rows))


def choose_direction(limits: Limits, plan: Plan) -> str:
    """Push where few edges are active, else pull; or as ``mode`` says."""
    if limits.mode != "auto":
        return limits.mode
    if not limits.can_push:
        return "pull"
    return "push" if plan.active_edges * PULL_SHARE < limits.stored_edges else "pull"

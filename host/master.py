"""The master: the superstep loop of a run of a vertex program.

Each superstep plans what is active, orders a direction, executes the edges, applies the messages, judges whether to go
on, and folds the aggregates into what the next superstep sees.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

from gpu_pregel.host.compiling import CompiledProgram
from gpu_pregel.host.numeric import Plan, Run, Step
from gpu_pregel.host.program import VertexProgram

PULL_SHARE = 20
"""Push while active edges are below one in so many of the stored ones (Gemini's threshold)."""
BATCH = 32
"""Supersteps that a device may run without being asked for its figures."""


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


class Commit(NamedTuple):
    """What the master holds between two supersteps; the rest is in the run's own state.

    Attributes
    ----------
    supersteps : int
        How many have been, 0 included.
    plan : Plan
        What is active.
    totals : tuple
        The aggregates that the next superstep's ``apply`` will see.
    rows : list of dict
        The trace so far.
    """

    supersteps: int
    plan: Plan
    totals: tuple[Any, ...]
    rows: list[dict[str, Any]]


def run_supersteps(
    run: Run,
    limits: Limits,
    observe: Callable[[dict[str, Any]], None],
    *,
    start: Commit | None = None,
    after_commit: Callable[[Commit, bool], None] | None = None,
) -> Outcome:
    """Run superstep after superstep until nothing is active, ``halt`` says so, or there have been enough.

    ``start`` is a commit of an earlier run, whose state ``run`` has. ``after_commit`` is called after each superstep,
    with its commit and whether it was the last.
    """
    superstep, plan, totals, rows = start or Commit(0, Plan(0, 0), run.fold(), [])
    if start is not None:
        status = judge(limits, superstep, plan, totals)
        if status is not None:
            return Outcome(status, tuple(rows))
    # Where nobody looks between two supersteps, a device may run several before it is asked for figures.
    batch = BATCH if limits.halt is None and after_commit is None else 1
    while True:
        begin = perf_counter()
        if superstep == 0:
            direction, sent, steps = "init", Plan(0, 0), [Step(run.initialise(), 0, totals)]
        else:
            direction, sent = choose_direction(limits, plan), plan
            left = batch if limits.max_supersteps is None else min(batch, limits.max_supersteps - superstep)
            steps = run.execute(direction, superstep, plan, totals, left)
        seconds = (perf_counter() - begin) / len(steps)
        for step in steps:
            plan, applied, totals = step
            rows.append(
                {
                    "superstep": superstep,
                    "direction": direction,
                    "active_vertices": plan.active_vertices,
                    "active_edges": plan.active_edges,
                    "messages": sent.active_edges,
                    "applied": applied,
                    "seconds": seconds,
                    "bytes": run.bytes_moved(direction, sent),
                }
            )
            observe(rows[-1])
            superstep, sent = superstep + 1, plan
            status = judge(limits, superstep, plan, totals)
            if after_commit is not None:
                after_commit(Commit(superstep, plan, totals, rows), status is not None)
            if status is not None:
                return Outcome(status, tuple(rows))


def judge(limits: Limits, supersteps: int, plan: Plan, totals: tuple[Any, ...]) -> str | None:
    """The status of a run that ends after so many supersteps, or None if it goes on."""
    if supersteps > 1 and limits.halt is not None and limits.halt(totals):
        return "halted"
    if plan.active_vertices == 0:
        return "completed"
    if limits.max_supersteps is not None and supersteps >= limits.max_supersteps:
        return "completed" if limits.always else "max_supersteps"
    return None


def choose_direction(limits: Limits, plan: Plan) -> str:
    """Push where few edges are active, else pull; or as ``mode`` says."""
    if limits.mode != "auto":
        return limits.mode
    if not limits.can_push:
        return "pull"
    return "push" if plan.active_edges * PULL_SHARE < limits.stored_edges else "pull"


def push_obstacle(program: VertexProgram, compiled: CompiledProgram, deterministic: bool) -> str | None:
    """Why a program cannot push, or None."""
    if compiled.push is None:
        return "messages are tuples, and only single numbers are combined atomically"
    ordered = program.combine == "sum" or not isinstance(program.combine, str)
    if ordered and compiled.message.dtypes[0].kind == "f" and deterministic:
        return "floating-point messages would combine in an order of chance (deterministic=False allows it)"
    return None

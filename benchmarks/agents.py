"""Agent vertices beside LangGraph: a loop and a fan-out; many vertices at once; and what workers take to start."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from statistics import median
from typing import Any

import gpu_pregel as gp
from benchmarks._measure import (
    Summary,
    format_ratio,
    format_seconds,
    in_turn,
    machine,
    progress,
    table,
    timed,
    write_json,
)
from benchmarks.peers.langgraph import LangGraph

HELP = "agent vertices: a loop, a fan-out, many vertices, start-up; beside LangGraph"
WORKERS = 2
_IN_PROCESS = "in process"
_QUIET = 0.5
"""Load average above which the figures are not those of a machine that does nothing else."""

Measure = Callable[[], float]
"""Measures once: seconds, or vertices per second; for any result but the right one it raises ``WrongResultError``."""


class WrongResultError(Exception):
    """What was computed is not what it should be."""


@dataclass
class Figure:
    """A line of the report.

    Attributes
    ----------
    name : str
    unit : str
        "s", or "/s" for vertices per second.
    asked : float or None
        The most, of a rate the least, that ``asked_of`` ("ratio" or "ours") is to be.
    ours, theirs : dict
        Trials, median, minimum, quartiles and spread; empty where there are none.
    ratio : float or None
        Our median over theirs.
    """

    name: str
    unit: str
    asked: float | None
    asked_of: str
    ours: dict[str, Any]
    theirs: dict[str, Any]
    ratio: float | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommand's options."""
    parser.add_argument("--trials", type=int, default=9, help="turns of each contestant (default: 9)")
    parser.add_argument("--runs", type=int, default=5, help="fan-outs in a turn, whose median counts (default: 5)")
    parser.add_argument("--steps", type=int, default=2000, help="supersteps of the loop (default: 2000)")
    parser.add_argument("--fan-out", type=int, default=1000, help="vertices of the fan-out (default: 1000)")
    parser.add_argument("--vertices", type=int, default=100_000, help="many vertices (default: 100000)")


def run(arguments: argparse.Namespace) -> int:
    """Measure, print the table, write the report; 1 if somebody failed or was wrong."""
    load = os.getloadavg()[0]
    if load > _QUIET:
        progress(f"this machine does something else: its load average is {load:.2f}")
    reason = LangGraph.absent()
    if reason is not None:
        progress(f"{LangGraph.name} steps aside: {reason}")
    peer = LangGraph if reason is None else None
    errors: list[str] = []
    figures: list[Figure] = []
    for group in (_loop, _fan_out, _many, _start_up):
        figures += group(arguments, peer, errors)
    report = {
        "benchmark": "agents",
        "machine": machine(),
        "load": load,
        "parameters": {name: getattr(arguments, name) for name in ("trials", "runs", "steps", "fan_out", "vertices")},
        "stepped_aside": {} if reason is None else {LangGraph.name: reason},
        "langgraph": LangGraph.version(),
        "figures": [asdict(figure) for figure in figures],
        "errors": errors,
    }
    print(table(["", "ours", "theirs", "ratio", "asked", "spread"], [_cells(figure) for figure in figures]))
    for error in errors:
        print(f"ERROR {error}")
    write_json(arguments.output, report)
    return 1 if errors else 0


# What is measured. Compute functions are made here, so that workers get them by value and import no benchmark.


def _loop(arguments: argparse.Namespace, peer: type[LangGraph] | None, errors: list[str]) -> list[Figure]:
    """One vertex that keeps itself active, in process: seconds of a superstep."""
    steps: int = arguments.steps

    def compute(ctx: gp.agents.Context) -> None:
        ctx.value += 1
        if ctx.value == steps:
            ctx.vote_to_halt()

    def ours() -> float:
        with gp.agents.start([gp.agents.Vertex("count", 0)], compute, max_supersteps=steps + 1) as agents:
            seconds = timed(_to_the_end, agents)[1]
            _expect(agents.result().values, {"count": steps})
        return seconds / steps

    title = f"loop of a vertex, {steps:,} supersteps"
    measures: dict[str, Measure] = {"ours": ours}
    if peer is not None:
        measures["theirs"] = _of_peer(peer.loop(steps), steps, steps)
    trials = _trials(title, measures, arguments.trials, errors)
    return [_figure(title, "s", 0.1, "ratio", trials["ours"], trials.get("theirs"))]


def _fan_out(arguments: argparse.Namespace, peer: type[LangGraph] | None, errors: list[str]) -> list[Figure]:
    """A vertex sends each of many others a message, and they compute: seconds of one of these."""
    count: int = arguments.fan_out

    def compute(ctx: gp.agents.Context) -> None:
        if ctx.vertex_id != "source":
            ctx.value = ctx.messages[0] + 1
            ctx.vote_to_halt()
        elif ctx.superstep % 2 == 0:
            for target in range(count):
                ctx.send(target, target + ctx.superstep)

    def ours(agents: gp.agents.AgentRun) -> float:
        first = agents.result().superstep
        seconds = timed(lambda: agents.step() and agents.step())[1]
        _expect(agents.result().values, {"source": None, **{target: target + first + 1 for target in range(count)}})
        return seconds / count

    title = f"fan-out to {count:,}"
    others = [gp.agents.Vertex(target, 0, halted=True) for target in range(count)]
    with _runs([gp.agents.Vertex("source"), *others], compute) as runs:
        measures: dict[str, Measure] = {
            name: partial(_median, arguments.runs, partial(ours, agents)) for name, agents in runs.items()
        }
        if peer is not None:
            theirs = _of_peer(peer.fan_out(count), list(range(1, count + 1)), count)
            measures["theirs"] = partial(_median, arguments.runs, theirs)
        trials = _trials(title, measures, arguments.trials, errors)
    return [
        _figure(
            f"{title}, {name}", "s", 0.05 if name == _IN_PROCESS else 0.1, "ratio", trials[name], trials.get("theirs")
        )
        for name in runs
    ]


def _many(arguments: argparse.Namespace, peer: object, errors: list[str]) -> list[Figure]:  # noqa: ARG001
    """Vertices in a ring that send a message in each superstep, and take one in: how many are computed in a second."""
    n: int = arguments.vertices

    def send(ctx: gp.agents.Context) -> None:
        for message in ctx.messages:
            ctx.value = message
        ctx.send((ctx.vertex_id + 1) % n, ctx.vertex_id)

    def add(ctx: gp.agents.Context) -> None:
        for message in ctx.messages:
            ctx.value += message
        ctx.send((ctx.vertex_id + 1) % n, 1)

    def ours(agents: gp.agents.AgentRun, compute: Callable[..., None]) -> float:
        superstep = agents.result().superstep
        seconds = timed(agents.step)[1]
        if superstep:  # in the first nobody has a message
            _expect(agents.result().values, {v: (v - 1) % n if compute is send else superstep for v in range(n)})
        return n / seconds

    figures = []
    for title, compute, asked in ((f"{n:,} vertices send", send, 1e5), (f"{n:,} send and change", add, None)):
        with _runs([gp.agents.Vertex(v, 0) for v in range(n)], compute) as runs:
            for agents in runs.values():
                agents.step()
            measures: dict[str, Measure] = {name: partial(ours, agents, compute) for name, agents in runs.items()}
            trials = _trials(title, measures, arguments.trials, errors)
        figures += [
            _figure(f"{title}, {name}", "/s", None if name == _IN_PROCESS else asked, "ours", trials[name])
            for name in runs
        ]
    return figures


def _start_up(arguments: argparse.Namespace, peer: object, errors: list[str]) -> list[Figure]:  # noqa: ARG001
    """Seconds until workers are ready; ending them is not counted."""

    def compute(ctx: gp.agents.Context) -> None:
        ctx.value = ctx.vertex_id
        ctx.vote_to_halt()

    def ours() -> float:
        vertices = [gp.agents.Vertex(v) for v in range(WORKERS)]
        agents, seconds = timed(gp.agents.start, vertices, compute, workers=WORKERS)
        with agents:
            _to_the_end(agents)
            _expect(agents.result().values, {v: v for v in range(WORKERS)})
        return seconds

    title = f"start-up of {WORKERS} workers"
    return [_figure(title, "s", 0.4, "ours", _trials(title, {"ours": ours}, arguments.trials, errors)["ours"])]


# How it is measured.


@contextmanager
def _runs(
    vertices: Sequence[gp.agents.Vertex], compute: Callable[..., None]
) -> Iterator[dict[str, gp.agents.AgentRun]]:
    """Runs of the same in process and in workers, which stay open over all trials, so that workers are warm."""
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(gp.agents.start(vertices, compute, workers=workers, max_supersteps=1 << 62))
            for name, workers in ((_IN_PROCESS, 0), (f"{WORKERS} workers", WORKERS))
        }


def _to_the_end(agents: gp.agents.AgentRun) -> None:
    while agents.step():
        pass


def _of_peer(function: Callable[[], Any], expected: Any, count: int) -> Measure:
    def measure() -> float:
        result, seconds = timed(function)
        _expect(result, expected)
        return seconds / count

    return measure


def _median(runs: int, measure: Measure) -> float:
    return median(measure() for _ in range(runs))


def _expect(result: Any, expected: Any) -> None:
    if result != expected:
        raise WrongResultError(f"{str(result)[:60]} instead of {str(expected)[:60]}")


def _trials(title: str, measures: dict[str, Measure], trials: int, errors: list[str]) -> dict[str, list[float]]:
    """Let all measure once to be warm, then in turn; whoever fails takes no further turn and has no figures."""
    figures: dict[str, list[float]] = {name: [] for name in measures}
    failed: set[str] = set()

    def trial(name: str, is_warm: bool = True) -> None:
        if name in failed:
            return
        try:
            figure = measures[name]()
        except Exception as error:
            failed.add(name)
            errors.append(f"{title}: {name}: {type(error).__name__}: {error}")
            figures[name].clear()
        else:
            figures[name] += [figure] if is_warm else []

    progress(title)
    for name in measures:
        trial(name, is_warm=False)
    in_turn(list(measures), trials, trial)
    return figures


def _figure(
    name: str, unit: str, asked: float | None, asked_of: str, ours: list[float], theirs: list[float] | None = None
) -> Figure:
    one, other = _summary(ours), _summary(theirs or [])
    ratio = one["median"] / other["median"] if one and other else None
    return Figure(name, unit, asked, asked_of, one, other, ratio)


def _summary(trials: list[float]) -> dict[str, Any]:
    return {**asdict(summary := Summary.of(trials)), "spread": summary.spread} if trials else {}


def _cells(figure: Figure) -> list[str]:
    """Cells of the table's row; the spread is ours, then theirs."""
    sides = [side for side in (figure.ours, figure.theirs) if side]
    return [
        figure.name,
        *[_amount(side.get("median"), figure.unit) for side in (figure.ours, figure.theirs)],
        format_ratio(figure.ratio),
        format_ratio(figure.asked) if figure.asked_of == "ratio" else _amount(figure.asked, figure.unit),
        ", ".join(f"{100 * side['spread']:.0f}%" for side in sides) or "-",
    ]


def _amount(amount: float | None, unit: str) -> str:
    if unit == "s" or amount is None:
        return format_seconds(amount)
    return f"{amount:,.0f} {unit}"

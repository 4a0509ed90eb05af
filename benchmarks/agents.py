"""Agent vertices beside LangGraph: a loop and a fan-out, in memory and in a store; many vertices at once; start-up."""

from __future__ import annotations

import argparse
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
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
_PARAMETERS = ("trials", "runs", "steps", "saved_steps", "fan_out", "vertices")
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
        "s", "/s" for vertices per second, or "B".
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
    parser.add_argument("--saved-steps", type=int, default=200, help="supersteps of the loop in a store (default: 200)")
    parser.add_argument("--folder", type=Path, help="where stores are made; default: the folder for temporary files")
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
    for group in (_loop, _fan_out, _many, _start_up, _saved_loop, _saved_many, _size):
        figures += group(arguments, peer, errors)
    report = {
        "benchmark": "agents",
        "machine": machine(),
        "load": load,
        "parameters": {name: getattr(arguments, name) for name in _PARAMETERS},
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


def _ring(n: int) -> Callable[[gp.agents.Context], None]:
    """A compute function: each of ``n`` vertices keeps the message that it was sent, and sends one to the next."""

    def send(ctx: gp.agents.Context) -> None:
        for message in ctx.messages:
            ctx.value = message
        ctx.send((ctx.vertex_id + 1) % n, ctx.vertex_id)

    return send


def _many(arguments: argparse.Namespace, peer: object, errors: list[str]) -> list[Figure]:  # noqa: ARG001
    """Vertices in a ring that send a message in each superstep, and take one in: how many are computed in a second."""
    n: int = arguments.vertices
    send = _ring(n)

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


def _saved_loop(arguments: argparse.Namespace, peer: type[LangGraph] | None, errors: list[str]) -> list[Figure]:
    """The loop in a SQLite file, every superstep committed: seconds of a superstep."""
    steps: int = arguments.saved_steps
    names = itertools.count()

    def compute(ctx: gp.agents.Context) -> None:
        ctx.value += 1
        if ctx.value == steps:
            ctx.vote_to_halt()

    def ours(durability: str) -> float:
        run_id = f"run {next(names)}"
        options: dict[str, Any] = {"store": store, "run_id": run_id, "durability": durability}
        with gp.agents.start([gp.agents.Vertex("count", 0)], compute, max_supersteps=steps + 1, **options) as agents:
            before = store.counts.forced
            seconds = timed(_to_the_end, agents)[1]
            _expect(agents.result().values, {"count": steps})
            _expect(store.counts.forced - before, steps if durability == "machine" else 0)
        return seconds / steps

    title = f"loop in SQLite, {steps:,} supersteps"
    with _folder(arguments) as folder, gp.SQLiteStore(folder / "ours.db") as store:
        measures: dict[str, Measure] = {name: partial(ours, name) for name in ("machine", "process")}
        reason = LangGraph.absent_saver()
        if peer is not None and reason is None:
            measures["theirs"] = _of_peer(peer.saved_loop(steps, str(folder / "theirs.db")), steps, steps)
        elif peer is not None:
            progress(f"{LangGraph.name}'s store steps aside: {reason}")
        trials = _trials(title, measures, arguments.trials, errors)
    theirs = trials.get("theirs")
    return [
        _figure(f"{title}, forced to disk", "s", 0.5, "ratio", trials["machine"], theirs),
        _figure(f"{title}, durability='process'", "s", 0.1, "ratio", trials["process"], theirs),
    ]


def _saved_many(arguments: argparse.Namespace, peer: object, errors: list[str]) -> list[Figure]:  # noqa: ARG001
    """Vertices in a ring that send a message in each superstep, in a SQLite file: how many in a second."""
    n: int = arguments.vertices

    def ours() -> float:
        return n / timed(agents.step)[1]

    title = f"{n:,} vertices send, in SQLite, {WORKERS} workers"
    vertices = [gp.agents.Vertex(v, 0) for v in range(n)]
    options: dict[str, Any] = {"workers": WORKERS, "max_supersteps": 1 << 62}
    with (
        _folder(arguments) as folder,
        gp.SQLiteStore(folder / "ours.db") as store,
        gp.agents.start(vertices, _ring(n), store=store, **options) as agents,
    ):
        agents.step()
        trials = _trials(title, {"ours": ours}, arguments.trials, errors)
        if trials["ours"]:
            _expect(agents.result().values, {v: (v - 1) % n for v in range(n)})
    return [_figure(title, "/s", 5e4, "ours", trials["ours"])]


def _size(arguments: argparse.Namespace, peer: object, errors: list[str]) -> list[Figure]:  # noqa: ARG001
    """1,000 supersteps in each of which one of 1,000 vertices changes: bytes of the SQLite file and its log."""
    n = 1000

    def compute(ctx: gp.agents.Context) -> None:
        if ctx.messages or ctx.vertex_id == 0:
            ctx.value += 1
            ctx.send((ctx.vertex_id + 1) % n, None)
        ctx.vote_to_halt()

    title = "1,000 supersteps, one of 1,000 changes"
    with _folder(arguments) as folder, gp.SQLiteStore(folder / "ours.db") as store:
        vertices = [gp.agents.Vertex(v, 0, halted=v > 0) for v in range(n)]
        result = gp.agents.run(vertices, compute, store=store, max_supersteps=n, durability="process")
        size = float(sum(file.stat().st_size for file in folder.iterdir()))
    if set(result.values.values()) != {1}:
        errors.append(f"{title}: values are {set(result.values.values())}, not 1")
    return [_figure(title, "B", 3e6, "ours", [size])]


# How it is measured.


@contextmanager
def _folder(arguments: argparse.Namespace) -> Iterator[Path]:
    """A folder for stores, gone afterwards."""
    with TemporaryDirectory(dir=arguments.folder) as folder:
        yield Path(folder)


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
    return f"{amount / 1e6:,.2f} MB" if unit == "B" else f"{amount:,.0f} {unit}"

"""Agent vertices compared with LangGraph: a loop, a fan-out, many vertices, a chat, start-up; in memory and a store."""

from __future__ import annotations

import argparse
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gpu_pregel as gp
from benchmarks._chat import measure_chat
from benchmarks._concurrent_agents import measure_async_loop, measure_one_busy_worker, measure_side_by_side
from benchmarks._figures import Figure, Measure, checked_measure, expect, median_of, run_trials
from benchmarks._many_vertices import measure_many_vertices
from benchmarks._measure import machine, progress, table, timed, write_json
from benchmarks.peers.langgraph import LangGraph

HELP = "agent vertices compared with LangGraph"
WORKERS = 2
_IN_PROCESS = "in process"
_PARAMETERS = ("trials", "runs", "steps", "saved_steps", "fan_out", "vertices", "many_vertices", "seconds", "messages")
_MAX_LOAD = 0.5
"""Load average above which the machine counts as busy."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommand's options."""
    parser.add_argument("--trials", type=int, default=9, help="turns per contestant (default: 9)")
    parser.add_argument("--runs", type=int, default=5, help="fan-outs per turn; their median counts (default: 5)")
    parser.add_argument("--steps", type=int, default=2000, help="supersteps of the loop (default: 2000)")
    parser.add_argument("--saved-steps", type=int, default=200, help="supersteps of the loop in a store (default: 200)")
    parser.add_argument("--folder", type=Path, help="folder for stores (default: the temporary folder)")
    parser.add_argument("--fan-out", type=int, default=1000, help="vertices of the fan-out (default: 1000)")
    parser.add_argument(
        "--messages", type=int, nargs="+", default=[250, 1000], help="messages of the chat (default: 250 1000)"
    )
    parser.add_argument("--vertices", type=int, default=100_000, help="vertices of the ring (default: 100000)")
    parser.add_argument(
        "--many-vertices",
        type=int,
        default=300_000,
        help="vertices of the large run, 0 to skip it (default: 300000)",
    )
    parser.add_argument("--seconds", type=float, default=1.0, help="seconds that a vertex sleeps (default: 1)")


def run(arguments: argparse.Namespace) -> int:
    """Measure, print the table, write the report; return 1 if a contestant failed or was wrong."""
    load = os.getloadavg()[0]
    if load > _MAX_LOAD:
        progress(f"the machine is busy: its load average is {load:.2f}")
    reason = LangGraph.why_unavailable()
    if reason is not None:
        progress(f"{LangGraph.name} is skipped: {reason}")
    peer = LangGraph if reason is None else None
    errors: list[str] = []
    figures: list[Figure] = []
    for group in (
        _measure_loop,
        _measure_fan_out,
        _measure_ring,
        _measure_start_up,
        _measure_saved_loop,
        _measure_saved_ring,
        _measure_size,
        measure_side_by_side,
        measure_async_loop,
        measure_one_busy_worker,
        measure_chat,
        measure_many_vertices,
    ):
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
    print(table(["", "ours", "theirs", "ratio", "target", "spread"], [figure.cells() for figure in figures]))
    for error in errors:
        print(f"ERROR {error}")
    write_json(arguments.output, report)
    return 1 if errors else 0


# Compute functions are nested, so that workers receive them by value and import no benchmark.


def _measure_loop(arguments: argparse.Namespace, peer: type[LangGraph] | None, errors: list[str]) -> list[Figure]:
    """Measure seconds per superstep of one vertex that keeps itself active, in process."""
    steps: int = arguments.steps

    def compute(ctx: gp.agents.Context) -> None:
        ctx.value += 1
        if ctx.value == steps:
            ctx.vote_to_halt()

    def ours() -> float:
        with gp.agents.start([gp.agents.Vertex("count", 0)], compute, max_supersteps=steps + 1) as agents:
            seconds = timed(_run_to_end, agents)[1]
            expect(agents.result().values, {"count": steps})
        return seconds / steps

    title = f"loop of a vertex, {steps:,} supersteps"
    measures: dict[str, Measure] = {"ours": ours}
    if peer is not None:
        measures["theirs"] = checked_measure(peer.loop(steps), steps, steps)
    trials = run_trials(title, measures, arguments.trials, errors)
    return [Figure.of(title, "s", 0.1, "ratio", trials["ours"], trials.get("theirs"))]


def _measure_fan_out(arguments: argparse.Namespace, peer: type[LangGraph] | None, errors: list[str]) -> list[Figure]:
    """Measure seconds per receiver of a vertex that sends a message to each of many others."""
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
        expect(agents.result().values, {"source": None, **{target: target + first + 1 for target in range(count)}})
        return seconds / count

    title = f"fan-out to {count:,}"
    others = [gp.agents.Vertex(target, 0, halted=True) for target in range(count)]
    with _open_runs([gp.agents.Vertex("source"), *others], compute) as runs:
        measures: dict[str, Measure] = {
            name: partial(median_of, arguments.runs, partial(ours, agents)) for name, agents in runs.items()
        }
        if peer is not None:
            theirs = checked_measure(peer.fan_out(count), list(range(1, count + 1)), count)
            measures["theirs"] = partial(median_of, arguments.runs, theirs)
        trials = run_trials(title, measures, arguments.trials, errors)
    return [
        Figure.of(
            f"{title}, {name}", "s", 0.05 if name == _IN_PROCESS else 0.1, "ratio", trials[name], trials.get("theirs")
        )
        for name in runs
    ]


def _ring_function(n: int) -> Callable[[gp.agents.Context], None]:
    """Return a compute function: each of ``n`` vertices stores its message and sends one to the next vertex."""

    def send(ctx: gp.agents.Context) -> None:
        for message in ctx.messages:
            ctx.value = message
        ctx.send((ctx.vertex_id + 1) % n, ctx.vertex_id)

    return send


def _measure_ring(arguments: argparse.Namespace, peer: object, errors: list[str]) -> list[Figure]:  # noqa: ARG001
    """Measure vertices per second of a ring in which every vertex sends and receives a message per superstep."""
    n: int = arguments.vertices
    send = _ring_function(n)

    def add(ctx: gp.agents.Context) -> None:
        for message in ctx.messages:
            ctx.value += message
        ctx.send((ctx.vertex_id + 1) % n, 1)

    def ours(agents: gp.agents.AgentRun, compute: Callable[..., None]) -> float:
        superstep = agents.result().superstep
        seconds = timed(agents.step)[1]
        if superstep:  # no vertex has a message in the first superstep
            expect(agents.result().values, {v: (v - 1) % n if compute is send else superstep for v in range(n)})
        return n / seconds

    figures = []
    for title, compute, asked in ((f"{n:,} vertices send", send, 1e5), (f"{n:,} send and change", add, None)):
        with _open_runs([gp.agents.Vertex(v, 0) for v in range(n)], compute) as runs:
            for agents in runs.values():
                agents.step()
            measures: dict[str, Measure] = {name: partial(ours, agents, compute) for name, agents in runs.items()}
            trials = run_trials(title, measures, arguments.trials, errors)
        figures += [
            Figure.of(f"{title}, {name}", "/s", None if name == _IN_PROCESS else asked, "ours", trials[name])
            for name in runs
        ]
    return figures


def _measure_start_up(arguments: argparse.Namespace, peer: object, errors: list[str]) -> list[Figure]:  # noqa: ARG001
    """Measure seconds until the workers are ready; their shutdown is not timed."""

    def compute(ctx: gp.agents.Context) -> None:
        ctx.value = ctx.vertex_id
        ctx.vote_to_halt()

    def ours() -> float:
        vertices = [gp.agents.Vertex(v) for v in range(WORKERS)]
        agents, seconds = timed(gp.agents.start, vertices, compute, workers=WORKERS)
        with agents:
            _run_to_end(agents)
            expect(agents.result().values, {v: v for v in range(WORKERS)})
        return seconds

    title = f"start-up of {WORKERS} workers"
    return [Figure.of(title, "s", 0.4, "ours", run_trials(title, {"ours": ours}, arguments.trials, errors)["ours"])]


def _measure_saved_loop(arguments: argparse.Namespace, peer: type[LangGraph] | None, errors: list[str]) -> list[Figure]:
    """Measure seconds per superstep of the loop in a SQLite file, with every superstep committed."""
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
            seconds = timed(_run_to_end, agents)[1]
            expect(agents.result().values, {"count": steps})
            expect(store.counts.forced - before, steps if durability == "machine" else 0)
        return seconds / steps

    title = f"loop in SQLite, {steps:,} supersteps"
    with _store_folder(arguments) as folder, gp.SQLiteStore(folder / "ours.db") as store:
        measures: dict[str, Measure] = {name: partial(ours, name) for name in ("machine", "process")}
        reason = LangGraph.why_saver_unavailable()
        if peer is not None and reason is None:
            measures["theirs"] = checked_measure(peer.saved_loop(steps, str(folder / "theirs.db")), steps, steps)
        elif peer is not None:
            progress(f"{LangGraph.name}'s store is skipped: {reason}")
        trials = run_trials(title, measures, arguments.trials, errors)
    theirs = trials.get("theirs")
    return [
        Figure.of(f"{title}, forced to disk", "s", 0.5, "ratio", trials["machine"], theirs),
        Figure.of(f"{title}, durability='process'", "s", 0.1, "ratio", trials["process"], theirs),
    ]


def _measure_saved_ring(arguments: argparse.Namespace, peer: object, errors: list[str]) -> list[Figure]:  # noqa: ARG001
    """Measure vertices per second of the ring in a SQLite file."""
    n: int = arguments.vertices

    def ours() -> float:
        return n / timed(agents.step)[1]

    title = f"{n:,} vertices send, in SQLite, {WORKERS} workers"
    vertices = [gp.agents.Vertex(v, 0) for v in range(n)]
    options: dict[str, Any] = {"workers": WORKERS, "max_supersteps": 1 << 62}
    with (
        _store_folder(arguments) as folder,
        gp.SQLiteStore(folder / "ours.db") as store,
        gp.agents.start(vertices, _ring_function(n), store=store, **options) as agents,
    ):
        agents.step()
        trials = run_trials(title, {"ours": ours}, arguments.trials, errors)
        if trials["ours"]:
            expect(agents.result().values, {v: (v - 1) % n for v in range(n)})
    return [Figure.of(title, "/s", 5e4, "ours", trials["ours"])]


def _measure_size(arguments: argparse.Namespace, peer: object, errors: list[str]) -> list[Figure]:  # noqa: ARG001
    """Measure bytes of a SQLite file and its log after 1,000 supersteps that change one of 1,000 vertices each."""
    n = 1000

    def compute(ctx: gp.agents.Context) -> None:
        if ctx.messages or ctx.vertex_id == 0:
            ctx.value += 1
            ctx.send((ctx.vertex_id + 1) % n, None)
        ctx.vote_to_halt()

    title = "1,000 supersteps, one of 1,000 changes"
    with _store_folder(arguments) as folder, gp.SQLiteStore(folder / "ours.db") as store:
        vertices = [gp.agents.Vertex(v, 0, halted=v > 0) for v in range(n)]
        result = gp.agents.run(
            vertices, compute, store=store, max_supersteps=n, on_limit="return", durability="process"
        )
        size = float(sum(file.stat().st_size for file in folder.iterdir()))
    if set(result.values.values()) != {1}:
        errors.append(f"{title}: values are {set(result.values.values())}, not 1")
    return [Figure.of(title, "B", 3e6, "ours", [size])]


@contextmanager
def _store_folder(arguments: argparse.Namespace) -> Iterator[Path]:
    """Create a temporary folder for stores."""
    with TemporaryDirectory(dir=arguments.folder) as folder:
        yield Path(folder)


@contextmanager
def _open_runs(
    vertices: Sequence[gp.agents.Vertex], compute: Callable[..., None]
) -> Iterator[dict[str, gp.agents.AgentRun]]:
    """Start the same run in process and in workers; both stay open over all trials, so that workers are warm."""
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(gp.agents.start(vertices, compute, workers=workers, max_supersteps=1 << 62))
            for name, workers in ((_IN_PROCESS, 0), (f"{WORKERS} workers", WORKERS))
        }


def _run_to_end(agents: gp.agents.AgentRun) -> None:
    while agents.step():
        pass

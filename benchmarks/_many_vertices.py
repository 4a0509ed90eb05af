"""A large run of agents: start, memory, past states, and the pauses at bases; each trial in a process of its own."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gpu_pregel as gp
from benchmarks._figures import Figure, expect, run_trials
from benchmarks._measure import run_program

_WORKERS, _STEPS, _BASE_EVERY = 2, 9, 4
_TRIALS = 1
"""Trials after one that is not counted."""
_STORES = ("memory", "SQLite")
_FIGURES: dict[str, tuple[str, str, float]] = {
    "start": ("start, per vertex", "s", 4.25e-6),
    "master_cpu": ("… processor time of the master, per vertex", "s", 3.75e-6),
    "worker_cpu": ("… processor time of all workers, per vertex", "s", 1.5e-6),
    "master": ("memory of the master", "B", 290.0),
    "peak": ("… at its peak", "B", 480.0),
    "workers": ("memory of all workers", "B", 325.0),
    "past": ("state_at, per record", "s", 5.5e-6),
    "pause": ("supersteps with a base, longer than the others by, per vertex", "s", 0.47e-6),
}
"""Text, unit, and half of what each of a million vertices in SQLite took before states were encoded in slices."""


def measure_many_vertices(arguments: argparse.Namespace, peer: object, errors: list[str]) -> list[Figure]:  # noqa: ARG001
    """Measure a run in which every vertex of a ring changes in every superstep, in memory and in a SQLite file."""
    n: int = arguments.many_vertices
    figures = []
    for store in _STORES if n else ():
        trials: dict[str, list[float]] = {}

        def ours(store: str = store, trials: dict[str, list[float]] = trials) -> float:
            command = [sys.executable, "-m", "benchmarks._many_vertices", str(n), store, str(arguments.folder or "")]
            found = json.loads(run_program(command).splitlines()[-1])
            for name, figure in found.items():
                trials.setdefault(name, []).append(figure if _FIGURES[name][1] == "B" else figure / n)
            return float(found["start"])

        title = f"{n:,} vertices, {_WORKERS} workers, {store}"
        run_trials(title, {"ours": ours}, _TRIALS, errors)
        for name, measured in trials.items():
            text, unit, asked = _FIGURES[name]
            target = asked * (n if unit == "B" else 1) if store == "SQLite" else None
            figures.append(Figure.of(f"{title}: {text}", unit, target, "ours", measured[1:]))
    return figures


def _status(process: int | str, name: str) -> float:
    """Return the bytes in a line of a process's status."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return float(sum(1024 * int(line.split()[1]) for line in lines if line.startswith(f"{name}:")))


def _processor_seconds(processes: Iterable[int]) -> float:
    """Return the user and system time of other processes."""
    fields = [Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split() for process in processes]
    return sum(int(one[11]) + int(one[12]) for one in fields) / os.sysconf("SC_CLK_TCK")


def _ring_function(n: int) -> Any:
    """Return a compute function that changes every vertex of a ring."""

    def add(ctx: gp.agents.Context) -> None:
        for message in ctx.messages:
            ctx.value += message
        ctx.send((ctx.vertex_id + 1) % n, 1)

    return add


def _measure(n: int, store: str, folder: str | None) -> dict[str, float]:
    """Measure once: seconds of the start and resident bytes after it and, with a store, past states and pauses."""
    vertices = [gp.agents.Vertex(v, 0, [(v + 1) % n]) for v in range(n)]
    options: dict[str, Any] = {"workers": _WORKERS, "max_supersteps": _STEPS + 1}
    with ExitStack() as stack:
        if store != "memory":
            place = stack.enter_context(TemporaryDirectory(dir=folder or None))
            options["store"] = stack.enter_context(gp.SQLiteStore(Path(place) / "runs.db"))
            options |= {"run_id": "run", "base_every": _BASE_EVERY}
        before, begin, processor = _status("self", "VmRSS"), time.perf_counter(), time.process_time()
        with gp.agents.start(vertices, _ring_function(n), **options) as agents:
            found = {"start": time.perf_counter() - begin, "master_cpu": time.process_time() - processor}
            processes = [process.pid for process in agents._transport._processes]  # type: ignore[attr-defined]
            found["worker_cpu"] = _processor_seconds(processes)
            found["master"] = _status("self", "VmRSS") - before
            found["peak"] = _status("self", "VmHWM") - before
            found["workers"] = sum(_status(process, "VmRSS") for process in processes)
            seconds = [_time_step(agents) for _ in range(_STEPS if "store" in options else 0)]
        return found | (_measure_store(n, options["store"], seconds) if seconds else {})


def _time_step(agents: gp.agents.AgentRun) -> float:
    begin = time.perf_counter()
    agents.step()
    return time.perf_counter() - begin


def _measure_store(n: int, store: gp.SQLiteStore, seconds: list[float]) -> dict[str, float]:
    """Return the pause at a base, and the seconds per superstep that ``state_at`` replays."""
    bases = [row.step for row in store.history("run") if row.base]
    with_base = [seconds[step] for step in bases]
    others = sorted(seconds[step] for step in range(1, _STEPS) if step not in bases)
    pause = max(0.0, sum(with_base) / len(with_base) - others[len(others) // 2])
    begin = time.perf_counter()
    result = gp.agents.state_at(store, "run", 2)
    past = (time.perf_counter() - begin) / 3
    expect(result.values, dict.fromkeys(range(n), 2))
    return {"past": past, "pause": pause}


if __name__ == "__main__":
    print(json.dumps(_measure(int(sys.argv[1]), sys.argv[2], sys.argv[3])))

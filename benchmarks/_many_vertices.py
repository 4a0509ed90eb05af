"""A large run of agents: start, memory, past states, and the pauses at bases; each trial in a process of its own."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gpu_pregel as gp
from benchmarks._figures import Figure, expect, run_trials
from benchmarks._measure import run_program

_WORKERS, _STEPS, _BASE_EVERY = 2, 9, 4
_TRIALS = 1
"""Trials after one that is not counted."""
_ASKED = {"start": 4.25e-6, "master": 750.0, "workers": 500.0, "past": 5.5e-6, "pause": None}
"""Half of what a run of a million vertices took before states were encoded in slices: seconds and bytes per vertex."""


def measure_many_vertices(arguments: argparse.Namespace, peer: object, errors: list[str]) -> list[Figure]:  # noqa: ARG001
    """Measure a run in which every vertex of a ring changes in every superstep, per vertex."""
    n: int = arguments.many_vertices
    if not n:
        return []
    trials: dict[str, list[float]] = {name: [] for name in _ASKED}

    def ours() -> float:
        command = [sys.executable, "-m", "benchmarks._many_vertices", str(n), str(arguments.folder or "")]
        found = json.loads(run_program(command).splitlines()[-1])
        for name, figure in found.items():
            trials[name].append(figure if name == "pause" else figure / n)
        return float(found["start"])

    title = f"{n:,} vertices, {_WORKERS} workers"
    run_trials(title, {"ours": ours}, _TRIALS, errors)
    names = {
        "start": ("start, per vertex", "s"),
        "master": ("memory of the master, per vertex", "B"),
        "workers": ("memory of all workers, per vertex", "B"),
        "past": ("state_at, per record", "s"),
        "pause": ("supersteps with a base, longer than the others by", "s"),
    }
    return [
        Figure.of(f"{title}: {text}", unit, _ASKED[name], "ours", trials[name][1:])
        for name, (text, unit) in names.items()
    ]


def _resident(processes: Iterable[int | str]) -> float:
    """Return the resident bytes of processes."""
    lines = [line for one in processes for line in Path(f"/proc/{one}/status").read_text().splitlines()]
    return float(sum(1024 * int(line.split()[1]) for line in lines if line.startswith("VmRSS")))


def _measure(n: int, folder: str | None) -> dict[str, float]:
    """Measure once: seconds of the start, resident bytes after it, seconds per superstep that ``state_at`` replays."""

    def add(ctx: gp.agents.Context) -> None:
        for message in ctx.messages:
            ctx.value += message
        ctx.send((ctx.vertex_id + 1) % n, 1)

    with TemporaryDirectory(dir=folder or None) as place, gp.SQLiteStore(Path(place) / "runs.db") as store:
        vertices = [gp.agents.Vertex(v, 0, [(v + 1) % n]) for v in range(n)]
        before, begin = _resident(["self"]), time.perf_counter()
        options: dict[str, Any] = {"store": store, "run_id": "run", "base_every": _BASE_EVERY, "workers": _WORKERS}
        with gp.agents.start(vertices, add, max_supersteps=_STEPS + 1, **options) as agents:
            processes = agents._transport._processes  # type: ignore[attr-defined]
            found = {"start": time.perf_counter() - begin, "master": _resident(["self"]) - before}
            found["workers"] = _resident(process.pid for process in processes)
            seconds = []
            for _ in range(_STEPS):
                begin = time.perf_counter()
                agents.step()
                seconds.append(time.perf_counter() - begin)
        bases = [row.step for row in store.history("run") if row.base]
        with_base = [seconds[step] for step in bases]
        others = sorted(seconds[step] for step in range(1, _STEPS) if step not in bases)
        found["pause"] = max(0.0, sum(with_base) / len(with_base) - others[len(others) // 2])
        begin = time.perf_counter()
        result = gp.agents.state_at(store, "run", 2)
        found["past"] = (time.perf_counter() - begin) / 3
        expect(result.values, dict.fromkeys(range(n), 2))
    return found


if __name__ == "__main__":
    print(json.dumps(_measure(int(sys.argv[1]), sys.argv[2])))

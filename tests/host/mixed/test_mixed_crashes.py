"""Runs of numeric vertices with agents that are killed at each crash point, and resumed.

Both sides are as in an undisturbed run; an attempt is repeated only if its record was not durable.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import gpu_pregel as gp
from tests.crashes import HELD, RUN, STEP, Crash, effects, place, recorded
from tests.devices import LONG
from tests.host.mixed.test_mixed_runs import busy, smallest
from tests.host.mixed.test_mixed_stores import LIMIT, facts, wake

POINTS = [
    # A point of ``tests.crashes``, a number of workers, and whether it is among those that run by default.
    ("1", 0, False),
    ("2", 0, False),
    ("3", 2, False),
    ("6 pipe", 2, False),
    ("6", 0, False),
    ("7", 2, False),
    ("8", 0, True),
    ("9", 2, False),
    ("10", 0, False),
    ("11", 2, False),
    ("12", 0, False),
    ("14 INSERT INTO commits", 2, False),
    ("14", 0, True),
    ("15", 2, True),
    ("16 worker", 2, False),
    ("16", 0, False),
    ("17", 0, False),
    ("18", 2, False),
    ("19", 0, True),
    ("20", 2, False),
    ("21", 0, False),
    ("22", 0, False),
    ("22 after", 2, False),
]


def make_graph() -> gp.Graph:
    return gp.kronecker(8, edge_factor=4, seed=3)


def print_nothing(event: Any) -> None:
    """Some crash points are at events."""


def run(store: Any, log: Path, workers: int) -> Any:
    """Run to the end, or go on; a person answers what is asked."""

    def compute(ctx: Any) -> Any:
        if (ctx.superstep, ctx.vertex_id, ctx.attempt) == (STEP, 40, 1):
            raise OSError("not yet")
        answer = ctx.interrupt("which?") if (ctx.superstep, ctx.vertex_id) == (HELD, 3) else None
        with log.open("a") as file:
            file.write(f"{ctx.superstep} {ctx.vertex_id} {ctx.key}\n")
        returned = busy(ctx)
        ctx.state = [*ctx.state, ctx.random.random(), answer]
        return returned

    options: dict[str, Any] = {"device": "cpu", "max_supersteps": LIMIT, "on_limit": "return", "wake": wake}
    retry = gp.agents.RetryPolicy(attempts=3, wait=0.01)
    agents = gp.Agents(compute, vertices=[3, 40], workers=workers, retry=retry, neighbors=8, observer=print_nothing)
    checkpoint = gp.Checkpoint(store, RUN, every=1, keep=100)
    while True:
        result: Any = gp.run(
            make_graph(),
            smallest(lambda old, new: False)[0],
            agents=agents,
            checkpoint=checkpoint,
            resume=True,
            **options,
        )
        if not result.agents.interrupts:
            return result
        for vertex in result.agents.interrupts:
            gp.agents.answer(store, RUN, vertex, "blue")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Counter[str]]:
    log = tmp_path_factory.mktemp("undisturbed") / "log"
    return facts(run(gp.MemoryStore(), log, 0)), effects(log)


@pytest.mark.parametrize(
    ("point", "workers"), [pytest.param(*given, marks=() if quick else LONG) for *given, quick in POINTS]
)
def test_a_killed_program_loses_nothing_and_repeats_nothing(
    undisturbed: tuple[Any, Counter[str]], tmp_path: Path, point: str, workers: int
) -> None:
    expected, wanted = undisturbed
    assert set(wanted.values()) == {1}
    file, log = tmp_path / "runs.db", tmp_path / "log"
    for victim in ("9", "21") if point == "21" else (point,):
        script = f"from tests.host.mixed import test_mixed_crashes as t; t.die({str(file)!r}, {victim!r}, {workers})"
        found = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True)
        assert found.returncode == -signal.SIGKILL, found.stderr
    before = effects(log)
    with gp.SQLiteStore(file) as store:
        durable = recorded(store) if store.runs() else Counter[Any]()
        assert facts(run(store, log, workers)) == expected
        after = effects(log)
        assert after.keys() == wanted.keys()
        for line in wanted:
            superstep, vertex, _ = line.split()
            repeats = 0 if (int(superstep), int(vertex)) in durable else 1
            assert after[line] <= max(1, before[line] + repeats), line
        assert set(recorded(store).values()) == {1}


def die(file: str, point: str, workers: int) -> None:
    """Run until the program kills itself at a crash point."""
    store = gp.SQLiteStore(file)
    place(Crash(store, signal.SIGKILL), point)
    run(store, Path(file).with_name("log"), workers)

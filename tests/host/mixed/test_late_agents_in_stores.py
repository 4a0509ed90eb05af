"""Runs that stop, are held or end while agents are late: nothing is lost, and answers are kept."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from tests.host.mixed.test_mixed_runs import LIMIT, totals

CHOSEN = frozenset({0, 5, 7})
WAIT = 60
"""Seconds after which a test has failed."""


class StopError(Exception):
    """Ends a run."""


async def wait_for(mark: Path) -> None:
    """Wait for a file."""
    begin = time.monotonic()
    while not mark.exists():
        assert time.monotonic() < begin + WAIT
        await asyncio.sleep(0.001)


def stop_after(superstep: int) -> Any:
    """Return an observer that ends the run after a superstep."""

    def observe(event: Any) -> None:
        if event.kind == "commit" and event.facts["superstep"] == superstep:
            raise StopError

    return observe


@pytest.fixture
def graph() -> gp.Graph:
    rng = np.random.default_rng(3)
    return gp.Graph.from_edgelist(*rng.integers(0, 12, (2, 40)), num_vertices=12, combine="min")


def run(graph: gp.Graph, compute: Any, store: Any, **options: Any) -> Any:
    agents = gp.Agents(
        *(compute, CHOSEN),
        workers=1,
        max_lag=options.pop("max_lag", 1 << 20),
        neighbors=1000,
        observer=options.pop("observer", ()),
    )
    given = {"device": "python", "max_supersteps": LIMIT, "on_limit": "return", "resume": True, **options}
    checkpoint = gp.Checkpoint(store, given.pop("run_id", "run"), every=1, keep=100)
    return gp.run(graph, totals(never)[0], agents=agents, checkpoint=checkpoint, **given)


def never(old: int, new: int) -> bool:
    return False


def test_a_late_question_is_answered_once(graph: gp.Graph, tmp_path: Path) -> None:
    """The answer is kept while further supersteps are committed and the run stops."""
    marks = [tmp_path / "0", tmp_path / "1"]

    async def ask(ctx: Any) -> Any:
        if ctx.superstep == 0 and ctx.vertex_id == 5:
            ctx.state = [ctx.interrupt("how many?")]
            await wait_for(marks[1])
        elif ctx.superstep == 0:
            await wait_for(marks[0])

    def observe(event: Any) -> None:
        if event.kind == "commit" and event.facts["superstep"] == 2:
            marks[0].touch()

    store = gp.MemoryStore()
    held = run(graph, ask, store, observer=observe, max_supersteps=None)
    assert (held.status, held.agents.interrupts) == ("interrupted", {5: "how many?"})
    assert gp.agents.state_at(store, "run").interrupts == {5: "how many?"}
    gp.agents.answer(store, "run", 5, "three")
    head = store.run("run").head
    assert head >= 2
    with pytest.raises(StopError):
        run(graph, ask, store, observer=stop_after(head + 2), max_supersteps=None)
    marks[1].touch()
    result = run(graph, ask, store, max_supersteps=head + 6)
    assert (result.status, result.agents.values[5]) == ("max_supersteps", ["three"])


def test_a_run_that_halts_waits_for_late_agents(tmp_path: Path) -> None:
    """What they write is not lost."""

    async def write(ctx: Any) -> int:
        await wait_for(tmp_path / "mark")
        return 50

    def halt(aggregated: Any) -> bool:
        if aggregated.largest >= 3:
            (tmp_path / "mark").touch()
        return bool(aggregated.largest >= 3)

    program = gp.VertexProgram(
        value=np.int64,
        init=lambda ctx: 0,
        message=lambda value, ctx: value,
        combine="sum",
        apply=lambda value, incoming, ctx: value + 1,
        active="always",
        aggregators={"largest": gp.Aggregator("max", lambda old, new, ctx: new)},
        halt=halt,
    )
    graph = gp.Graph.from_edgelist([0, 1], [1, 2], num_vertices=3)
    agents = gp.Agents(write, vertices=[1], workers=1, max_lag=1 << 20)
    result: Any = gp.run(graph, program, agents=agents, device="python")
    assert (result.status, result.to_numpy().tolist()) == ("halted", [3, 50, 3])
    assert [(row["computed"], row["lag"]) for row in result.trace] == [(0, 0), (0, 0), (0, 0), (1, 3)]


def test_no_superstep_passes_without_an_active_vertex() -> None:
    async def rest(ctx: Any) -> int:
        await asyncio.sleep(0.1)
        return 50

    program = gp.VertexProgram(
        value=np.int64,
        init=lambda ctx: ctx.vertex,
        message=lambda value, ctx: value,
        combine="min",
        apply=lambda value, incoming, ctx: min(value, incoming),
    )
    graph = gp.Graph.from_edgelist([0, 1], [1, 2], num_vertices=4)
    agents = gp.Agents(rest, vertices=[3], workers=1, max_lag=1 << 20)
    result: Any = gp.run(graph, program, agents=agents, device="python")
    assert result.to_numpy().tolist() == [0, 0, 0, 50]
    assert len(result.trace) <= 5

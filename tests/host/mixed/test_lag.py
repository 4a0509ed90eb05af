"""Numeric vertices that run ahead of agents: the effects arrive when the trace says, also after a crash."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from tests.host.mixed.test_mixed_runs import LIMIT, busy, check, graph, totals

assert graph  # a fixture

CHOSEN = frozenset({0, 5, 77})
WAIT = 60
"""Seconds after which a test has failed."""


def wake(old: int, new: int, ctx: Any) -> bool:
    return new > 95


def run(graph: gp.Graph, compute: Any, **options: Any) -> Any:
    given: dict[str, Any] = {"workers": 2, "max_lag": 3, "neighbors": 1000}
    given |= {name: options.pop(name) for name in ("workers", "max_lag", "observer") if name in options}
    agents = gp.Agents(compute, vertices=CHOSEN, **given)
    options = {"device": "cpu", "max_supersteps": LIMIT, "on_limit": "return", **options}
    return gp.run(graph, totals(wake_of)[0], agents=agents, wake=wake, **options)


def wake_of(old: int, new: int) -> bool:
    return new > 95


def lags(result: Any) -> list[int]:
    return [row["lag"] for row in result.trace]


async def wait_for(mark: Path) -> None:
    """Wait for a file."""
    begin = time.monotonic()
    while not mark.exists():
        assert time.monotonic() < begin + WAIT
        await asyncio.sleep(0.001)


@pytest.mark.parametrize("max_lag", [1, 3])
def test_late_agents_do_not_hold_numeric_vertices_up(graph: gp.Graph, tmp_path: Path, max_lag: int) -> None:
    """The agents of superstep 0 end only when the supersteps that need not wait for them have been committed."""
    mark = tmp_path / "committed"

    async def slow(ctx: Any) -> Any:
        await wait_for(mark)
        return busy(ctx)

    def observe(event: Any) -> None:
        if event.kind == "commit" and event.facts["superstep"] == max_lag - 1:
            mark.touch()

    result = run(graph, slow, max_lag=max_lag, observer=observe)
    check(result, graph, totals(wake_of)[1], busy, CHOSEN)
    found = lags(result)
    assert found[: max_lag + 1] == [*[0] * max_lag, max_lag]
    assert max(found) == max_lag
    assert sum(row["computed"] > 0 for row in result.trace[:max_lag]) == 0


def test_strictly_no_agent_is_late(graph: gp.Graph) -> None:
    def slow(ctx: Any) -> Any:
        time.sleep(0.002)
        return busy(ctx)

    assert lags(run(graph, slow, max_lag=0)) == [0] * LIMIT
    assert lags(run(graph, busy, max_lag=3, workers=0)) == [0] * LIMIT


def test_a_run_that_stops_while_agents_are_late_goes_on(graph: gp.Graph, tmp_path: Path) -> None:
    """An agent that has ended by then is not computed again; all of them see what they saw before."""
    mark, log, seen = tmp_path / "stopped", tmp_path / "log", list[Any]()

    async def slow(ctx: Any) -> Any:
        if ctx.vertex_id != 5:
            await wait_for(mark)
        with log.open("a") as file:
            file.write(f"{ctx.vertex_id} {ctx.superstep}\n")
        return busy(ctx)

    class StopError(Exception):
        """Ends the run."""

    def stop(event: Any) -> None:
        if event.kind == "attempt" or (event.kind == "commit" and seen):
            seen.append(event)
            if event.kind == "commit":
                raise StopError

    options: dict[str, Any] = {"checkpoint": gp.Checkpoint(tmp_path / "runs.db", every=1), "max_lag": 1 << 20}
    with pytest.raises(StopError):
        run(graph, slow, observer=stop, max_supersteps=None, **options)
    mark.touch()
    stopped = seen[-1].facts["superstep"]
    result = run(graph, slow, resume=True, max_supersteps=stopped + 4, **options)
    check(result, graph, totals(wake_of)[1], busy, CHOSEN, stopped + 4)
    assert [row["computed"] for row in result.trace[: stopped + 1]] == [0] * (stopped + 1)
    assert sum(line == "5 0" for line in log.read_text().splitlines()) == 1


@pytest.mark.parametrize("is_fork", [False, True])
def test_late_agents_of_which_none_has_ended_are_computed(tmp_path: Path, is_fork: bool) -> None:
    """After a stop, and in a fork of that superstep, they see what they saw before; one that gets a message, too."""
    mark, store = tmp_path / "stopped", gp.MemoryStore()

    async def slow(ctx: Any) -> Any:
        if ctx.vertex_id == 8:
            ctx.state = [one.content for one in ctx.messages]
            return None
        await wait_for(mark)
        ctx.state = ctx.superstep, ctx.value
        return ctx.value + 100

    def stop(event: Any) -> None:
        if event.kind == "commit" and event.facts["superstep"] == 7:
            raise InterruptedError

    largest = gp.VertexProgram(
        value=np.int64,
        init=lambda ctx: 0,
        initially_active=lambda ctx: ctx.vertex == 0,
        message=lambda value, ctx: value + 1,
        combine="max",
        apply=lambda value, incoming, ctx: max(value, incoming),
    )
    path = gp.Graph.from_edgelist(range(7), range(1, 8), num_vertices=9, directed=True)

    def run_path(run_id: str, **options: Any) -> Any:
        agents = gp.Agents(slow, vertices=[8], workers=1, max_lag=2, observer=options.pop("observer", ()))
        kept = gp.Checkpoint(store, every=1, keep=20, run_id=run_id)
        wake = lambda old, new, ctx: ctx.vertex == 5 and new == 5
        return gp.run(path, largest, device="python", agents=agents, wake=wake, checkpoint=kept, **options)

    with pytest.raises(InterruptedError):
        run_path("run", observer=stop)
    mark.touch()
    resumed = gp.agents.fork(store, "run", 7) if is_fork else "run"
    gp.agents.send(store, resumed, 8, "hello")
    result = run_path(resumed, resume=True)
    assert result.values.tolist() == [0, 1, 2, 3, 4, 105, 106, 107, 0]
    assert result.agents.values == {8: ["hello"], 5: (6, 5)}

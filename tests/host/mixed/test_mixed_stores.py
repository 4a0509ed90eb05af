"""Runs of numeric vertices with agents in a store: resumed, killed, held, forked and read."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.cli import main
from gpu_pregel.errors import AgentsFailedError, ArgumentError, CheckpointError
from tests.devices import LONG, PROGRAM_DEVICES
from tests.host.mixed.test_mixed_runs import busy, check, smallest, totals

LIMIT = 8


def wake(old: int, new: int, ctx: Any) -> bool:
    return new % 5 == 0


@pytest.fixture(scope="module")
def graph() -> gp.Graph:
    return gp.kronecker(8, edge_factor=4, seed=3)


def run(graph: gp.Graph, compute: Any = busy, **options: Any) -> Any:
    given = {"device": "cpu", "max_supersteps": LIMIT, "on_limit": "return", "wake": wake, **options}
    workers, retry = given.pop("workers", 0), gp.agents.RetryPolicy(attempts=1)
    agents = gp.Agents(compute, vertices=[3, 40], workers=workers, retry=retry, neighbors=8)
    return gp.run(graph, smallest(lambda old, new: False)[0], agents=agents, **given)


def facts(result: Any) -> tuple[Any, ...]:
    """Return all of a result that must not depend on how often the run stopped."""
    columns = ("superstep", "active_vertices", "messages", "applied", "computed", "woken")
    rows = [[row[name] for name in columns] for row in result.trace]
    return result.to_numpy().tolist(), result.agents.values, rows, result.status


@pytest.fixture(scope="module")
def expected(graph: gp.Graph) -> tuple[Any, ...]:
    return facts(run(graph))


@PROGRAM_DEVICES
@pytest.mark.parametrize("every", [1, 3])
def test_a_run_goes_on_where_it_stopped(
    graph: gp.Graph, expected: tuple[Any, ...], tmp_path: Path, device: str, every: int
) -> None:
    checkpoint = gp.Checkpoint(tmp_path / "runs.db", every=every)
    for limit in (2, 5, LIMIT):
        result = run(graph, device=device, checkpoint=checkpoint, resume=True, max_supersteps=limit)
    assert facts(result) == expected


def test_a_held_superstep_computes_only_the_failed_agents_again(
    graph: gp.Graph, expected: tuple[Any, ...], tmp_path: Path
) -> None:
    calls: list[Any] = []

    def fail(ctx: Any) -> Any:
        calls.append(ctx.vertex_id)
        if ctx.superstep == 3 and ctx.vertex_id == 40:
            raise ValueError("mend me")
        return busy(ctx)

    def count(ctx: Any) -> Any:
        calls.append((ctx.superstep, ctx.vertex_id))
        return busy(ctx)

    with pytest.raises(AgentsFailedError, match="mend me"):
        run(graph, fail, checkpoint=tmp_path / "runs.db")
    calls.clear()
    result = run(graph, count, checkpoint=tmp_path / "runs.db", resume=True)
    assert facts(result) == expected
    assert [call for call in calls if call[0] == 3] == [(3, 40)]


def test_a_person_answers_an_agent(graph: gp.Graph, tmp_path: Path) -> None:
    def ask(ctx: Any) -> Any:
        if ctx.superstep == 2 and ctx.vertex_id == 40:
            ctx.state = ctx.interrupt(f"is {ctx.value} right?")
        return None

    with gp.SQLiteStore(tmp_path / "runs.db") as store:
        held = run(graph, ask, checkpoint=gp.Checkpoint(store))
        assert (held.status, list(held.agents.interrupts)) == ("interrupted", [40])
        gp.agents.answer(store, "run", 40, "yes")
        assert run(graph, ask, checkpoint=gp.Checkpoint(store), resume=True).agents.values[40] == "yes"


def test_past_states_and_forks_have_both_sides(graph: gp.Graph, expected: tuple[Any, ...]) -> None:
    store = gp.MemoryStore()
    checkpoint = gp.Checkpoint(store, every=1, keep=100)
    assert facts(run(graph, checkpoint=checkpoint)) == expected
    for limit in range(1, LIMIT + 1):
        then, found = run(graph, max_supersteps=limit), gp.agents.state_at(store, "run", limit - 1)
        assert found.arrays["value"].tolist() == then.to_numpy().tolist()
        assert found.values == then.agents.values
    fork = gp.agents.fork(store, "run", 3, "fork")
    forked = run(graph, checkpoint=gp.Checkpoint(store, fork), resume=True)
    assert forked.to_numpy().tolist() == expected[0]
    assert forked.agents.values == expected[1]


def test_the_command_line_shows_and_forks_runs(
    graph: gp.Graph, expected: tuple[Any, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "runs.db")
    run(graph, checkpoint=gp.Checkpoint(file, keep=9))
    assert main(["runs", file]) == 0
    assert "mixed" in capsys.readouterr().out
    assert main(["runs", file, "show", "run", "--values"]) == 0
    shown = capsys.readouterr().out
    values = expected[0]
    assert f"numeric vertices, value: 256 of int64, from {min(values)} to {max(values)}" in shown
    assert f"40: {expected[1][40]!r}" in shown
    assert main(["runs", file, "fork", "run", "--at", "3", "--id", "other"]) == 0
    assert facts(run(graph, checkpoint=gp.Checkpoint(file, "other"), resume=True))[:2] == expected[:2]


def test_what_does_not_belong_to_a_run_is_refused(graph: gp.Graph) -> None:
    store = gp.MemoryStore()
    run(graph, checkpoint=gp.Checkpoint(store), max_supersteps=3)
    with pytest.raises(CheckpointError, match="already has a run 'run'"):
        run(graph, checkpoint=gp.Checkpoint(store))
    with pytest.raises(CheckpointError, match="belongs to another graph"):
        run(gp.kronecker(8, edge_factor=4, seed=4), checkpoint=gp.Checkpoint(store), resume=True)
    with pytest.raises(CheckpointError, match="belongs to another program"):
        run(graph, checkpoint=gp.Checkpoint(store), resume=True, wake=lambda old, new, ctx: new % 6 == 0)
    assert run(graph, checkpoint=gp.Checkpoint(store), resume=True, max_supersteps=4, partitions=2).supersteps == 4
    with pytest.raises(ArgumentError, match=r"has mixed vertices: resume it with gp\.run"):
        gp.agents.resume(store, "run", busy)
    program = smallest(lambda old, new: False)[0]
    with pytest.raises(CheckpointError, match="belongs to a run of mixed"):
        gp.run(graph, program, device="cpu", checkpoint=gp.Checkpoint(store), resume=True)


def test_few_changes_take_few_bytes() -> None:
    """Of a million numbers one agent changes one in each superstep."""
    graph = gp.Graph.from_edgelist([0], [1], num_vertices=1 << 17)
    program = gp.VertexProgram(
        value=np.float64,
        init=lambda ctx: 0.0,
        initially_active=lambda ctx: False,
        message=lambda value, ctx: value,
        combine="sum",
        apply=lambda value, incoming, ctx: value,
    )

    def count(ctx: Any) -> float:
        ctx.stay_awake()
        return float(ctx.value + 1)

    store = gp.MemoryStore()
    agents = gp.Agents(count, vertices=[5000])
    gp.run(graph, program, device="cpu", agents=agents, checkpoint=store, max_supersteps=12, on_limit="return")
    sizes = [commit.size for commit in store.history("run")]
    assert max(sizes[1:]) < 40_000
    assert gp.agents.state_at(store, "run").arrays["value"][5000] == 12


@pytest.mark.parametrize("supersteps", [20, pytest.param(200, marks=LONG)])
def test_workers_die_at_random_and_no_verdict_is_lost_or_applied_twice(
    graph: gp.Graph, tmp_path: Path, supersteps: int
) -> None:
    def deadly(ctx: Any) -> Any:
        if ctx.attempt == 1 and ctx.random.random() < 0.1:
            (tmp_path / f"{ctx.vertex_id} {ctx.superstep}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return busy(ctx)

    program, oracle = totals(lambda old, new: new == 100)
    chosen = [3, 40, 200]
    agents = gp.Agents(deadly, vertices=chosen, workers=2, neighbors=1000)
    options: dict[str, Any] = {"device": "cpu", "max_supersteps": supersteps, "on_limit": "return"}
    result = gp.run(graph, program, agents=agents, wake=lambda old, new, ctx: new == 100, **options)
    check(result, graph, oracle, busy, chosen, supersteps)
    assert len(list(tmp_path.iterdir())) >= supersteps // 10


def test_sums_of_floats_keep_their_partitions(graph: gp.Graph) -> None:
    ranks = gp.VertexProgram(
        value=np.float64,
        init=lambda ctx: 1.0,
        message=lambda value, ctx: value / 3,
        combine="sum",
        apply=lambda value, incoming, ctx: incoming,
        active="always",
    )
    store = gp.MemoryStore()
    options: dict[str, Any] = {"agents": gp.Agents(busy), "wake": lambda old, new, ctx: False, "device": "cpu"}
    gp.run(graph, ranks, checkpoint=store, partitions=2, max_supersteps=2, **options)
    with pytest.raises(CheckpointError, match="partitions=2, not 1, on which its sums of floats depend: pass"):
        gp.run(graph, ranks, checkpoint=store, resume=True, max_supersteps=3, **options)
    assert (
        gp.run(graph, ranks, checkpoint=store, resume=True, partitions=2, max_supersteps=3, **options).supersteps == 3
    )

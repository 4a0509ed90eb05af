"""Numeric runs and runs of agents end alike: the same arguments, statuses, errors and counts of supersteps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, CheckpointError, SuperstepLimitError

Run = Callable[..., Any]
"""Runs a program that counts supersteps in the value of vertex 0 and never ends by itself."""


def run_numeric(*, end: int | None = None, halt: int | None = None, **options: Any) -> tuple[Any, int]:
    """Count on a ring of vertices; return the result and its number of supersteps."""
    last = 1 << 40 if end is None else end
    program = gp.VertexProgram(
        value=np.int64,
        init=lambda ctx: 0,
        message=lambda value, ctx: value,
        combine="max",
        apply=lambda value, incoming, ctx: incoming + 1,
        active=lambda old, new, ctx: new < last,
        aggregators={"steps": gp.Aggregator("max", lambda old, new, ctx: new)},
        halt=None if halt is None else lambda aggregated: aggregated.steps >= halt,
    )
    ring = gp.Graph.from_edgelist([0, 1, 2], [1, 2, 0], directed=True)
    result = gp.run(ring, program, **options)
    return result, result.supersteps


def run_agents(*, end: int | None = None, halt: int | None = None, **options: Any) -> tuple[Any, int]:
    """Count in agent vertices; return the result and its number of supersteps."""

    def compute(ctx: Any) -> None:
        ctx.value = ctx.superstep
        if end is not None and ctx.superstep >= end:
            ctx.vote_to_halt()

    def master(m: Any) -> None:
        if halt is not None and m.superstep >= halt:
            m.halt()

    result = gp.agents.run([gp.agents.Vertex(k, 0) for k in range(3)], compute, master=master, **options)
    return result, result.superstep


def value_of(result: Any) -> Any:
    return result.values[0]


KINDS = pytest.mark.parametrize("run", [run_numeric, run_agents], ids=["numeric", "agents"])


@KINDS
@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_the_limit_raises_an_error_with_the_partial_result(run: Run, limit: int) -> None:
    with pytest.raises(SuperstepLimitError, match=f"still active after max_supersteps={limit}: increase it") as caught:
        run(max_supersteps=limit)
    partial: Any = caught.value.result
    assert (partial.status, len(partial.trace), value_of(partial)) == ("max_supersteps", limit, limit - 1)
    returned, supersteps = run(max_supersteps=limit, on_limit="return")
    assert (returned.status, supersteps, value_of(returned)) == ("max_supersteps", limit, limit - 1)


@KINDS
@pytest.mark.parametrize(
    ("options", "status", "supersteps"),
    [
        ({"end": 3, "max_supersteps": 4}, "completed", 4),
        ({"end": 3, "max_supersteps": 5}, "completed", 4),
        ({"end": 3, "max_supersteps": None}, "completed", 4),
        ({"end": 3, "max_supersteps": 3, "on_limit": "return"}, "max_supersteps", 3),
        ({"halt": 2}, "halted", 3),
        ({"halt": 2, "max_supersteps": 3}, "halted", 3),
        ({"halt": 2, "max_supersteps": 2, "on_limit": "return"}, "max_supersteps", 2),
        ({"halt": 2, "end": 2, "max_supersteps": 3}, "halted", 3),
    ],
)
def test_the_status_says_why_a_run_ended(run: Run, options: dict[str, Any], status: str, supersteps: int) -> None:
    result, count = run(**options)
    assert (result.status, count) == (status, supersteps)


@KINDS
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_supersteps": 0}, "max_supersteps must be from 1"),
        ({"on_limit": "ignore"}, "on_limit must be 'raise' or 'return'"),
    ],
)
def test_invalid_limits_are_refused_alike(run: Run, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        run(**options)


def test_resumed_runs_count_from_superstep_0_and_refuse_a_smaller_limit(tmp_path: Path) -> None:
    def numeric(limit: int, **options: Any) -> Any:
        return run_numeric(max_supersteps=limit, checkpoint=tmp_path / "numeric.db", on_limit="return", **options)[0]

    def compute(ctx: Any) -> None:
        ctx.value = ctx.superstep

    store = gp.MemoryStore()
    options: dict[str, Any] = {"store": store, "run_id": "run", "on_limit": "return"}
    first = [numeric(3), gp.agents.run([gp.agents.Vertex(0, 0)], compute, max_supersteps=3, **options)]
    assert [value_of(one) for one in first] == [2, 2]

    def agents(limit: int, **options: Any) -> Any:
        return gp.agents.resume(store, "run", compute, max_supersteps=limit, **options)

    ways: list[Callable[[int], Any]] = [
        lambda limit: numeric(limit, resume=True),
        lambda limit: agents(limit, on_limit="return"),
    ]
    for resume in ways:
        with pytest.raises(CheckpointError, match="holds 3 supersteps, more than max_supersteps=2: raise it"):
            resume(2)
        for limit in (3, 5):
            resumed = resume(limit)
            assert (resumed.status, value_of(resumed)) == ("max_supersteps", limit - 1)
    with pytest.raises(SuperstepLimitError):
        agents(6)


def test_a_run_from_checkpoint_data_refuses_a_smaller_limit() -> None:
    def compute(ctx: Any) -> None:
        ctx.value = ctx.superstep

    with gp.agents.start([gp.agents.Vertex(0, 0)], compute) as agents:
        for _ in range(3):
            agents.step()
        data = agents.checkpoint_data()
    with pytest.raises(CheckpointError, match="checkpoint_data: holds 3 supersteps, more than max_supersteps=2"):
        gp.agents.run(data, compute, max_supersteps=2)
    result = gp.agents.run(data, compute, max_supersteps=4, on_limit="return")
    assert (result.superstep, result.values) == (4, {0: 3})


def test_an_asynchronous_run_and_steps_treat_the_limit_alike() -> None:
    def compute(ctx: Any) -> None:
        ctx.value = ctx.superstep

    with pytest.raises(SuperstepLimitError) as caught:
        asyncio.run(gp.agents.arun([gp.agents.Vertex(0, 0)], compute, max_supersteps=2))
    partial: Any = caught.value.result
    assert (partial.status, partial.values) == ("max_supersteps", {0: 1})
    with gp.agents.start([gp.agents.Vertex(0, 0)], compute, max_supersteps=2) as agents:
        assert (agents.step(), agents.step(), agents.status) == (True, False, "max_supersteps")


def test_a_pagerank_of_5_supersteps_says_so() -> None:
    ranks = gp.VertexProgram(
        value=np.float64,
        init=lambda ctx: 1 / ctx.num_vertices,
        message=lambda value, ctx: value / ctx.out_degree,
        combine="sum",
        apply=lambda value, incoming, ctx: 0.15 / ctx.num_vertices + 0.85 * incoming,
        active="always",
    )
    result = gp.run(gp.grid(4), ranks, device="cpu", max_supersteps=5)
    assert (result.status, result.supersteps) == ("max_supersteps", 5)

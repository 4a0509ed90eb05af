"""What a held run returns, with which agents a run may be resumed, and targets that are no ids."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import AgentsFailedError, CheckpointError


def run(compute: Any, vertices: Any = (2,), **options: Any) -> Any:
    """Run a program in which each vertex takes a sum in every superstep."""
    graph = gp.Graph.from_edgelist([0, 1, 2, 3], [1, 2, 3, 0], num_vertices=5)
    program = gp.VertexProgram(
        value=np.int64,
        init=lambda ctx: ctx.vertex + 1,
        message=lambda value, ctx: value,
        combine="sum",
        apply=lambda value, incoming, ctx: (value + incoming) % 101,
        active="always",
    )
    agents = gp.Agents(compute, vertices=vertices, retry=gp.agents.RetryPolicy(attempts=1))
    given = {"device": "python", "max_supersteps": 5, "on_limit": "return", **options}
    return gp.run(graph, program, agents=agents, **given)


def once(ctx: Any) -> None:
    """Do nothing."""


@pytest.mark.parametrize("held", ["failed", "interrupted"])
def test_a_held_run_returns_what_it_has_committed(held: str) -> None:
    """Also when another program resumes it, and it is held again."""

    def compute(ctx: Any) -> int:
        if ctx.superstep == 3:
            if held == "failed":
                raise ValueError
            ctx.interrupt("how many?")
        return 7

    store = gp.MemoryStore()
    for resume in (False, True):
        try:
            result = run(compute, checkpoint=gp.Checkpoint(store, every=1), resume=resume)
        except AgentsFailedError as error:
            result = error.result
        state = gp.agents.state_at(store, "run")
        assert (result.status, len(result.trace)) == (held, 3)
        assert result.to_numpy().tolist() == state.arrays["value"].tolist()
        assert result.to_numpy()[2] == 7


@pytest.mark.parametrize("limit", [0, 2])
def test_the_agents_from_the_start_are_those_of_the_run(limit: int) -> None:
    store = gp.MemoryStore()

    def stop(ctx: Any) -> None:
        if ctx.superstep == limit:
            raise ValueError
        ctx.stay_awake()

    with pytest.raises(AgentsFailedError):
        run(stop, checkpoint=gp.Checkpoint(store, every=1))
    for others in ([1, 2], [3], {2: None, 4: None}):
        with pytest.raises(CheckpointError, match=r"belongs to a run with other vertices= of gp\.Agents"):
            run(once, others, checkpoint=store, resume=True)
    assert run(once, checkpoint=store, resume=True).agents.values == {2: None}


def test_values_that_all_change_do_not_store_all_agents_again() -> None:
    """In each superstep the numeric vertices change 40 bytes, beside agents with 100,000."""

    def fill(ctx: Any) -> None:
        if ctx.superstep == 0:
            ctx.state = bytes(100_000)
        ctx.stay_awake()

    store = gp.MemoryStore()
    run(fill, checkpoint=gp.Checkpoint(store, every=1, keep=100), max_supersteps=9)
    run(fill, checkpoint=gp.Checkpoint(store, every=1, keep=100), max_supersteps=20, resume=True)
    assert sum(commit.base for commit in store.history("run")) <= 3


def test_vertices_may_be_an_iterator() -> None:
    agents = gp.Agents(once, vertices=(v for v in (1, 2)))
    graph = gp.Graph.from_edgelist([0, 1], [1, 2])
    program = gp.VertexProgram(
        value=np.int64,
        init=lambda ctx: 0,
        message=lambda value, ctx: value,
        combine="min",
        apply=lambda value, incoming, ctx: value,
    )
    for _ in range(2):
        result: Any = gp.run(graph, program, agents=agents, device="python")
        assert result.agents.values == {1: None, 2: None}

"""What agents send and read beside numeric vertices: messages with named fields, and aggregates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import AgentsFailedError, CheckpointError

ONCE = gp.agents.RetryPolicy(attempts=1)


def run(graph: gp.Graph, program: gp.VertexProgram, compute: Any, vertices: Any, **options: Any) -> Any:
    agents = gp.Agents(compute, vertices=vertices, retry=ONCE)
    return gp.run(graph, program, agents=agents, **{"device": "python", "on_limit": "return", **options})


@pytest.fixture
def path() -> gp.Graph:
    return gp.Graph.from_edgelist(["a", "b", "c"], ["b", "c", "d"], directed=True)


def keeping() -> gp.VertexProgram:
    """Return a program whose messages have named fields; the largest becomes the value."""
    return gp.VertexProgram(
        value={"risk": np.float64, "hops": np.int64},
        init=lambda ctx: (0.0, 0),
        initially_active=lambda ctx: False,
        message=lambda value, ctx: (value.risk, value.hops + 1),
        combine="max",
        apply=lambda value, incoming, ctx: incoming,
    )


def test_agents_send_messages_with_named_fields(path: gp.Graph) -> None:
    def report(ctx: Any) -> None:
        ctx.state = [(one.sender, one.content.risk, one.content.hops) for one in ctx.messages]
        if ctx.vertex_id == "a" and ctx.superstep == 0:
            ctx.send("d", ctx.value._replace(hops=7))
            ctx.send_to_neighbors((0.5, 3))

    result = run(path, keeping(), report, ["a", "b"])
    assert result["d"] == (0.0, 7)
    assert result.agents.values == {"a": [], "b": [("a", 0.5, 3)]}


def test_a_message_to_none_is_refused(path: gp.Graph) -> None:
    with pytest.raises(AgentsFailedError, match="vertex 'a' sends to None, which is no id") as info:
        run(path, keeping(), lambda ctx: ctx.send(None, (1.0, 1)), ["a"])
    trace, advice = info.value.__notes__
    assert trace.startswith("\nvertex 'a': Traceback")
    assert advice == "Nothing is saved: with checkpoint=, a mended function could go on from here by resume=True."


def counted(**options: Any) -> gp.VertexProgram:
    """Return a program whose aggregate is the number of the superstep; vertex a never rests."""
    return gp.VertexProgram(
        value=np.int64,
        init=lambda ctx: 0,
        initially_active=lambda ctx: ctx.vertex == 0,
        message=lambda value, ctx: 1,
        combine="max",
        apply=lambda value, incoming, ctx: ctx.superstep,
        aggregators={"step": gp.Aggregator("max", lambda old, new, ctx: ctx.superstep)},
        **options,
    )


def test_agents_read_aggregates_from_superstep_0_on() -> None:
    graph = gp.Graph.from_edgelist([0, 0], [0, 1], directed=True)

    def read(ctx: Any) -> None:
        ctx.state = [*(ctx.state or ()), ctx.aggregated.step]
        ctx.stay_awake()

    identity = np.iinfo(np.int64).min
    assert run(graph, counted(), read, [1], max_supersteps=4).agents.values == {1: [identity, identity, 1, 2]}


def test_a_written_value_is_active_by_the_aggregates_that_the_superstep_sees() -> None:
    graph = gp.Graph.from_edgelist([0, 1], [0, 2], directed=True)
    program = counted(active=lambda old, new, ctx: ctx.vertex == 0 or ctx.aggregated.step == 2)

    def write(ctx: Any) -> int:
        ctx.stay_awake()
        return int(ctx.superstep)

    result = run(graph, program, write, [1], max_supersteps=6)
    assert [row["active_vertices"] for row in result.trace] == [1, 1, 1, 2, 1, 1]  # 2 is the aggregate of superstep 2


def test_messages_that_cannot_be_combined_hold_the_superstep(tmp_path: Path) -> None:
    graph = gp.Graph.from_edgelist([0, 1], [2, 2], directed=True)
    program = gp.VertexProgram(
        value=np.int8,
        init=lambda ctx: 0,
        initially_active=lambda ctx: False,
        message=lambda value, ctx: value,
        combine="sum",
        apply=lambda value, incoming, ctx: incoming,
    )

    def run_with(number: int, **options: Any) -> Any:
        store = gp.Checkpoint(tmp_path / "runs.db")
        return run(graph, program, lambda ctx: ctx.send(2, number), [0, 1], checkpoint=store, **options)

    with pytest.raises(AgentsFailedError, match=r"vertex 1: .*combined.* vertex 2 in superstep 1: it returns 200"):
        run_with(100)
    assert run_with(27, resume=True)[2] == 127  # vertex 0 has sent 100, and is not computed again


@pytest.mark.parametrize(("device", "active"), [("cpu", "changed"), ("python", "always"), ("emulated", "always")])
def test_the_program_applies_nothing_to_agents(device: str, active: Any) -> None:
    graph = gp.Graph.from_edgelist([0, 0, 0], [0, 1, 2], directed=True)
    program = gp.VertexProgram(
        value=np.int64,
        init=lambda ctx: ctx.vertex,
        initially_active=lambda ctx: ctx.vertex == 0,
        message=lambda value, ctx: value + 1,
        combine="sum",
        apply=lambda value, incoming, ctx: incoming,
        active=active,
        aggregators={"applied": gp.Aggregator("sum", lambda old, new, ctx: 1)},
    )
    result = run(graph, program, lambda ctx: None, [1], device=device, max_supersteps=4)
    assert [result[v] for v in range(3)] == [3, 1, 3]
    assert [row["applied"] for row in result.trace] == [0, 2, 2, 2]
    assert result.aggregated.applied == 2


def test_a_run_resumes_with_the_vertices_that_were_agents_from_the_start(path: gp.Graph) -> None:
    options: dict[str, Any] = {"checkpoint": gp.MemoryStore(), "max_supersteps": 2}
    program = keeping()
    run(path, program, lambda ctx: ctx.stay_awake(), ["a"], **options)
    for other in (["a", "b"], ["b"], []):
        with pytest.raises(CheckpointError, match="belongs to a run with other vertices="):
            run(path, program, lambda ctx: None, other, resume=True, **options)
    assert run(path, program, lambda ctx: None, {"a": "new"}, resume=True, **{**options, "max_supersteps": 4}).agents

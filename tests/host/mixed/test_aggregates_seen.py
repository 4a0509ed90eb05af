"""Which aggregates the functions of a program see where agents take part, and what a write leaves active."""

from __future__ import annotations

from typing import Any

import numpy as np

import gpu_pregel as gp


def test_functions_see_the_aggregates_of_the_superstep_before() -> None:
    """``active``, called for what an agent writes, and ``message``, called for an edge to an agent."""
    program = gp.VertexProgram(
        value=np.int64,
        init=lambda ctx: 0,
        initially_active=lambda ctx: ctx.vertex == 0,
        message=lambda value, ctx: 10 + (ctx.aggregated.applied > 0),
        combine="sum",
        apply=lambda value, incoming, ctx: value + 1,
        active=lambda old, new, ctx: (ctx.aggregated.applied > 0) == (ctx.superstep > 1),
        aggregators={"applied": gp.Aggregator("sum", lambda old, new, ctx: 1)},
    )

    def write(ctx: Any) -> int:
        ctx.state = [*(ctx.state or []), (ctx.superstep, [one.content for one in ctx.messages])]
        return int(ctx.superstep)

    graph = gp.Graph.from_edgelist([0, 1, 2], [1, 2, 1], num_vertices=3, directed=True)
    options: dict[str, Any] = {"max_supersteps": 4, "on_limit": "return"}
    result: Any = gp.run(graph, program, device="python", agents=gp.Agents(write, vertices=[1]), **options)
    assert result.agents.values[1] == [(0, []), (1, [10]), (2, [10]), (3, [11])]


def test_a_write_does_not_stop_a_vertex_that_the_program_has_changed() -> None:
    """In superstep 2 the program raises vertex 1 to 6, which its agent writes, too: vertex 2 learns of it."""
    program = gp.VertexProgram(
        value=np.int64,
        init=lambda ctx: 0 if ctx.vertex else 5,
        initially_active=lambda ctx: ctx.vertex == 0,
        message=lambda value, ctx: value + ctx.superstep,
        combine="max",
        apply=lambda value, incoming, ctx: max(value, incoming),
        active=lambda old, new, ctx: new > old,
    )

    def confirm(ctx: Any) -> int | None:
        return 6 if ctx.vertex_id == 1 and ctx.superstep == 2 else None

    graph = gp.Graph.from_edgelist([0, 1, 0, 3], [1, 2, 3, 1], num_vertices=4, directed=True)
    result: Any = gp.run(
        *(graph, program), device="python", agents=gp.Agents(confirm), wake=lambda old, new, ctx: ctx.vertex == 1
    )
    assert result.values.tolist() == gp.run(graph, program, device="python").values.tolist() == [5, 6, 8, 5]

"""Runs of numeric vertices with agents equal an oracle: on every device, for any number of workers and partitions."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpu_pregel as gp
from tests.agents import WORKERS
from tests.devices import PROGRAM_DEVICES
from tests.mixed_oracle import OracleProgram, simulate

LIMIT = 8
LARGE = 1 << 40
Compute = Callable[[Any], Any]


def smallest(wake: Callable[[int, int], bool]) -> tuple[gp.VertexProgram, OracleProgram]:
    """Return a program in which the smallest value spreads."""
    program = gp.VertexProgram(
        value=np.int64,
        init=lambda ctx: 7 * ctx.vertex % 31 + 40,
        message=lambda value, ctx: value + 1,
        combine="min",
        apply=lambda value, incoming, ctx: min(value, incoming),
    )
    oracle = OracleProgram(lambda v: 7 * v % 31 + 40, lambda value: value + 1, min, np.iinfo(np.int64).max, min, wake)
    return program, oracle


def totals(wake: Callable[[int, int], bool]) -> tuple[gp.VertexProgram, OracleProgram]:
    """Return a program in which every vertex takes a sum in every superstep."""
    program = gp.VertexProgram(
        value=np.int64,
        init=lambda ctx: ctx.vertex + 1,
        message=lambda value, ctx: value,
        combine="sum",
        apply=lambda value, incoming, ctx: (3 * value + incoming) % 101,
        active="always",
    )
    oracle = OracleProgram(
        lambda v: v + 1,
        lambda value: value,
        lambda a, b: a + b,
        0,
        lambda value, incoming: (3 * value + incoming) % 101,
        wake,
        always=True,
    )
    return program, oracle


def busy(ctx: Any) -> int | None:
    """Do one thing or another, and keep a diary."""
    seen = (ctx.superstep, ctx.value, ctx.is_woken, [tuple(one) for one in ctx.neighbors])
    ctx.state = [*(ctx.state or []), (*seen, [tuple(one) for one in ctx.messages])]
    choice = (3 * ctx.vertex_id + ctx.superstep) % 5
    if choice == 0:
        ctx.send((ctx.vertex_id * 5 + 1) % ctx.num_vertices, 17 + ctx.superstep)
    elif choice == 1:
        ctx.send_to_neighbors(23)
    elif choice == 2:
        ctx.stay_awake()
    return None if choice == 4 else int(ctx.value) + 11


def rows_of(graph: gp.Graph) -> list[list[int]]:
    """Return the out-neighbours of each vertex."""
    indptr, indices = graph.indptr.tolist(), graph.indices.tolist()
    return [indices[first:last] for first, last in pairwise(indptr)]


def check(
    result: Any, graph: gp.Graph, oracle: OracleProgram, compute: Compute, agents: Any = (), limit: int = LIMIT
) -> None:
    """Assert that a run has the oracle's values, states and counts."""
    open_steps = {
        step for row in result.trace if row["lag"] for step in range(row["superstep"] - row["lag"], row["superstep"])
    }
    expected = simulate(rows_of(graph), oracle, compute, agents, limit, open_steps)
    assert result.to_numpy().tolist() == expected.values
    assert list(result.agents.values.items()) == list(expected.states.items())
    assert [(row["active_vertices"], row["computed"], row["woken"]) for row in result.trace] == expected.rows


@pytest.fixture(scope="module")
def graph() -> gp.Graph:
    return gp.kronecker(8, edge_factor=4, seed=3)


@PROGRAM_DEVICES
@pytest.mark.parametrize(("mode", "partitions"), [("push", 1), ("pull", 3), ("push", 3)])
def test_woken_agents_write_and_send(graph: gp.Graph, device: str, mode: Any, partitions: int) -> None:
    program, oracle = smallest(lambda old, new: new % 5 == 0)
    result = gp.run(
        graph,
        program,
        device=device,
        mode=mode,
        partitions=partitions,
        agents=gp.Agents(busy, neighbors=1000),
        wake=lambda old, new, ctx: new % 5 == 0,
        max_supersteps=LIMIT,
        on_limit="return",
    )
    check(result, graph, oracle, busy)
    assert result.stats["workers"] == 0


@PROGRAM_DEVICES
def test_some_vertices_are_agents_from_the_start(graph: gp.Graph, device: str) -> None:
    program, oracle = totals(lambda old, new: new > 95)
    chosen = frozenset(range(0, graph.num_vertices, 9))
    result = gp.run(
        graph,
        program,
        device=device,
        agents=gp.Agents(busy, vertices=sorted(chosen), neighbors=1000),
        wake=lambda old, new, ctx: new > 95,
        max_supersteps=LIMIT,
        on_limit="return",
    )
    check(result, graph, oracle, busy, chosen)


@WORKERS
@pytest.mark.parametrize("make", [smallest, totals])
def test_results_do_not_depend_on_the_number_of_workers(graph: gp.Graph, make: Any, workers: int) -> None:
    program, oracle = make(lambda old, new: new % 7 == 3)
    chosen = {0, 5, 77}
    result = gp.run(
        graph,
        program,
        device="cpu",
        agents=gp.Agents(busy, vertices=chosen, workers=workers, neighbors=1000),
        wake=lambda old, new, ctx: new % 7 == 3,
        max_supersteps=LIMIT,
        on_limit="return",
    )
    check(result, graph, oracle, busy, chosen)


@given(
    case=st.integers(1, 40).flatmap(
        lambda n: st.tuples(
            st.just(n),
            st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=80),
            st.sets(st.integers(0, n - 1), max_size=4),
        )
    ),
    is_directed=st.booleans(),
    with_sums=st.booleans(),
)
@settings(max_examples=40)
def test_random_graphs(case: tuple[int, list[tuple[int, int]], set[int]], is_directed: bool, with_sums: bool) -> None:
    n, edges, chosen = case
    graph = gp.Graph.from_edgelist(
        [u for u, _ in edges], [v for _, v in edges], num_vertices=n, directed=is_directed, combine="min"
    )
    program, oracle = (totals if with_sums else smallest)(lambda old, new: new % 4 == 1)
    result = gp.run(
        graph,
        program,
        device="cpu",
        agents=gp.Agents(busy, vertices=chosen, neighbors=1000),
        wake=lambda old, new, ctx: new % 4 == 1,
        max_supersteps=LIMIT,
        on_limit="return",
    )
    check(result, graph, oracle, busy, chosen)

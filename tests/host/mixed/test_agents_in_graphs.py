"""What agents beside numeric vertices see and do, one thing at a time, and what is refused."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import AgentsFailedError, ArgumentError, ArgumentTypeError, ProgramError, SuperstepLimitError
from gpu_pregel.host.agents.workers.pool import WorkerPool
from tests.devices import PROGRAM_DEVICES

ONCE = gp.agents.RetryPolicy(attempts=1)


def counting(**options: Any) -> gp.VertexProgram:
    """Return a program that counts supersteps in one of two fields, and sums messages of 1 in the other."""
    return gp.VertexProgram(
        **{
            "value": {"steps": np.int32, "total": np.float64},
            "message_type": np.float64,
            "init": lambda ctx: (0, 0.0),
            "message": lambda value, ctx: 1.0,
            "combine": "sum",
            "apply": lambda value, incoming, ctx: (value.steps + 1, value.total + incoming),
            "active": "always",
            **options,
        }
    )


@pytest.fixture
def path() -> gp.Graph:
    return gp.Graph.from_edgelist(["a", "b", "c"], ["b", "c", "d"], [1.0, 2.0, 4.0], directed=True)


def run(graph: gp.Graph, program: gp.VertexProgram, compute: Any, **options: Any) -> Any:
    names = ("vertices", "neighbors", "combined", "on_failure")
    agents = {name: options.pop(name) for name in names if name in options}
    options.setdefault("device", "cpu")
    options.setdefault("max_supersteps", 4)
    made = gp.Agents(compute, retry=ONCE, **agents)
    return gp.run(graph, program, agents=made, on_limit="return", **options)


def first(old: Any, new: Any, ctx: Any) -> bool:
    return bool(new.steps == 1 and ctx.vertex == 1)


@PROGRAM_DEVICES
def test_an_agent_sees_its_vertex_and_its_neighbors(path: gp.Graph, device: str) -> None:
    def look(ctx: Any) -> None:
        ctx.state = {
            "id": ctx.vertex_id,
            "superstep": ctx.superstep,
            "value": (ctx.value.steps, ctx.value.total),
            "neighbors": [(one.id, one.value.steps, one.value.total) for one in ctx.neighbors],
            "degree": ctx.out_degree,
            "woken": ctx.is_woken,
            "size": ctx.num_vertices,
            "aggregated": ctx.aggregated.largest,
            "messages": ctx.messages,
        }

    aggregators = {"largest": gp.Aggregator("max", lambda old, new, ctx: new.total)}
    result = run(path, counting(aggregators=aggregators), look, wake=first, device=device)
    assert result.agents.values == {
        "b": {
            "id": "b",
            "superstep": 2,
            "value": (1, 1.0),
            "neighbors": [("c", 1, 1.0)],
            "degree": 1,
            "woken": True,
            "size": 4,
            "aggregated": 1.0,
            "messages": [],
        }
    }
    assert [(row["woken"], row["computed"]) for row in result.trace] == [(0, 0), (1, 0), (0, 1), (0, 0)]
    assert [value.steps for value in result.to_dict().values()] == [3, 3, 3, 3]


@PROGRAM_DEVICES
def test_named_fields_are_written_and_the_others_stay(path: gp.Graph, device: str) -> None:
    result = run(path, counting(), lambda ctx: {"total": -100}, wake=first, device=device)
    assert result.to_dict()["b"] == (3, -99.0)


def test_a_whole_value_may_be_returned(path: gp.Graph) -> None:
    result = run(path, counting(), lambda ctx: (40, 0.5), wake=first)
    assert result.to_dict()["b"] == (41, 1.5)


def test_a_written_vertex_is_active_as_the_program_says(path: gp.Graph) -> None:
    """Values below 10 send; b's agent makes its value 5, so that c and then d hear of it."""
    program = gp.VertexProgram(
        value=np.int64,
        init=lambda ctx: 20,
        initially_active=lambda ctx: ctx.vertex == 0,
        message=lambda value, ctx: value,
        combine="min",
        apply=lambda value, incoming, ctx: min(value, incoming) - 1,
        active=lambda old, new, ctx: new < 10 and old != new,
    )
    result = run(path, program, lambda ctx: 5, wake=lambda old, new, ctx: ctx.vertex == 1, max_supersteps=9)
    assert result.values.tolist() == [20, 5, 4, 3]
    assert result.status == "completed"


def test_messages_to_agents_have_their_senders_or_are_combined(path: gp.Graph) -> None:
    program = counting(message=lambda value, weight, ctx: 10 * weight + ctx.vertex)

    def keep(ctx: Any) -> None:
        ctx.state = [*(ctx.state or []), [tuple(one) for one in ctx.messages]]

    graph = gp.Graph.from_edgelist(["a", "b", "x"], ["x", "x", "a"], [1.0, 2.0, 1.0], directed=True)
    seen = run(graph, program, keep, vertices=["x"], max_supersteps=2).agents.values["x"]
    assert seen == [[], [("a", 10.0), ("b", 22.0)]]
    seen = run(graph, program, keep, vertices=["x"], max_supersteps=2, combined=True).agents.values["x"]
    assert seen == [[], [(None, 32.0)]]


def test_the_program_changes_nothing_of_an_agent_from_the_start(path: gp.Graph) -> None:
    result = run(path, counting(), lambda ctx: None, vertices={"b": "its state"})
    assert [tuple(one) for one in result.to_numpy().tolist()] == [(3, 0.0), (0, 0.0), (3, 0.0), (3, 3.0)]
    assert result.agents.values == {"b": "its state"}


def test_agents_talk_to_each_other_and_to_numeric_vertices(path: gp.Graph) -> None:
    def talk(ctx: Any) -> None:
        ctx.state = [*(ctx.state or []), *map(tuple, ctx.messages)]
        if ctx.superstep == 0 and ctx.vertex_id == "b":
            ctx.send("d", {"any": "data"})
            ctx.send("a", 0.25)
            ctx.send_to_neighbors(64.0)

    program = counting(message=lambda value, ctx: 0.0)
    result = run(path, program, talk, vertices=["b", "d"], max_supersteps=3)
    assert result.agents.values["d"] == [("c", 0.0), ("b", {"any": "data"}), ("c", 0.0)]
    assert [round(one, 3) for one in result.values.total.tolist()] == [0.25, 0.0, 64.0, 0.0]


def test_agents_are_chosen_by_a_function_of_the_id(path: gp.Graph) -> None:
    result = run(path, counting(), lambda ctx: None, vertices=lambda vertex: vertex in ("a", "d"))
    assert list(result.agents.vertices) == ["a", "d"]


def test_neighbors_are_bounded() -> None:
    star = gp.Graph.from_edgelist([0] * 9, range(1, 10))

    def count(ctx: Any) -> None:
        ctx.state = (len(ctx.neighbors), ctx.out_degree)

    result = run(star, counting(), count, vertices=[0], neighbors=4)
    assert result.agents.values == {0: (4, 9)}


def test_an_agent_stays_awake_as_long_as_it_asks(path: gp.Graph) -> None:
    def count(ctx: Any) -> None:
        ctx.state = (ctx.state or 0) + 1
        if ctx.state < 3:
            ctx.stay_awake()

    program = counting(active="changed", init=lambda ctx: (0, 0.0), apply=lambda value, incoming, ctx: value)
    result = run(path, program, count, vertices=["a"], max_supersteps=20)
    assert (result.agents.values, result.status, result.supersteps) == ({"a": 3}, "completed", 3)


def test_async_agents_run_together(path: gp.Graph) -> None:
    started: list[Any] = []

    async def meet(ctx: Any) -> int | None:
        started.append(ctx.vertex_id)
        while len(started) < 2:
            await asyncio.sleep(0)
        ctx.state = sorted(started)
        return None

    result = run(path, counting(), meet, vertices=["a", "c"], max_supersteps=1)
    assert result.agents.values == {"a": ["a", "c"], "c": ["a", "c"]}


def test_failures_hold_the_superstep(path: gp.Graph) -> None:
    def fail(ctx: Any) -> None:
        raise ValueError("no verdict")

    match = r"1 vertex failed in superstep 2.*vertex 'b': ValueError: no verdict"
    with pytest.raises(AgentsFailedError, match=match) as info:
        run(path, counting(), fail, wake=first)
    assert info.value.result.values.steps.shape == (4,)
    result = run(path, counting(), fail, wake=first, on_failure="continue")
    assert (list(result.agents.failed), result.values.steps.tolist()) == (["b"], [3, 3, 3, 3])


@pytest.mark.parametrize(
    ("returned", "problem"),
    [
        ({"verdict": 1.0}, r"returns a field 'verdict', but the value has the fields steps, total"),
        ({"steps": 1.5}, r"in field 'steps' the float 1.5, but int32 is declared"),
        ({"steps": 1 << 40}, r"1099511627776, which does not fit int32"),
        ("guilty", r"returns 'guilty', but .* is declared"),
        ((1,), r"returns a tuple of 1, but"),
    ],
)
def test_values_that_do_not_fit_fail_the_agent(path: gp.Graph, returned: Any, problem: str) -> None:
    with pytest.raises(AgentsFailedError, match=f"vertex 'b'.*{problem}"):
        run(path, counting(), lambda ctx: returned, wake=first)


def test_messages_that_do_not_fit_or_arrive_fail_the_agent(path: gp.Graph) -> None:
    with pytest.raises(AgentsFailedError, match="sends 'hello' of type str, but float64 is declared"):
        run(path, counting(), lambda ctx: ctx.send("a", "hello"), wake=first)
    for target in ("zed", 0, ["a"]):
        with pytest.raises(AgentsFailedError, match=r"sent a message to .*, which is not in the graph"):
            run(path, counting(), lambda ctx, target=target: ctx.send(target, 1.0), wake=first)


def test_wake_must_answer_yes_or_no(path: gp.Graph) -> None:
    with pytest.raises(ProgramError, match=r"wake returns .*, but must return True or False"):
        run(path, counting(), lambda ctx: None, wake=lambda old, new, ctx: 0.5)
    with pytest.raises(ArgumentTypeError, match=r"wake takes 1 argument, but must take \(old, new, ctx\)"):
        run(path, counting(), lambda ctx: None, wake=lambda new: True)


def test_what_cannot_be_meant_is_refused(path: gp.Graph) -> None:
    program = counting()
    with pytest.raises(ArgumentError, match="wake= needs agents to wake"):
        gp.run(path, program, wake=first)
    with pytest.raises(ArgumentError, match="needs a function that computes the agents"):
        gp.run(path, program, wake=first, agents=gp.Agents(workers=1))
    with pytest.raises(ArgumentError, match="no vertex can become an agent"):
        gp.run(path, program, agents=gp.Agents(print))
    for other in ("e", ["a"], None):
        with pytest.raises(ArgumentError, match=r"vertices has .*, which is not in the graph"):
            gp.run(path, program, agents=gp.Agents(print, vertices=[other]))
    with pytest.raises(ArgumentTypeError, match=r"vertices\('a'\) returns 1, but must return True or False"):
        gp.run(path, program, agents=gp.Agents(print, vertices=lambda vertex: 1))
    with pytest.raises(ArgumentError, match="agents compute this program"):
        gp.run(path, program, device="agents", agents=gp.Agents(print, vertices=["a"]))
    with pytest.raises(ArgumentError, match="resume=True needs checkpoint="):
        gp.run(path, program, agents=gp.Agents(print, vertices=["a"]), resume=True)
    with pytest.raises(ArgumentTypeError, match="vertices must be ids of the graph"):
        gp.Agents(print, vertices="abc")
    with pytest.raises(ArgumentError, match="neighbors"):
        gp.Agents(print, neighbors=-1)


def test_the_limit_of_supersteps_is_an_error(path: gp.Graph) -> None:
    program = counting(active="changed")
    with pytest.raises(SuperstepLimitError) as info:
        gp.run(path, program, agents=gp.Agents(lambda ctx: ctx.stay_awake(), vertices=["a"]), max_supersteps=3)
    result: Any = info.value.result
    assert result.agents.superstep == 3


def test_workers_start_when_the_first_agent_is_computed(path: gp.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []
    start = WorkerPool.start

    def recorded(pool: WorkerPool, *rest: Any) -> None:
        started.append(pool.partitions)
        start(pool, *rest)

    monkeypatch.setattr(WorkerPool, "start", recorded)
    for wake, expected in ((lambda old, new, ctx: ctx.vertex < 0, []), (first, [2])):
        agents = gp.Agents(lambda ctx: {"total": -1.0}, workers=2)
        result: Any = gp.run(
            path, counting(), device="cpu", agents=agents, wake=wake, max_supersteps=4, on_limit="return"
        )
        assert started == expected
    assert result.to_dict()["b"] == (3, 0.0)


def test_agents_run_side_by_side_on_threads() -> None:
    barrier = threading.Barrier(3)

    def compute(ctx: Any) -> float:
        barrier.wait(20)
        return float(ctx.vertex_id)

    program = gp.VertexProgram(
        value=np.float64,
        init=lambda ctx: -1.0,
        message=lambda value, ctx: value,
        combine="max",
        apply=lambda value, incoming, ctx: value,
    )
    graph = gp.Graph.from_edgelist([0, 1, 2], [1, 2, 3])
    result = gp.run(graph, program, device="python", agents=gp.Agents(compute, vertices=[0, 1, 3], threads=3))
    assert result.values.tolist() == [0.0, 1.0, -1.0, 3.0]

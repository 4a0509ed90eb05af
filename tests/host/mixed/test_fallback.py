"""Vertex programs that agents compute: programs of data, and those that Numba cannot compile."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import (
    AgentsFailedError,
    ArgumentError,
    ArgumentTypeError,
    CheckpointError,
    CompileError,
    GpuPregelError,
    SuperstepLimitError,
)
from tests.programs import DISTANCES

LONGEST = gp.VertexProgram(
    value=str,
    init=lambda ctx: f"{ctx.vertex * 7 % 10}-{ctx.vertex}",
    message=lambda value, ctx: value,
    combine="max",
    apply=lambda value, incoming, ctx: max(value, incoming),
)
"""Each vertex of a component gets the largest of its names."""

ROUTES = gp.VertexProgram(
    value=list,
    init=lambda ctx: [ctx.vertex] if ctx.vertex == ctx.parameters.source else [],
    initially_active=lambda ctx: ctx.vertex == ctx.parameters.source,
    message=lambda value, ctx: [value],
    combine=gp.Combiner(lambda a, b: sorted(a + b), []),
    apply=lambda value, incoming, ctx: value or [*incoming[0], ctx.vertex],
    receives=lambda value, ctx: not value,
    parameters={"source": 0},
)
"""Each vertex gets the route of the fewest hops from the source, of equal ones the smallest."""


@dataclass
class Opinion:
    text: str
    votes: int = 0


gp.agents.register(Opinion)


@pytest.fixture(scope="module")
def graph() -> gp.Graph:
    return gp.kronecker(6, 2)


@pytest.mark.parametrize("workers", [0, 2])
def test_values_are_data(graph: gp.Graph, workers: int) -> None:
    result = gp.run(graph, LONGEST, agents=gp.Agents(workers=workers))
    for component in networkx.connected_components(graph.to_networkx()):
        largest = max(f"{v * 7 % 10}-{v}" for v in component)
        assert {result[v] for v in component} == {largest}
    assert (result.values.dtype, result.status, result.stats["device"]) == (object, "completed", "agents")


PROCESSES = gp.VertexProgram(
    value=object,
    init=lambda ctx: {"process": os.getpid(), "name": "x" * (ctx.vertex % 3)},
    message=lambda value, ctx: value["name"],
    combine="max",
    apply=lambda value, incoming, ctx: {"process": value["process"], "name": max(value["name"], incoming)},
)
"""Each vertex remembers the process that made its value, and gets the largest name of its component."""


@pytest.mark.parametrize(
    ("vertices", "agents", "workers"),
    [
        (512, None, 0),
        (513, None, 2),
        (513, gp.Agents(workers=0), 0),
        (513, gp.Agents(threads=2), 0),
        (3, gp.Agents(timeout=60.0), 2),
        (3, gp.Agents(workers=1), 1),
    ],
)
def test_values_that_are_no_numbers_are_computed_in_worker_processes(
    monkeypatch: pytest.MonkeyPatch, vertices: int, agents: gp.Agents | None, workers: int
) -> None:
    monkeypatch.setattr("gpu_pregel.host.mixed.agents.available_threads", lambda: 2)
    path = gp.Graph.from_edgelist(np.arange(vertices - 1), np.arange(1, vertices))
    result = gp.run(path, PROCESSES, agents=agents, max_supersteps=4, on_limit="return")
    assert {value["name"] for value in result.values} == {"xx"}
    assert result.stats["workers"] == workers
    processes = {value["process"] for value in result.values}
    assert processes == {os.getpid()} if workers == 0 else os.getpid() not in processes


def test_agents_beside_vertices_are_computed_here_unless_workers_are_named() -> None:
    assert gp.Agents(lambda ctx: None).workers_for(1 << 20) == 0
    assert gp.Agents(lambda ctx: None, workers=3).workers_for(1) == 3


def test_routes_are_those_of_networkx(graph: gp.Graph) -> None:
    found = gp.run(graph, ROUTES, parameters={"source": 3})
    other = graph.to_networkx()
    for v in other:
        if networkx.has_path(other, 3, v):
            assert found[v] == min(networkx.all_shortest_paths(other, 3, v))
        else:
            assert found[v] == []


def test_data_may_be_modified_in_place_and_compared_with_before() -> None:
    """Both ``active`` and the aggregator get the value before ``apply`` has modified it."""

    def add(value: Opinion, incoming: int, ctx: gp.VertexContext) -> Opinion:
        value.votes += incoming
        return value

    program = gp.VertexProgram(
        value=Opinion,
        message_type=np.int64,
        init=lambda ctx: Opinion("yes"),
        message=lambda value, ctx: 1,
        combine="sum",
        apply=add,
        active=lambda old, new, ctx: old.votes == 0 and new.votes == 2,
        aggregators={"added": gp.Aggregator("sum", lambda old, new, ctx: new.votes - old.votes, np.int64)},
    )
    ring = gp.Graph.from_edgelist([0, 1, 2], [1, 2, 0])
    result = gp.run(ring, program)
    assert [value.votes for value in result.values] == [4, 4, 4]
    assert result.aggregated.added == 6
    assert [row["active_vertices"] for row in result.trace] == [3, 3, 0]


def test_an_aggregate_of_data_is_none_at_first() -> None:
    seen: list[Any] = []

    def apply(value: str, incoming: str, ctx: gp.VertexContext) -> str:
        seen.append(ctx.aggregated.last)
        return max(value, incoming)

    last = gp.Aggregator("max", lambda old, new, ctx: new)
    program = replace(
        LONGEST, apply=apply, aggregators={"last": last}, halt=lambda aggregated: aggregated.last == "7-1"
    )
    result = gp.run(gp.Graph.from_edgelist([0, 1], [1, 2]), program)
    assert result.status == "halted"
    assert (result.aggregated.last, seen) == ("7-1", [None] * 3)
    assert [row["aggregated.last"] for row in result.trace] == [None, "7-1"]


def test_the_trace_has_aggregates_of_data_as_texts() -> None:
    def names(old: str, new: str, ctx: gp.VertexContext) -> list[str]:
        return [new] * ctx.superstep

    union = gp.Combiner(lambda a, b: sorted(a + b), [])
    program = replace(LONGEST, aggregators={"names": gp.Aggregator(union, names)}, active="always")
    trace = gp.run(gp.Graph.from_edgelist([0, 1], [1, 2]), program, max_supersteps=5).trace
    six = ", ".join(["'7-1'"] * 6)
    found = [row["aggregated.names"] for row in trace]
    assert found == ["[]", "['7-1', '7-1', '7-1']", f"[{six}]", f"[{six}, ...]", f"[{six}, ...]"]
    assert trace.to_pandas()["aggregated.names"].tolist() == found
    assert isinstance(hash(trace), int)


def test_an_unchanged_state_of_no_vertices() -> None:
    result = gp.run(gp.Graph.from_edgelist([], [], num_vertices=0), LONGEST)
    assert (result.values.tolist(), result.supersteps, result.status) == ([], 1, "completed")


def test_initial_values_and_a_frontier_of_data() -> None:
    path = gp.Graph.from_edgelist(["a", "b", "c"], ["b", "c", "d"])
    result = gp.run(path, LONGEST, initial=["x", "z", "y", "w"], frontier=path.vertices(["c"]))
    assert result.to_dict() == {"a": "x", "b": "z", "c": "y", "d": "y"} | {"a": "x"}
    with pytest.raises(ArgumentError, match="initial has 1 values, but the graph has 4 vertices"):
        gp.run(path, LONGEST, initial=["x"])
    with pytest.raises(ArgumentTypeError, match="initial must be a sequence of 4 values by vertex number, not 'abcd'"):
        gp.run(path, LONGEST, initial="abcd")


def slow_to_compile(value: int, weight: float) -> int:
    """Use what Numba cannot compile."""
    return int(re.sub("x", "", f"{value}x")) + int(weight)


STEPS = replace(
    DISTANCES, value=np.int64, message=lambda value, weight, ctx: min(slow_to_compile(value, weight), 1 << 40),
    init=lambda ctx: 0 if ctx.vertex == 0 else 1 << 40,
)  # fmt: skip


def test_functions_that_numba_cannot_compile(graph: gp.Graph) -> None:
    with pytest.raises(CompileError, match=r"message cannot be compiled .*\n.*\nOr pass fallback='agents'"):
        gp.run(graph, STEPS, device="cpu")
    found = gp.run(graph, STEPS, device="cpu", fallback="agents")
    hops = networkx.single_source_shortest_path_length(graph.to_networkx(), 0)
    assert found.values.dtype == np.int64
    assert {v: int(found[v]) for v in range(graph.num_vertices) if found[v] < 1 << 40} == hops


def test_a_program_that_can_be_compiled_is_not_computed_by_agents(graph: gp.Graph) -> None:
    assert gp.run(graph, DISTANCES, device="cpu", fallback="agents").stats["device"] == "cpu"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda graph: gp.run(graph, LONGEST, fallback="error"),
            ArgumentError,
            "no device can compute a program with non-numeric values",
        ),
        (
            lambda graph: gp.run(graph, LONGEST, fallback="no"),  # type: ignore[arg-type]
            ArgumentError,
            "fallback must be 'agents' or 'error'",
        ),
        (
            lambda graph: gp.run(graph, LONGEST, agents=3),  # type: ignore[arg-type]
            ArgumentTypeError,
            "agents must be a gp.Agents, not 3",
        ),
        (lambda graph: gp.Agents(workers=-1), ArgumentError, "workers must be"),
        (lambda graph: gp.Agents(workers=1, threads=1), ArgumentError, "threads=1 are threads of this process"),
        (lambda graph: gp.Agents(workers=0, timeout=1.0), ArgumentError, "cannot be enforced with workers=0"),
        (
            lambda graph: gp.Agents(workers="many"),  # type: ignore[arg-type]
            ArgumentError,
            "workers must be 'auto' or a whole number of .*, not 'many'",
        ),
        (lambda graph: gp.Agents(workers=None), ArgumentTypeError, "workers must be 'auto' or a whole .*, not None"),  # type: ignore[arg-type]
        (lambda graph: replace(LONGEST, value=(str, int)), ArgumentTypeError, "value must be a dtype such as"),
        (lambda graph: replace(LONGEST, value="strange"), ArgumentTypeError, "or a class of data such as str"),
        (
            lambda graph: gp.run(graph, LONGEST, max_supersteps=1),
            SuperstepLimitError,
            "max_supersteps=1",
        ),
    ],
)
def test_invalid_arguments(
    graph: gp.Graph, call: Callable[[gp.Graph], Any], error: type[GpuPregelError], message: str
) -> None:
    with pytest.raises(error, match=message):
        call(graph)


@pytest.fixture
def line() -> gp.Graph:
    return gp.Graph.from_edgelist(np.arange(5), np.arange(1, 6))


def test_a_value_of_another_class_names_the_vertex(line: gp.Graph) -> None:
    program = replace(LONGEST, init=lambda ctx: 5 if ctx.vertex == 2 else "x")
    with pytest.raises(
        AgentsFailedError, match=r"vertex 2: VertexError: init.*returns 5 of type int, but str is declared"
    ):
        gp.run(line, program, agents=gp.Agents(retry=gp.agents.RetryPolicy(attempts=1)))


def test_failed_vertices_are_retried(line: gp.Graph, tmp_path: Path) -> None:
    def apply(value: str, incoming: str, ctx: gp.VertexContext) -> str:
        file = tmp_path / f"{ctx.vertex}-{ctx.superstep}"
        if not file.exists():
            file.touch()
            raise OSError("not yet")
        return max(value, incoming)

    policy = gp.agents.RetryPolicy(attempts=2, wait=0)
    result = gp.run(line, replace(LONGEST, apply=apply), agents=gp.Agents(workers=2, retry=policy))
    assert result.values.tolist() == gp.run(line, LONGEST).values.tolist()


def test_a_held_superstep_is_mended_and_resumed(line: gp.Graph, tmp_path: Path) -> None:
    expected, broken, log = gp.run(line, LONGEST), str(tmp_path / "broken"), str(tmp_path / "log")
    Path(broken).touch()

    def apply(value: str, incoming: str, ctx: gp.VertexContext) -> str:
        with open(log, "a") as file:
            file.write(f"{ctx.vertex} {ctx.superstep}\n")
        if (ctx.vertex, ctx.superstep) == (3, 2) and os.path.exists(broken):
            raise RuntimeError("unreachable")
        return max(value, incoming)

    program = replace(LONGEST, apply=apply)
    given: dict[str, Any] = {
        "checkpoint": tmp_path / "runs.db",
        "agents": gp.Agents(retry=gp.agents.RetryPolicy(attempts=1)),
    }
    with pytest.raises(AgentsFailedError, match="vertex 3: RuntimeError: unreachable"):
        gp.run(line, program, **given)
    Path(broken).unlink()
    with pytest.raises(CheckpointError, match="already has a run 'run': pass resume=True"):
        gp.run(line, program, **given)
    with pytest.raises(CheckpointError, match="belongs to another graph"):
        gp.run(gp.grid(3), program, **given, resume=True)
    with pytest.raises(CheckpointError, match="belongs to another program"):
        gp.run(line, LONGEST, **given, resume=True)
    result = gp.run(line, program, **given, resume=True)
    assert result.values.tolist() == expected.values.tolist()
    compared = ("superstep", "active_vertices", "active_edges", "messages", "applied")
    rows = [[[row[name] for name in compared] for row in one.trace] for one in (result, expected)]
    assert rows[0] == rows[1]
    calls = Path(log).read_text().splitlines()
    assert len(calls) == len(set(calls)) + 1  # vertex 3 alone has run twice in superstep 2


def test_checkpoints_of_devices_and_of_agents_are_not_confused(line: gp.Graph, tmp_path: Path) -> None:
    file = tmp_path / "runs.db"
    gp.run(line, DISTANCES, device="cpu", checkpoint=file)
    with pytest.raises(CheckpointError, match="belongs to a run of numeric vertices"):
        gp.run(line, DISTANCES, device="agents", checkpoint=file, resume=True)
    with gp.SQLiteStore(file) as store:
        gp.agents.run([gp.agents.Vertex(0)], lambda ctx: ctx.vote_to_halt(), store=store, run_id="agents")
        with pytest.raises(CheckpointError, match=r"belongs to a run of gp\.agents"):
            gp.run(line, LONGEST, checkpoint=gp.Checkpoint(store, "agents"), resume=True)
    gp.run(line, LONGEST, checkpoint=gp.Checkpoint(file, "texts"))
    with pytest.raises(CheckpointError, match="belongs to a run of agents"):
        gp.run(line, DISTANCES, device="cpu", checkpoint=gp.Checkpoint(file, "texts"), resume=True)
    again = gp.run(line, LONGEST, checkpoint=gp.Checkpoint(file, "texts"), resume=True)
    assert (again.status, again.supersteps) == ("completed", gp.run(line, LONGEST).supersteps)


def test_the_identity_of_a_tuple_keeps_the_types_of_its_fields() -> None:
    """In an array of both fields, the largest int64 would become a float."""
    program = gp.VertexProgram(
        value={"count": np.int64, "cost": np.float64},
        init=lambda ctx: (0, 0.0),
        message=lambda value, ctx: (ctx.vertex, 0.5),
        combine="min",
        apply=lambda value, incoming, ctx: incoming,
        active="always",
    )
    edge = gp.Graph.from_edgelist([0], [1], directed=True)
    found, expected = (
        gp.run(edge, program, device=device, max_supersteps=2).to_dict() for device in ("agents", "python")
    )
    assert found == expected == {0: (np.iinfo(np.int64).max, np.inf), 1: (0, 0.5)}


def counting(graph: gp.Graph, supersteps: int, **options: Any) -> Any:
    program = gp.VertexProgram(
        value=np.int64,
        init=lambda ctx: 0,
        message=lambda value, ctx: value,
        combine="sum",
        apply=lambda value, incoming, ctx: value + 1,
        active="always",
        aggregators={"most": gp.Aggregator("max", lambda old, new, ctx: new)},
    )
    return gp.run(graph, program, device="agents", max_supersteps=supersteps, **options)


def codec_calls(graph: gp.Graph, supersteps: int) -> int:
    """How many functions of the codec a run calls, at most one for each item of what it encodes and decodes."""
    calls = 0

    def count(frame: Any, event: str, _: Any) -> None:
        nonlocal calls
        calls += event == "call" and f"{os.sep}codec{os.sep}" in frame.f_code.co_filename

    sys.setprofile(count)
    try:
        counting(graph, supersteps, agents=gp.Agents(workers=0))
    finally:
        sys.setprofile(None)
    return calls


def test_a_superstep_encodes_as_much_however_many_there_were_before() -> None:
    graph = gp.Graph.from_edgelist([0], [1])
    counting(graph, 3)
    few, more, most = (codec_calls(graph, supersteps) for supersteps in (192, 384, 768))
    assert most - more < 2.2 * (more - few)


def test_the_trace_of_a_long_run_is_complete_after_it_was_resumed() -> None:
    graph, place = gp.Graph.from_edgelist([0], [1]), gp.Checkpoint(gp.MemoryStore(), every=10)
    counting(graph, 100, checkpoint=place)
    result, expected = counting(graph, 200, checkpoint=place, resume=True), counting(graph, 200)
    assert [row["superstep"] for row in result.trace] == list(range(len(expected.trace)))
    for name in ("active_edges", "messages", "applied", "aggregated.most"):
        assert [row[name] for row in result.trace] == [row[name] for row in expected.trace]

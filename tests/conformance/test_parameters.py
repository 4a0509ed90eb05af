"""Parameters, initial values, first frontiers, final aggregates and named fields, on every device."""

from __future__ import annotations

from typing import Any

import networkx
import numpy as np
import pytest

import gpu_pregel as gp
from tests.devices import LONG, RUN_DEVICES, is_slow, on, ways
from tests.programs import LABELS, SUMS

HOPS = gp.VertexProgram(
    value=np.int32,
    parameters={"source": np.int64},
    init=lambda ctx: 0 if ctx.vertex == ctx.parameters.source else -1,
    initially_active=lambda ctx: ctx.vertex == ctx.parameters.source,
    message=lambda value, ctx: value + 1,
    combine="min",
    apply=lambda value, incoming, ctx: incoming if value < 0 else value,
)
# Every function reads parameters of several dtypes, and per-edge messages a weight.
EVERYWHERE = gp.VertexProgram(
    value=np.float64,
    message_type=np.int64,
    parameters={
        "start": np.uint8,
        "big": np.uint64,
        "small": np.int16,
        "half": np.float32,
        "scale": 0.25,
        "is_odd": False,
        "step": 3,
    },
    init=lambda ctx: ctx.vertex * ctx.parameters.scale + ctx.parameters.start,
    initially_active=lambda ctx: (ctx.vertex % 2 == 1) == ctx.parameters.is_odd,
    message=lambda value, weight, ctx: np.int64(ctx.parameters.big >> np.uint64(60)) + ctx.vertex * ctx.parameters.step,
    combine="max",
    apply=lambda value, incoming, ctx: incoming * ctx.parameters.half + ctx.parameters.small,
    active=lambda old, new, ctx: ctx.superstep < ctx.parameters.step,
    aggregators={"sum": gp.Aggregator("sum", lambda old, new, ctx: ctx.vertex * ctx.parameters.step)},
)
VALUES = {"start": 250, "big": 2**64 - 1, "small": -7, "half": 0.5, "is_odd": True}


@pytest.fixture(scope="module")
def graph() -> gp.Graph:
    """A directed grid of 200 vertices with long edges and weights: room for three partitions."""
    src, dst, _ = gp.grid(10, 20).to_edgelist()
    src, dst = np.append(src, [3, 150]), np.append(dst, [120, 17])
    return gp.Graph.from_edgelist(src, dst, np.arange(len(src)) % 11 / 7, num_vertices=200, directed=True)


@ways(partitions=[1, 3], mode=["push", "pull"])
def test_hops_from_every_source_agree_with_networkx(graph: gp.Graph, device: str, way: dict[str, Any]) -> None:
    oracle = graph.to_networkx()
    for source in (3,) if is_slow(device) else (0, np.int32(3), 40):
        lengths = networkx.single_source_shortest_path_length(oracle, source)
        found = gp.run(graph, HOPS, parameters={"source": source}, device=device, **way).to_numpy()
        assert found.tolist() == [lengths.get(v, -1) for v in range(200)]
        assert (found > 5).any()


def expected_everywhere(graph: gp.Graph, given: dict[str, Any]) -> tuple[list[float], int]:
    """The values and the last sum of ``EVERYWHERE``, in plain Python."""
    scale, step = given.get("scale", 0.25), given.get("step", 3)
    src, dst, _ = graph.to_edgelist()
    values = [v * scale + given["start"] for v in range(200)]
    active = {v for v in range(200) if (v % 2 == 1) == given.get("is_odd", False)}
    superstep, total = 0, 0
    while active:
        superstep += 1
        inbox: dict[int, int] = {}
        for u, v in zip(src.tolist(), dst.tolist(), strict=True):
            if u in active:
                inbox[v] = max(inbox.get(v, -(2**63)), (given["big"] >> 60) + u * step)
        for v, message in inbox.items():
            values[v] = message * given["half"] + given["small"]
        active, total = ({*inbox} if superstep < step else set()), sum(v * step for v in inbox)
    return values, total


@ways(partitions=[1, 3], mode=["push", "pull"])
def test_every_function_reads_parameters_of_every_dtype(graph: gp.Graph, device: str, way: dict[str, Any]) -> None:
    for given in (VALUES, {**VALUES, "big": 2**61, "is_odd": np.bool_(False), "step": 2, "scale": -1}):
        result = gp.run(graph, EVERYWHERE, parameters=given, device=device, **way)
        values, total = expected_everywhere(graph, given)
        assert result.to_numpy().tolist() == values
        assert result.aggregated == (total,)
        assert result.aggregated.sum.dtype == np.int64


@ways(partitions=[1, 3])
def test_a_run_starts_from_given_values_and_a_given_frontier(graph: gp.Graph, device: str, way: dict[str, Any]) -> None:
    start = np.arange(1_000, 1_200, dtype=np.uint32)[::-1].copy()
    before = start.copy()
    src, dst, _ = graph.to_edgelist()
    # Only the vertices from 150 on send, once, and vertices without in-neighbours among them keep their values.
    expected = start.astype(np.int64)
    for u, v in zip(src.tolist(), dst.tolist(), strict=True):
        if u >= 150:
            expected[v] = min(expected[v], start[u])
    frontiers: list[Any] = [np.arange(150, 200), np.arange(200) >= 150, gp.Frontier(graph, range(150, 200))]
    for frontier in frontiers[:1] if is_slow(device) else frontiers:
        options: dict[str, Any] = {"device": device, "max_supersteps": 2, "on_limit": "return", **way}
        result = gp.run(graph, LABELS, initial=start, frontier=frontier, **options)
        assert result.to_numpy().tolist() == expected.tolist()
        assert next(iter(result.trace))["active_vertices"] == 50
    assert np.array_equal(start, before)
    assert len(frontiers[2]) == 50


@RUN_DEVICES
def test_initial_alone_and_frontier_alone(device: str) -> None:
    path = gp.Graph.from_edgelist([0, 1, 2], [1, 2, 3], directed=True)
    # SUMS: vertex v starts with v + 1 and sends it; nobody is active afterwards.
    only_values = gp.run(path, SUMS, initial=[10, 20, 30, 40], device=device)
    assert only_values.to_numpy().tolist() == [10, 10, 20, 30]
    only_frontier = gp.run(path, SUMS, frontier=[1], device=device)
    assert only_frontier.to_numpy().tolist() == [1, 2, 2, 4]
    assert gp.run(path, SUMS, frontier=[], device=device).supersteps == 1
    # The values of a result, on its device, start another run.
    assert gp.run(path, SUMS, initial=only_frontier.values, device=device).to_numpy().tolist() == [1, 1, 2, 2]


def named(*, is_named: bool) -> gp.VertexProgram:
    """Components with the number of hops to the smallest vertex, as a tuple with or without names."""
    dtypes = {"label": np.int64, "hops": np.int32}
    return gp.VertexProgram(
        value=dtypes if is_named else tuple(dtypes.values()),
        init=lambda ctx: (ctx.vertex, 0),
        message=(lambda value, ctx: (value.label, value.hops + 1))
        if is_named
        else (lambda value, ctx: (value[0], value[1] + 1)),
        combine="min",
        apply=(lambda value, incoming, ctx: incoming if incoming.label < value.label else value)
        if is_named
        else (lambda value, incoming, ctx: incoming if incoming[0] < value[0] else value),
    )


@ways(partitions=[1, 3])
def test_named_fields_equal_those_without_names(graph: gp.Graph, device: str, way: dict[str, Any]) -> None:
    with_names = gp.run(graph, named(is_named=True), device=device, **way)
    without = gp.run(graph, named(is_named=False), device=device, **way)
    assert with_names.values._fields == ("label", "hops")
    assert type(without.values) is tuple
    table = with_names.to_numpy()
    assert table.dtype == np.dtype([("label", np.int64), ("hops", np.int32)])
    assert table.tolist() == without.to_numpy().tolist()
    assert len(set(table["label"].tolist())) > 3
    assert with_names.to_pandas().columns.tolist() == ["vertex", "label", "hops"]
    assert without.to_pandas().columns.tolist() == ["vertex", "value0", "value1"]
    again = {"label": with_names.values.label, "hops": with_names.values.hops}
    assert gp.run(graph, named(is_named=True), initial=again, frontier=[], device=device).to_numpy().tolist() == (
        table.tolist()
    )


# combiner, message of vertex 0, message of vertex 1, what vertex 2 receives
NAMED_COMBINERS: list[Any] = [
    ("min", (1, 5.0), (1, 2.5), (1, 2.5)),
    pytest.param("max", (1, 5.0), (2, 2.5), (2, 2.5), marks=LONG),
    pytest.param("sum", (1, 5.0), (2, 2.5), (3, 7.5), marks=LONG),
    (gp.Combiner(lambda a, b: (a.k + b.k, max(a.x, b.x)), (0, -np.inf)), (1, 5.0), (2, 2.5), (3, 5.0)),
]


@pytest.mark.parametrize("device", [on("cpu"), on("emulated"), on("cuda")])
@pytest.mark.parametrize(("combine", "first", "second", "expected"), NAMED_COMBINERS)
def test_combiners_of_named_messages(device: str, combine: Any, first: Any, second: Any, expected: Any) -> None:
    program = gp.VertexProgram(
        value={"x": np.float64, "k": np.int64},
        message_type={"k": np.int64, "x": np.float64},
        init=lambda ctx: (0.0, 0),
        message=lambda value, ctx: first if ctx.vertex == 0 else second,
        combine=combine,
        apply=lambda value, incoming, ctx: (incoming.x, incoming.k),
    )
    star = gp.Graph.from_edgelist([0, 1], [2, 2], directed=True)
    assert gp.run(star, program, device=device).to_numpy().tolist()[2] == expected[::-1]


@RUN_DEVICES
def test_halt_reads_parameters_and_the_final_aggregates_are_those_it_saw(device: str) -> None:
    seen: list[Any] = []

    def halt(aggregated: Any, parameters: Any) -> bool:
        seen.append(aggregated)
        return bool(aggregated.top >= parameters.limit)

    program = gp.VertexProgram(
        value=np.int64,
        parameters={"limit": np.int64, "unused": 0.5},
        init=lambda ctx: 0,
        message=lambda value, ctx: value,
        combine="max",
        apply=lambda value, incoming, ctx: value + 1,
        active="always",
        aggregators={"top": gp.Aggregator("max", lambda old, new, ctx: new + ctx.vertex)},
        halt=halt,
    )
    cycle = gp.Graph.from_edgelist([0, 1, 2], [1, 2, 0], directed=True)
    result = gp.run(cycle, program, parameters={"limit": 7}, device=device)
    assert (result.status, result.supersteps) == ("halted", 6)
    assert [one.top for one in seen] == [3, 4, 5, 6, 7]
    assert result.aggregated == seen[-1]


@RUN_DEVICES
def test_aggregates_of_a_run_that_ends_in_superstep_0_are_the_identities(device: str) -> None:
    alone = gp.Graph.from_edgelist([], [], num_vertices=3)
    program = gp.VertexProgram(
        value=np.int64,
        init=lambda ctx: 0,
        initially_active=lambda ctx: False,
        message=lambda value, ctx: value,
        combine="max",
        apply=lambda value, incoming, ctx: value,
        aggregators={
            "low": gp.Aggregator("min", lambda old, new, ctx: 0.5),
            "count": gp.Aggregator("sum", lambda old, new, ctx: 1),
        },
    )
    assert gp.run(alone, program, device=device).aggregated._asdict() == {"low": np.inf, "count": 0}
    assert gp.run(alone, SUMS, frontier=[], device=device).aggregated == ()

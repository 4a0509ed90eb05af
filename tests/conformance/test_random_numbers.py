"""``ctx.random`` and ``gp.random``: the same on every device and however the graph is divided, and random."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, CheckpointError, CompileError
from tests.devices import DEVICES, LONG, ways
from tests.draws import drawn

HUB = 1500
"""In-edges of a vertex whose row the kernels of CUDA read in pieces."""
STEPS = 4


@pytest.fixture(scope="module")
def graph() -> gp.Graph:
    """A directed graph with weights, a hub, and vertices without edges; no two edges are parallel."""
    src, dst = np.random.default_rng(4).integers(0, 300, (2, 900))
    hub = np.full(HUB, 299)
    edges = np.unique(np.stack([np.append(src, np.arange(HUB)), np.append(dst, hub)], axis=1), axis=0)
    return gp.Graph.from_edgelist(
        edges[:, 0], edges[:, 1], np.arange(len(edges)) % 7, num_vertices=HUB + 50, directed=True
    )


PER_EDGE = gp.VertexProgram(
    value=np.float64,
    init=lambda ctx: ctx.random(0) + ctx.random(1),
    initially_active=lambda ctx: ctx.random(0) < 0.7,
    message=lambda value, weight, ctx: value + weight * ctx.random(0),
    combine="max",
    receives=lambda value, ctx: ctx.random(0) < 0.9,
    apply=lambda value, incoming, ctx: incoming + ctx.random(0),
    active=lambda old, new, ctx: ctx.random(0) < 0.8,
    aggregators={
        "first": gp.Aggregator("max", lambda old, new, ctx: ctx.random(0)),
        "second": gp.Aggregator("max", lambda old, new, ctx: ctx.random(0)),
    },
)
TO_ALL = replace(PER_EDGE, receives=None, aggregators={})
PER_SOURCE = replace(TO_ALL, message=lambda value, ctx: value + ctx.random(0))
PAIRS = gp.VertexProgram(
    value={"random": np.float64, "other": np.float64},
    parameters={"scale": 2.0, "shift": 1},
    init=lambda ctx: (ctx.random(0), ctx.random(1)),
    message=lambda value, ctx: (ctx.random(0) * ctx.parameters.scale, value.random),
    combine="max",
    apply=lambda value, incoming, ctx: (incoming.random, ctx.random(ctx.parameters.shift)),
)
PROGRAMS = {"per edge": PER_EDGE, "to all": TO_ALL, "per source": PER_SOURCE, "pairs": PAIRS}
SEED = 12345678901234


def values(graph: gp.Graph, program: gp.VertexProgram, **options: Any) -> Any:
    return gp.run(graph, program, seed=SEED, max_supersteps=STEPS, on_limit="return", **options)


def expected(graph: gp.Graph) -> tuple[list[float], list[tuple[float, ...]]]:
    """Return the values of ``PER_EDGE`` and its aggregates by superstep, computed here."""
    src, dst, weights = (np.asarray(column).tolist() for column in graph.to_edgelist())

    def draw(stage: str, vertex: int, step: int, number: int = 0, **of: int) -> float:
        return drawn(SEED, stage, vertex, step, number, **of)

    n = graph.num_vertices
    found = [draw("init", v, 0, 0) + draw("init", v, 0, 1) for v in range(n)]
    active = [draw("initially_active", v, 0) < 0.7 for v in range(n)]
    totals = []
    for step in range(1, STEPS):
        inbox: dict[int, float] = {}
        for u, v, weight in zip(src, dst, weights, strict=True):
            if active[u] and draw("receives", v, step) < 0.9:
                message = found[u] + weight * draw("message", u, step - 1, other=v)
                inbox[v] = max(inbox.get(v, -np.inf), message)
        active = [v in inbox and draw("active", v, step) < 0.8 for v in range(n)]
        for v, incoming in inbox.items():
            found[v] = incoming + draw("apply", v, step)
        totals.append(tuple(max(drawn(SEED, "", v, step, 0, number=k) for v in inbox) for k in range(2)))
    return found, totals


INTERPRETED = {"device": "python"}
NAMES = pytest.mark.parametrize(
    "name", ["per edge", *(pytest.param(name, marks=LONG) for name in ("to all", "per source")), "pairs"]
)


@NAMES
@ways(mode=["push", "pull"], partitions=[1, 3], threads=[1, 2])
def test_numbers_depend_on_neither_device_nor_direction_nor_partition(
    graph: gp.Graph, name: str, device: str, way: dict[str, Any]
) -> None:
    program = PROGRAMS[name]
    if name == "pairs" and way["mode"] == "push":
        way = {**way, "mode": "auto"}
    result, oracle = values(graph, program, device=device, **way), values(graph, program, device="cpu")
    assert result.to_numpy().tobytes() == oracle.to_numpy().tobytes()
    assert result.aggregated == oracle.aggregated


@pytest.mark.parametrize(
    ("name", "options"),
    [
        pytest.param(
            name, options, marks=() if name == "per edge" or (name, options) == ("pairs", INTERPRETED) else LONG
        )
        for name in PROGRAMS
        for options in (INTERPRETED, {"device": "cpu", "check": True}, {"device": "agents"})
    ],
)
def test_numbers_are_those_of_the_debugging_modes_and_of_agents(
    graph: gp.Graph, name: str, options: dict[str, Any]
) -> None:
    result, oracle = (values(graph, PROGRAMS[name], **way) for way in (options, {"device": "cpu"}))
    assert result.to_numpy().tobytes() == oracle.to_numpy().tobytes()
    assert result.aggregated == oracle.aggregated


def test_numbers_are_those_that_the_documentation_defines(graph: gp.Graph) -> None:
    result, (found, totals) = values(graph, PER_EDGE, device="cpu"), expected(graph)
    assert result.to_numpy().tolist() == found
    assert tuple(result.aggregated) == totals[-1]


def matrix(vertices: int, draws: int, seed: int) -> Any:
    """Return the numbers that each of some vertices draws in superstep 0."""
    names = {f"draw{k}": np.float64 for k in range(draws)}
    program = gp.VertexProgram(
        value=names,
        init=lambda ctx: (ctx.random(0), ctx.random(1), ctx.random(2), ctx.random(3)),
        message=lambda value, ctx: value,
        combine="max",
        apply=lambda value, incoming, ctx: value,
    )
    graph = gp.Graph.from_edgelist([], [], num_vertices=vertices)
    return np.stack(gp.run(graph, program, seed=seed, device="cpu").values)


def test_numbers_are_uniform_and_independent_of_those_of_neighbours() -> None:
    numbers = matrix(50_000, 4, 1)
    for row in numbers:
        assert stats.kstest(row, "uniform").pvalue > 1e-3
        counts = np.bincount((row * 256).astype(int), minlength=256)
        assert stats.chisquare(counts).pvalue > 1e-3
        lowest = np.bincount((row * 2**53).astype(np.int64) & 255, minlength=256)
        assert stats.chisquare(lowest).pvalue > 1e-3
    # Pairs: of one vertex's draws, of neighbouring vertices, and of neighbouring seeds.
    pairs = [(numbers[0], numbers[1]), (numbers[0][1:], numbers[0][:-1]), (numbers[0], matrix(50_000, 4, 2)[0])]
    for one, other in pairs:
        cells = np.bincount((one * 16).astype(int) * 16 + (other * 16).astype(int), minlength=256)
        assert stats.chisquare(cells).pvalue > 1e-3
    assert len(np.unique(numbers)) == numbers.size


def test_another_seed_draws_other_numbers(graph: gp.Graph) -> None:
    options: dict[str, Any] = {"device": "cpu", "max_supersteps": 2, "on_limit": "return"}
    runs = [gp.run(graph, PER_EDGE, **options), *(gp.run(graph, PER_EDGE, seed=seed, **options) for seed in (0, 1))]
    first, same, other = (run.to_numpy() for run in runs)
    assert first.tobytes() == same.tobytes()
    assert not np.any(first == other)


@pytest.mark.parametrize("device", ["cpu", "agents"])
def test_a_resumed_run_continues_with_the_same_numbers(graph: gp.Graph, tmp_path: Path, device: str) -> None:
    options: dict[str, Any] = {"device": device, "seed": 3, "on_limit": "return"}
    saved = {**options, "checkpoint": tmp_path / "runs.db"}
    gp.run(graph, PER_EDGE, max_supersteps=2, **saved)
    with pytest.raises(CheckpointError, match=r"seed=3, not 4: pass the seed that it was started with"):
        gp.run(graph, PER_EDGE, max_supersteps=STEPS, resume=True, **{**saved, "seed": 4})
    resumed = gp.run(graph, PER_EDGE, max_supersteps=STEPS, resume=True, **saved)
    straight = gp.run(graph, PER_EDGE, max_supersteps=STEPS, **options)
    assert resumed.to_numpy().tobytes() == straight.to_numpy().tobytes()


@pytest.mark.parametrize(
    ("seed", "error"), [(-1, ArgumentError), (2**63, ArgumentError), (1.5, TypeError), (True, TypeError)]
)
def test_a_seed_is_a_number_of_63_bits(graph: gp.Graph, seed: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="seed must be"):
        gp.run(graph, PER_SOURCE, seed=seed)


def test_a_draw_needs_its_number(graph: gp.Graph) -> None:
    program = replace(PER_SOURCE, init=lambda ctx: ctx.random())  # type: ignore[call-arg]
    with pytest.raises(CompileError, match=r"ctx\.random\(draw\) takes the number of the draw"):
        gp.run(graph, program, device="cpu")
    with pytest.raises(Exception, match="draw must be an integer from 0 to 16777215, not -1"):
        gp.run(graph, replace(PER_SOURCE, init=lambda ctx: ctx.random(-1)), device="python")


@DEVICES
def test_bodies_of_operators_draw_the_same_numbers(graph: gp.Graph, device: str) -> None:
    frontier = gp.Frontier(graph, device=device)
    drawn_here = frontier.full(0.0, np.float64)
    largest = frontier.full(0.0, np.float64)

    def visit(v: Any, drawn_here: Any, seed: Any) -> Any:
        drawn_here[v] = gp.random(seed, v, 1, 2)
        return gp.random(seed, v) < 0.25

    def along(u: Any, v: Any, weight: Any, largest: Any, seed: Any) -> Any:
        gp.atomics.max(largest, v, gp.random(seed, u, v))
        return True

    chosen = gp.process_vertices(visit, frontier, [drawn_here, SEED], returns="frontier")
    gp.process_edges(along, frontier, [largest, SEED])
    n = graph.num_vertices
    assert frontier.download(drawn_here).tolist() == [gp.random(SEED, v, 1, 2) for v in range(n)]
    assert chosen.vertices().tolist() == [v for v in range(n) if gp.random(SEED, v) < 0.25]
    src, dst, _ = graph.to_edgelist()
    best = [0.0] * n
    for u, v in zip(src.tolist(), dst.tolist(), strict=True):
        best[v] = max(best[v], gp.random(SEED, u, v))
    assert frontier.download(largest).tolist() == best

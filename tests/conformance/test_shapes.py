"""Graphs of various shapes on every device: stars, long paths, grids, and sizes around block boundaries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.host.devices import get_device
from gpu_pregel.host.programs.run import ProgramResult
from tests.devices import DEVICES, PROGRAM_DEVICES, is_emulated, on, spread, ways
from tests.programs import FAR, HOPS, LABELS, SUMS

LENGTHS = [0, 1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 352, 353, 1023, 1024, 1025, 2048, 2049, 5000]
"""Row lengths around the sizes of warps, degree classes and pieces of hubs."""


def run(graph: gp.Graph, program: gp.VertexProgram, device: str, **options: Any) -> ProgramResult:
    """Call ``gp.run``; check that it reads back at most once, and launches few kernels, per superstep."""
    if not is_emulated(device):
        return gp.run(graph, program, device=device, **options)
    target: Any = get_device(device)
    before = target.memory.readbacks, target.launches
    result = gp.run(graph, program, device=device, **options)
    assert target.memory.readbacks - before[0] <= result.supersteps
    # Up to 32 supersteps are launched beyond the end.
    batches = 32 if options.get("mode") != "pull" else 0
    kernels = 4 if options.get("partitions", 1) == 1 else 6 * options["partitions"]
    assert target.launches - before[1] <= kernels * (result.supersteps + batches)
    return result


def path(n: int) -> gp.Graph:
    return gp.Graph.from_edgelist(np.arange(n - 1), np.arange(1, n), num_vertices=n)


def sums_of(graph: gp.Graph) -> Any:
    """Return the result of SUMS, computed by SciPy."""
    n = graph.num_vertices
    found = graph.to_scipy().T.astype(np.int64) @ np.arange(1, n + 1)
    return np.where(found, found, np.arange(1, n + 1))


@pytest.fixture(scope="module")
def rows() -> gp.Graph:
    """A graph with two vertices for each length: one with that many out-edges, one with that many in-edges."""
    src, dst = [], []
    for k, length in enumerate(LENGTHS):
        leaves = 2 * len(LENGTHS) + np.arange(length)
        src += [np.full(length, 2 * k), leaves]
        dst += [leaves, np.full(length, 2 * k + 1)]
    edges = np.concatenate(src).astype(int), np.concatenate(dst).astype(int)
    graph = gp.Graph.from_edgelist(*edges, num_vertices=2 * len(LENGTHS) + max(LENGTHS), directed=True)
    assert graph.out_degrees[: 2 * len(LENGTHS) : 2].tolist() == LENGTHS
    assert graph.in_degrees[1 : 2 * len(LENGTHS) : 2].tolist() == LENGTHS
    return graph


@ways(mode=["push", "pull"], partitions=[1, 2, 3])
def test_rows_of_every_length(rows: gp.Graph, device: str, way: dict[str, Any]) -> None:
    result = run(rows, SUMS, device, **way)
    assert np.array_equal(result.to_numpy(), sums_of(rows))


@pytest.mark.parametrize(
    ("device", "leaves", "mode", "partitions"),
    spread(
        [(5_000, mode, cut) for mode in ("push", "pull") for cut in (1, 2, 3)]
        + [(100_000, "push", 1), (100_000, "pull", 1)],
        lambda leaves, mode, partitions: f"{leaves} {mode} {partitions}",
    ),
)
def test_stars(device: str, leaves: int, mode: str, partitions: int) -> None:
    leaves = min(leaves, 5_000) if device == "python" else leaves
    star = gp.Graph.from_edgelist(np.zeros(leaves, np.int64), np.arange(1, leaves + 1))
    found = run(star, SUMS, device, mode=mode, partitions=partitions).to_numpy()
    assert found[0] == (leaves + 1) * (leaves + 2) // 2 - 1
    assert (found[1:] == 1).all()
    labelled = run(star, LABELS, device, mode="auto", partitions=partitions)
    assert not labelled.to_numpy().any()


@PROGRAM_DEVICES
def test_a_hub_at_the_end_of_the_graph(device: str) -> None:
    n = 3_000
    star = gp.Graph.from_edgelist(np.full(n - 1, n - 1), np.arange(n - 1))
    assert not run(star, LABELS, device).to_numpy().any()
    assert run(star, HOPS, device).to_numpy().tolist() == [0] + [2] * (n - 2) + [1]


@ways(mode=["push", "pull"], partitions=[1, 2])
def test_hubs_beside_full_warps_of_rows(device: str, way: dict[str, Any]) -> None:
    """The rows fill the warps, and on a GPU the two hubs' eight pieces fill the last block."""
    n, length = 4_096, 70_000 if device == "cpu" else 3_500
    ring, hubs = np.arange(n), [77, 4_000]
    leaves = np.arange(length) % n
    src = np.concatenate([ring, ring, *(np.full(length, hub) for hub in hubs), *([leaves] * len(hubs))])
    dst = np.concatenate(
        [(ring + 1) % n, (ring + n // 2) % n, *([leaves] * len(hubs)), *(0 * leaves + h for h in hubs)]
    )
    graph = gp.Graph.from_edgelist(src, dst, num_vertices=n, directed=True)
    assert np.array_equal(run(graph, SUMS, device, **way).to_numpy(), sums_of(graph))


@pytest.mark.parametrize("mode", ["push", "pull"])
@pytest.mark.parametrize("n", [1, 2, 31, 32, 33, 63, 64, 65, 255, 256, 257, 511, 513, 2_049])
@PROGRAM_DEVICES
def test_numbers_of_vertices_around_block_boundaries(device: str, n: int, mode: str) -> None:
    random = np.random.default_rng(n)
    src, dst = random.integers(0, n, (2, 2 * n))
    # The last vertex always has an edge from the first.
    graph = gp.Graph.from_edgelist(np.append(src, 0), np.append(dst, n - 1), num_vertices=n, directed=True)
    assert np.array_equal(run(graph, SUMS, device, mode=mode).to_numpy(), sums_of(graph))
    without = gp.Graph.from_edgelist([], [], num_vertices=n)
    result = run(without, LABELS, device, mode=mode)
    assert result.to_numpy().tolist() == list(range(n))
    assert [(row["active_vertices"], row["active_edges"]) for row in result.trace] == [(n, 0), (0, 0)]


@pytest.mark.parametrize(
    ("device", "directed"),
    [on("cpu", False), on("emulated", False), on("emulated:1", True), on("cuda", True)],
)
def test_blocks_with_more_than_one_tile(device: str, directed: bool) -> None:
    n = 300_000
    random = np.random.default_rng(3)
    src, dst = random.integers(0, n, (2, 500))
    src, dst = np.append(src, [0, n - 1, 262_143]), np.append(dst, [n - 1, 262_144, 262_144])
    graph = gp.Graph.from_edgelist(src, dst, num_vertices=n, directed=directed)
    result, expected = run(graph, SUMS, device), gp.run(graph, SUMS, device="cpu")
    assert np.array_equal(result.to_numpy(), sums_of(graph))
    for figure in ("active_vertices", "active_edges", "applied"):
        assert [row[figure] for row in result.trace] == [row[figure] for row in expected.trace]
    found = gp.connected_components(graph, device=device).to_numpy()
    assert np.array_equal(found, gp.connected_components(graph, device="cpu").to_numpy())


@pytest.mark.parametrize("mode", ["push", "auto"])
@PROGRAM_DEVICES
def test_a_long_path_is_read_back_once_per_batch(device: str, mode: str) -> None:
    n = 300
    target: Any = get_device(device)
    before = target.memory.readbacks if is_emulated(device) else 0
    result = run(path(n), HOPS, device, mode=mode)
    assert result.to_numpy().tolist() == list(range(n))
    assert result.supersteps == n + 1
    assert [row["active_vertices"] for row in result.trace] == [1] * n + [0]
    assert [row["active_edges"] for row in result.trace] == [1] + [2] * (n - 2) + [1, 0]
    assert [row["applied"] for row in result.trace] == [0, 1] + [2] * (n - 2) + [1]
    if is_emulated(device):
        # One readback for the values, one for superstep 0 and one per 32 supersteps.
        assert target.memory.readbacks - before <= 2 + -(-n // 32)


@pytest.mark.parametrize("limit", [1, 2, 3, 32, 33, 34, 65, 99, 100, 101, 102])
@PROGRAM_DEVICES
def test_batches_of_supersteps_end_at_the_limit(device: str, limit: int) -> None:
    n = 100
    result = run(path(n), HOPS, device, mode="push", max_supersteps=limit, on_limit="return")
    assert result.supersteps == min(limit, n + 1)
    assert result.status == ("completed" if limit > n else "max_supersteps")
    assert result.to_numpy().tolist() == [v if v < limit else FAR for v in range(n)]
    assert [row["superstep"] for row in result.trace] == list(range(result.supersteps))


@pytest.mark.parametrize("tail", [0, 1, 50])
@PROGRAM_DEVICES
def test_the_direction_can_change_within_a_batch(device: str, tail: int) -> None:
    """A path ends in a dense part; pushes that were launched beyond it must not run, not even the second one."""
    dense = 120
    u, v = np.triu_indices(dense, 1)
    src, dst = np.append(np.arange(tail), tail + u), np.append(np.arange(1, tail + 1), tail + v)
    graph = gp.Graph.from_edgelist(src, dst)
    result, expected = run(graph, HOPS, device), gp.run(graph, HOPS, device="cpu")
    assert result.to_numpy().tolist() == [*range(tail + 1), *[tail + 1] * (dense - 1)]
    directions = [row["direction"] for row in result.trace]
    assert "pull" in directions
    assert len(directions) == len(expected.trace)


# Each superstep uses the aggregates of the one or two before it, even if the host does not read them in between.
WATCHED = replace(
    SUMS,
    initially_active=lambda ctx: ctx.vertex == 0,
    message=lambda value, ctx: ctx.aggregated.applied + ctx.superstep + 1,
    apply=lambda value, incoming, ctx: incoming * 3 % 1000 + ctx.aggregated.low,
    active=lambda old, new, ctx: old == ctx.vertex + 1,
    aggregators={
        "applied": gp.Aggregator("sum", lambda old, new, ctx: 1, dtype=np.uint8),
        "low": gp.Aggregator("min", lambda old, new, ctx: new % 100, dtype=np.int16),
        "high": gp.Aggregator("max", lambda old, new, ctx: new, dtype=np.uint64),
        "mean": gp.Aggregator("sum", lambda old, new, ctx: new / 4, dtype=np.float32),
        "odd": gp.Aggregator("or", lambda old, new, ctx: new % 2 == 1),
        "bits": gp.Aggregator("and", lambda old, new, ctx: ~new, dtype=np.int32),
        "last": gp.Aggregator(gp.Combiner(lambda a, b: a if a > b else b, -1.0), lambda old, new, ctx: ctx.vertex / 2),
    },
)


@pytest.mark.parametrize(
    "device, mode",
    [
        on(name, mode, name=mode)
        for name in ("emulated", "emulated:1", "emulated:2", "cuda")
        for mode in ("push", "pull")
    ],
)
def test_aggregates_of_every_superstep(device: str, mode: str) -> None:
    graph = path(70)
    seen: list[list[Any]] = []

    def stop(aggregated: Any) -> bool:
        seen[-1].append(tuple(figure.item() for figure in aggregated))
        return len(seen[-1]) == 60

    results = []
    for name in (device, "cpu"):
        seen.append([])
        results.append(run(graph, replace(WATCHED, halt=stop), name, mode=mode))
    assert results[0].status == results[1].status == "halted"
    assert seen[0] == seen[1]
    assert results[0].to_numpy().tolist() == results[1].to_numpy().tolist()
    # Without ``halt``, many supersteps run before the host reads their figures.
    together, apart = (run(graph, WATCHED, name, mode=mode) for name in (device, "cpu"))
    assert together.supersteps == apart.supersteps > 60
    assert together.to_numpy().tolist() == apart.to_numpy().tolist()


@DEVICES
def test_grids(device: str) -> None:
    for graph in (gp.grid(1, 70), gp.grid(30, 20, holes=0.3, seed=5), gp.grid(33, 17)):
        labels = gp.connected_components(graph, device="cpu").to_numpy()
        assert np.array_equal(run(graph, LABELS, device).to_numpy(), labels)
        assert np.array_equal(gp.connected_components(graph, device=device).to_numpy(), labels)


@PROGRAM_DEVICES
def test_no_vertex_is_active_initially(device: str) -> None:
    program = replace(HOPS, initially_active=lambda ctx: False)
    result = run(path(70), program, device)
    assert (result.supersteps, result.status) == (1, "completed")
    assert result.to_numpy().tolist() == [0] + [FAR] * 69


@DEVICES
def test_graphs_with_at_most_one_vertex(device: str) -> None:
    nothing, loop = gp.Graph.from_edgelist([], []), gp.Graph.from_edgelist([0], [0])
    for mode in ("push", "pull", "auto"):
        assert run(nothing, LABELS, device, mode=mode).to_numpy().tolist() == []
        assert run(loop, SUMS, device, mode=mode).to_numpy().tolist() == [1]
    assert gp.connected_components(nothing, device=device).to_numpy().tolist() == []
    assert gp.connected_components(loop, device=device).to_numpy().tolist() == [0]

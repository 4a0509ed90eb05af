"""Tests of the CUDA kernels of vertex programs at sizes at which warps and blocks are full, or one more is needed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.kernels.library.jit_cuda import BLOCK, WARPS
from gpu_pregel.kernels.traverse.rows_cuda import HUB_EDGES
from tests.devices import EMULATED, EMULATED_DEVICES
from tests.programs import LABELS

COUNTS = gp.VertexProgram(
    value=np.int64,
    init=lambda ctx: ctx.vertex,
    message=lambda value, ctx: value,
    combine="min",
    apply=lambda value, incoming, ctx: min(value, incoming),
    active="always",
    aggregators={
        "sum": gp.Aggregator("sum", lambda old, new, ctx: ctx.vertex),
        "max": gp.Aggregator("max", lambda old, new, ctx: ctx.vertex),
    },
)
SENDS_AND_WEIGHS = gp.VertexProgram(
    value=np.float64,
    init=lambda ctx: 1.0,
    initially_active=lambda ctx: ctx.vertex != 1,
    message=lambda value, weight, ctx: value + weight,
    combine="max",
    apply=lambda value, incoming, ctx: max(value, incoming),
)


@EMULATED_DEVICES
@pytest.mark.parametrize("n", [29 * BLOCK, 32 * BLOCK + 1], ids=["full blocks", "one more"])
def test_aggregates_of_more_warps_than_a_block_has_threads(n: int, device: str) -> None:
    """All warps of the last block have partial aggregates to add up."""
    assert n // BLOCK * WARPS > BLOCK - 32
    ends = np.arange(n - 1)
    graph = gp.Graph.from_edgelist(ends, ends + 1, num_vertices=n)
    found = gp.run(graph, COUNTS, device=device, mode="push", max_supersteps=2)
    assert found.aggregated._asdict() == {"sum": n * (n - 1) // 2, "max": n - 1}
    assert [row["active_vertices"] for row in found.trace] == [n] * len(found.trace)


@EMULATED
@pytest.mark.parametrize("hubs", [WARPS, WARPS + 1])
def test_more_hubs_than_a_block_has_warps(hubs: int) -> None:
    """Each hub takes the largest number of its leaves."""
    src = np.repeat(np.arange(hubs), HUB_EDGES + 1)
    dst = hubs + np.arange(len(src))
    graph = gp.Graph.from_edgelist(src, dst, num_vertices=hubs + len(src))
    program = gp.VertexProgram(
        value=np.int64,
        init=lambda ctx: ctx.vertex,
        message=lambda value, ctx: value,
        combine="max",
        apply=lambda value, incoming, ctx: max(value, incoming),
    )
    found = gp.run(graph, program, device="emulated", mode="pull", max_supersteps=2, on_limit="return").to_numpy()
    assert found[:hubs].tolist() == [hubs + (k + 1) * (HUB_EDGES + 1) - 1 for k in range(hubs)]


@EMULATED
@pytest.mark.parametrize("mode", ["push", "pull"])
def test_the_only_inactive_vertex_sends_nothing(mode: Any) -> None:
    """Vertex 1 has the heaviest edges, as many as the hub 3; all others are active."""
    leaves = np.arange(4, 5 + HUB_EDGES)
    src = np.concatenate([[1, 2, 3], np.full_like(leaves, 1), np.full_like(leaves, 3)])
    dst, weights = np.concatenate([[0, 0, 2], leaves, leaves]), np.where(src == 1, 9.0, src)
    graph = gp.Graph.from_edgelist(src, dst, weights, num_vertices=5 + HUB_EDGES, directed=True)
    found = gp.run(graph, SENDS_AND_WEIGHS, device="emulated", mode=mode, max_supersteps=2, on_limit="return")
    assert found.to_numpy().tolist() == [3.0, 1.0, 4.0, 1.0] + [4.0] * len(leaves)


@EMULATED
def test_a_pull_of_a_path_that_fills_its_words() -> None:
    ends = np.arange(63)
    graph = gp.Graph.from_edgelist(ends, ends + 1, num_vertices=64)
    assert gp.run(graph, LABELS, device="emulated", mode="pull").to_numpy().tolist() == [0] * 64

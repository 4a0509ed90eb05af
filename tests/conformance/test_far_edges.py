"""Every kernel over edges on graphs whose edges have positions beyond 31 and 32 bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.host.traverse.operators_cuda import CudaOperators
from tests.conformance.test_operators_cuda import check_each_edge, with_hubs
from tests.devices import EMULATED
from tests.far_edges import FAR, far, move_edges
from tests.programs import DISTANCES, LABELS

pytestmark = EMULATED
N = 1_210


def _graph() -> gp.Graph:
    """Return a graph with short, medium and long rows, in which vertex 0 is a hub of two pieces, and 1 has 400 edges.

    Two paths of different lengths begin at neighbours of it, so that at last few vertices are active, and then one.
    """
    src, dst, _ = gp.kronecker(8, 8).to_edgelist()
    hub, path = np.arange(1, 1_200), np.arange(1_200, N)
    src = np.concatenate([src, 0 * hub, np.ones(400, int), np.where(path == 1_206, 1_198, path - 1)])
    dst = np.concatenate([dst, hub, np.arange(2, 402), path])
    return gp.Graph.from_edgelist(src, dst, np.arange(len(src)) % 5 + 0.5, num_vertices=N)


@pytest.mark.parametrize("first", FAR.values(), ids=FAR)
@pytest.mark.parametrize("program", [LABELS, DISTANCES], ids=["per source", "per edge"])
def test_vertex_programs(program: gp.VertexProgram, first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = _graph()
    if program is DISTANCES:
        # Then pushes are chains again after the superstep in which the hub sends.
        monkeypatch.setattr("gpu_pregel.host.programs.cuda_state._WIDE_BATCH", 1)
    expected = gp.run(graph, program, device="cpu").to_numpy().tobytes()
    move_edges(monkeypatch, first)
    for mode, partitions in (("push", 1), ("push", 2), ("pull", 1), ("pull", 2)):
        chosen: Any = mode
        found = gp.run(graph, program, device="emulated", mode=chosen, partitions=partitions)
        assert found.to_numpy().tobytes() == expected


@pytest.mark.parametrize("first", FAR.values(), ids=FAR)
def test_operators(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    move_edges(monkeypatch, first)
    check_each_edge(with_hubs(directed=False), "emulated:3")


@pytest.mark.parametrize("first", FAR.values(), ids=FAR)
def test_pairs(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def weigh(i: Any, u: Any, v: Any, w: Any, weight_u: Any, weight_v: Any) -> Any:
        return i + 3 * w + 5 * int(2 * weight_u) + 7 * int(2 * weight_v)

    graph = _graph()
    pairs = np.repeat(np.arange(256), 4), np.tile([0, 1, 2, 70], 256)
    expected = gp.intersect_rows(weigh, gp.Frontier(graph, device="cpu"), pairs=pairs)
    move_edges(monkeypatch, first)
    frontier = gp.Frontier(graph, device="emulated")
    given = frontier.upload(pairs[0]), frontier.upload(pairs[1])
    assert frontier.download(gp.intersect_rows(weigh, frontier, pairs=given)).tolist() == expected.tolist()


@pytest.mark.parametrize("first", FAR.values(), ids=FAR)
@pytest.mark.parametrize("primitive", ["reduce_rows", "count_labels"])
def test_rows(primitive: str, first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of labels have the positions of edges, too."""

    def both(device: str) -> list[list[int]]:
        frontier = gp.Frontier(graph, device=device)
        given = [frontier.full(0, np.int64) for _ in range(2)]
        if primitive == "reduce_rows":
            gp.reduce_rows(scaled, "sum", frontier, given, finish=store_sum, returns=None)
        else:
            gp.count_labels(residue, frontier, given, weigh=scaled, finish=store_label, returns=None)
        return [frontier.download(array).tolist() for array in given]

    def scaled(v: Any, u: Any, weight: Any, one: Any, other: Any) -> Any:
        return (u + 3) * int(2 * weight)

    def residue(v: Any, u: Any, weight: Any, one: Any, other: Any) -> Any:
        return u % (5 + v)

    def store_sum(v: Any, found: Any, one: Any, other: Any) -> None:
        one[v] = found

    def store_label(v: Any, label: Any, total: Any, one: Any, other: Any) -> None:
        one[v], other[v] = label, total

    graph = _graph()
    expected, tables = both("cpu"), CudaOperators._tables
    move_edges(monkeypatch, first)
    monkeypatch.setattr(CudaOperators, "_tables", lambda self: tuple(far(table, first) for table in tables(self)))
    assert both("emulated") == expected


@pytest.mark.parametrize("first", FAR.values(), ids=FAR)
@pytest.mark.parametrize("directed", [False, True])
def test_components(directed: bool, first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directed graph has no component whose rows are skipped."""
    src, dst, _ = _graph().to_edgelist()
    graph = gp.Graph.from_edgelist(src, dst, num_vertices=N, directed=directed)
    expected = gp.connected_components(graph, device="cpu").to_numpy()
    move_edges(monkeypatch, first)
    np.testing.assert_array_equal(gp.connected_components(graph, device="emulated").to_numpy(), expected)

"""Frontiers, process_vertices and process_edges on every device: answers of oracles, both directions, refusals."""

from __future__ import annotations

from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, GraphError, ProgramError
from gpu_pregel.host.devices import DEVICES
from tests.graphs import arrays, edge_lists

pytestmark = pytest.mark.parametrize("device", DEVICES)

STEP = gp.VertexProgram(
    value=np.int64,
    init=lambda ctx: -1,
    message=lambda value, ctx: ctx.superstep + 1,
    combine="min",
    apply=lambda value, incoming, ctx: incoming if value < 0 else value,
)


@given(graph=edge_lists(), mode=st.sampled_from(["push", "pull", "auto"]), transpose=st.booleans())
def test_breadth_first_search_by_process_edges(device: str, graph: Any, mode: str, transpose: bool) -> None:
    n, edges = graph
    built = gp.Graph.from_edgelist(*arrays(edges), num_vertices=n, directed=True)
    oracle = networkx.DiGraph(edges)
    oracle.add_nodes_from(range(n))
    lengths = networkx.single_source_shortest_path_length(oracle.reverse() if transpose else oracle, 0)
    depth, frontier, superstep = np.full(n, -1, np.int64), gp.Frontier(built, [0]), 0
    depth[0] = 0
    while frontier:
        before = set(np.flatnonzero(depth >= 0))
        count = gp.process_edges(
            STEP, frontier, depth, transpose=transpose, mode=mode, superstep=superstep, device=device, threads=2
        )
        superstep += 1
        assert count == len(frontier) == len(set(np.flatnonzero(depth >= 0)) - before)
        assert frontier.vertices().tolist() == [v for v in range(n) if lengths.get(v) == superstep]
    assert depth.tolist() == [lengths.get(v, -1) for v in range(n)]


def count_even(vertex: Any, seen: Any) -> Any:
    seen[vertex] += 1
    return vertex % 2 == 0


def weigh(vertex: Any, weights: Any, factors: Any) -> Any:
    return weights[vertex] * factors[0]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 20_000])
def test_process_vertices_visits_the_frontier_once_and_sums(device: str, threads: int, n: int) -> None:
    graph = gp.Graph.from_edgelist([], [], num_vertices=n)
    chosen = np.arange(0, n, 3)
    seen = np.zeros(n, np.int64)
    total = gp.process_vertices(count_even, gp.Frontier(graph, chosen), [seen], device=device, threads=threads)
    assert total == (chosen % 2 == 0).sum()
    assert isinstance(total, int)
    assert np.flatnonzero(seen).tolist() == chosen.tolist()
    assert seen.max(initial=0) <= 1
    everywhere = gp.process_vertices(weigh, gp.Frontier(graph), [np.full(n, 0.5), np.array([2])], device=device)
    assert everywhere == n
    assert isinstance(everywhere, float)


def test_frontiers(device: str) -> None:
    graph = gp.grid(9)
    full, none, some = gp.Frontier(graph), gp.Frontier(graph, []), gp.Frontier(graph, np.array([80, 3, 3], np.uint8))
    assert (len(full), len(none), len(some)) == (81, 0, 2)
    assert bool(full)
    assert not none
    assert some.vertices().tolist() == [3, 80]
    assert some.flags().sum() == 2
    assert 80 in some
    assert 81 not in full
    assert -1 not in full
    assert repr(some) == "<Frontier: 2 of 81 vertices>"


def test_bad_input_is_refused(device: str) -> None:
    graph = gp.grid(3)
    frontier, values = gp.Frontier(graph), np.zeros(9, np.int64)
    with pytest.raises(GraphError, match="there is no vertex 9 in a graph of 9 vertices"):
        gp.Frontier(graph, [2, 9])
    with pytest.raises(ArgumentTypeError, match="vertices must be vertex numbers, not float64"):
        gp.Frontier(graph, [0.5])
    with pytest.raises(ArgumentTypeError, match=r"frontier must be a gp\.Frontier, not list"):
        gp.process_vertices(count_even, [1], [values])  # type: ignore[arg-type]
    with pytest.raises(ProgramError, match="function returns none, but must return a number"):
        gp.process_vertices(lambda vertex: None, frontier, device=device)
    with pytest.raises(ProgramError, match="function cannot be compiled"):
        gp.process_vertices(lambda vertex, values: values.nothing, frontier, [values], device=device)
    with pytest.raises(ArgumentTypeError, match="arrays have dtypes int32, but the program's value is int64"):
        gp.process_edges(STEP, frontier, values.astype(np.int32), device=device)
    with pytest.raises(GraphError, match=r"arrays\[0\] has shape \(8,\), but the graph has 9 vertices"):
        gp.process_edges(STEP, frontier, values[:8], device=device)
    with pytest.raises(ArgumentError, match=r"arrays\[0\] must be contiguous and writable"):
        gp.process_edges(STEP, frontier, np.broadcast_to(values, 9), device=device)
    with pytest.raises(ArgumentTypeError, match=r"program must be a gp\.VertexProgram"):
        gp.process_edges(lambda: 0, frontier, values, device=device)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="mode must be"):
        gp.process_edges(STEP, frontier, values, mode="both", device=device)

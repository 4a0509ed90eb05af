"""Frontiers, process_vertices and process_edges on every device, compared with oracles, and their errors."""

from __future__ import annotations

from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, GraphError, ProgramError
from gpu_pregel.host.devices import get_device
from tests.devices import CUDA_DEVICES, DEVICES, PROGRAM_DEVICES, examples, threads_of, ways
from tests.graphs import arrays, edge_lists

STEP = gp.VertexProgram(
    value=np.int64,
    init=lambda ctx: -1,
    message=lambda value, ctx: ctx.superstep + 1,
    combine="min",
    apply=lambda value, incoming, ctx: incoming if value < 0 else value,
)


@PROGRAM_DEVICES
def test_breadth_first_search_by_process_edges(device: str) -> None:
    @examples(device, graph=edge_lists(), mode=st.sampled_from(["push", "pull", "auto"]), transpose=st.booleans())
    def check(graph: Any, mode: str, transpose: bool) -> None:
        n, edges = graph
        built = gp.Graph.from_edgelist(*arrays(edges), num_vertices=n, directed=True)
        oracle = networkx.DiGraph(edges)
        oracle.add_nodes_from(range(n))
        lengths = networkx.single_source_shortest_path_length(oracle.reverse() if transpose else oracle, 0)
        depth, frontier, superstep = np.full(n, -1, np.int64), gp.Frontier(built, [0]), 0
        depth[0] = 0
        way: dict[str, Any] = {"transpose": transpose, "mode": mode, "device": device, **threads_of(device, 2)}
        while frontier:
            before = set(np.flatnonzero(depth >= 0))
            count = gp.process_edges(STEP, frontier, depth, superstep=superstep, **way)
            superstep += 1
            assert count == len(frontier) == len(set(np.flatnonzero(depth >= 0)) - before)
            assert frontier.vertices().tolist() == [v for v in range(n) if lengths.get(v) == superstep]
        assert depth.tolist() == [lengths.get(v, -1) for v in range(n)]

    check()


@pytest.mark.parametrize("n", [0, 1, 65])
@pytest.mark.parametrize("mode", ["push", "pull"])
@PROGRAM_DEVICES
def test_an_empty_frontier_and_a_graph_without_edges_send_nothing(device: str, mode: Any, n: int) -> None:
    graph = gp.Graph.from_edgelist([], [], num_vertices=n)
    for frontier in (gp.Frontier(graph), gp.Frontier(graph, [])):
        depth = np.full(n, 7, np.int64)
        assert gp.process_edges(STEP, frontier, depth, device=device, mode=mode) == len(frontier) == 0
        assert (depth == 7).all()


def count_even(vertex: Any, seen: Any) -> Any:
    seen[vertex] += 1
    return vertex % 2 == 0


def weigh(vertex: Any, weights: Any, factors: Any) -> Any:
    return weights[vertex] * factors[0]


@ways(n=[0, 1, 31, 32, 33, 63, 64, 65, 255, 256, 257, 20_000], threads=[1, 3])
def test_process_vertices_visits_each_vertex_of_the_frontier_once(device: str, way: dict[str, Any]) -> None:
    way, n = {"device": device, **way}, way["n"]
    del way["n"]
    graph = gp.Graph.from_edgelist([], [], num_vertices=n)
    chosen = np.arange(0, n, 3)
    seen = np.zeros(n, np.int64)
    total = gp.process_vertices(count_even, gp.Frontier(graph, chosen), [seen], **way)
    assert total == (chosen % 2 == 0).sum()
    assert isinstance(total, int)
    assert np.flatnonzero(seen).tolist() == chosen.tolist()
    assert seen.max(initial=0) <= 1
    everywhere = gp.process_vertices(weigh, gp.Frontier(graph), [np.full(n, 0.5), np.array([2])], **way)
    assert everywhere == n
    assert isinstance(everywhere, float)


@PROGRAM_DEVICES
def test_read_only_arrays_can_be_read(device: str) -> None:
    graph, halves = gp.grid(5), np.full(50, 0.5)[::2]
    halves.flags.writeable = False
    assert gp.process_vertices(weigh, gp.Frontier(graph), [halves, np.array([2])], device=device) == 25


@CUDA_DEVICES
def test_device_arrays_are_updated_in_place(device: str) -> None:
    graph, target = gp.grid(5, holes=0), get_device(device)
    seen, frontier = target.zeros(25, np.int64), gp.Frontier(graph, [0, 2, 7])
    assert gp.process_vertices(count_even, frontier, [seen], device=device) == 2
    assert np.flatnonzero(target.download(seen)).tolist() == [0, 2, 7]
    depth = target.full(25, -1, np.int64)
    depth[12:13].fill(0)
    frontier = gp.Frontier(graph, [12])
    for superstep, mode in enumerate(("push", "pull")):
        gp.process_edges(STEP, frontier, depth, superstep=superstep, mode=mode, device=device)  # type: ignore[arg-type]
    distance = [abs(v // 5 - 2) + abs(v % 5 - 2) for v in range(25)]
    assert target.download(depth).tolist() == [hops if hops <= 2 else -1 for hops in distance]


def test_frontiers() -> None:
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


@DEVICES
def test_invalid_arguments_are_rejected(device: str) -> None:
    graph = gp.grid(3)
    frontier, values = gp.Frontier(graph), np.zeros(9, np.int64)
    with pytest.raises(GraphError, match="no vertex 9 in a graph of 9 vertices: use numbers below 9"):
        gp.Frontier(graph, [2, 9])
    with pytest.raises(ArgumentTypeError, match="vertices must be vertex numbers, not float64"):
        gp.Frontier(graph, [0.5])
    with pytest.raises(ArgumentTypeError, match=r"frontier must be a gp\.Frontier, not list"):
        gp.process_vertices(count_even, [1], [values])  # type: ignore[arg-type]
    with pytest.raises(ProgramError, match=r"function returns none, but must return a number"):
        gp.process_vertices(lambda vertex: None, frontier, device=device)
    with pytest.raises(ProgramError, match="function cannot be compiled"):
        gp.process_vertices(lambda vertex, values: values.nothing, frontier, [values], device=device)
    with pytest.raises(ArgumentTypeError, match="arrays have dtypes int32, but the program's value is int64"):
        gp.process_edges(STEP, frontier, values.astype(np.int32), device=device)
    with pytest.raises(GraphError, match=r"arrays\[0\] has shape \(8,\), but the graph has 9 vertices"):
        gp.process_edges(STEP, frontier, values[:8], device=device)
    with pytest.raises(ArgumentError, match=r"arrays\[0\] must be contiguous and writable"):
        gp.process_edges(STEP, frontier, np.broadcast_to(values, 9), device=device)
    with pytest.raises(ArgumentTypeError, match=r"arrays\[0\] must be an array for device .*, not list"):
        gp.process_vertices(count_even, frontier, [[0] * 9], device=device)  # type: ignore[list-item]
    with pytest.raises(ArgumentTypeError, match=r"arrays\[0\] must be an array for device .*, not int"):
        gp.process_edges(STEP, frontier, [0] * 9, device=device)  # type: ignore[list-item]
    with pytest.raises(ArgumentTypeError, match=r"program must be a gp\.VertexProgram"):
        gp.process_edges(lambda: 0, frontier, values, device=device)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="mode must be"):
        gp.process_edges(STEP, frontier, values, mode="both", device=device)  # type: ignore[arg-type]


@CUDA_DEVICES
def test_arrays_on_another_device_or_of_two_dimensions_are_rejected(device: str) -> None:
    frontier = gp.Frontier(gp.grid(3))
    there: Any = get_device(device).zeros(9, np.int64)
    with pytest.raises(ArgumentTypeError, match=r"arrays\[0\] must be an array for device 'cpu', not"):
        gp.process_vertices(count_even, frontier, [there], device="cpu")
    with pytest.raises(ArgumentTypeError, match=r"arrays\[0\] must be an array for device 'cpu', not"):
        gp.process_edges(STEP, frontier, there, device="cpu")
    with pytest.raises(ArgumentError, match=r"arrays\[0\] has 2 dimensions: device .* supports only one"):
        gp.process_vertices(count_even, frontier, [np.zeros((9, 2))], device=device)


@DEVICES
def test_a_failed_superstep_leaves_no_messages_behind(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, kind = gp.Graph.from_edgelist([0, 1], [1, 2], directed=True), type(get_device(device))
    frontier, launch, launched = gp.Frontier(graph, [0]), kind.launch, 0

    def interrupt_the_second(self: Any, *arguments: Any, **options: Any) -> None:
        nonlocal launched
        launched += 1
        if launched == 2:
            raise KeyboardInterrupt
        launch(self, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(kind, "launch", interrupt_the_second)
        with pytest.raises(KeyboardInterrupt):
            gp.process_edges(STEP, frontier, np.array([0, -1, -1]), mode="push", device=device)
    # Vertex 1 sends now: the message that vertex 0 pushed before the interrupt must not be applied.
    depth = np.array([0, -1, -1])
    frontier.words[:] = gp.Frontier(graph, [1]).words
    assert gp.process_edges(STEP, frontier, depth, mode="push", superstep=6, device=device) == 1
    assert depth.tolist() == [0, -1, 7]

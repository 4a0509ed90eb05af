"""Tests of topological orders: NetworkX, cycles, ids and errors."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.algorithms.checkers.topological_order import check_topological_order
from gpu_pregel.errors import CycleError, GraphError, VerificationError
from gpu_pregel.host.devices import get_device
from tests.devices import EMULATED, on
from tests.graphs import arrays, edge_lists


@given(edge_lists(), st.sampled_from(["cpu", "python"]))
@settings(max_examples=25)
def test_levels_are_the_generations_of_networkx(drawn: Any, device: str) -> None:
    n, edges = drawn
    forward = [(min(edge), max(edge)) for edge in edges if edge[0] != edge[1]]
    graph = gp.Graph.from_edgelist(*arrays(forward), num_vertices=n, directed=True)
    plain = networkx.DiGraph(forward)
    plain.add_nodes_from(range(n))
    generations = [sorted(generation) for generation in networkx.topological_generations(plain)]
    found = gp.topological_order(graph, device=device)
    assert found.ids().tolist() == [v for generation in generations for v in generation]
    assert found.to_dict() == {v: level for level, generation in enumerate(generations) for v in generation}
    assert found.summary() == {"levels": len(generations), "widest": max(map(len, generations))}


@given(edge_lists(20, 60), st.sampled_from(["cpu", "python"]))
@settings(max_examples=25)
def test_cycles_are_reported(drawn: Any, device: str) -> None:
    n, edges = drawn
    graph = gp.Graph.from_edgelist(*arrays(edges), num_vertices=n, directed=True)
    plain = networkx.DiGraph(edges)
    if networkx.is_directed_acyclic_graph(plain):
        assert len(gp.topological_order(graph, device=device)) == n
        return
    with pytest.raises(CycleError) as caught:
        gp.topological_order(graph, device=device)
    cycle = caught.value.cycle
    assert len(set(cycle)) == len(cycle)
    assert all(plain.has_edge(*edge) for edge in zip(cycle, [*cycle[1:], cycle[0]], strict=True))


@EMULATED
def test_no_frontier_is_copied_to_the_host() -> None:
    device: Any = get_device("emulated")
    before = device.memory.readbacks
    found = gp.topological_order(gp.Graph.from_edgelist(range(20), range(1, 21), directed=True), device="emulated")
    assert found.levels.tolist() == list(range(21))
    # The figures of each frontier, the bits of levels to sort by, the order, the levels, and the edges that are left.
    assert device.memory.readbacks - before == 1 + 21 + 4


@pytest.mark.parametrize("device", [on("cpu"), on("emulated")])
def test_the_error_names_the_cycle(device: str) -> None:
    graph = gp.Graph.from_edgelist(["a", "b", "c", "x"], ["b", "c", "b", "a"], directed=True)
    with pytest.raises(CycleError, match="the graph has a cycle, 'b' -> 'c' -> 'b': remove one of its edges"):
        gp.topological_order(graph, device=device)
    ring = gp.Graph.from_edgelist(range(20), [*range(1, 20), 0], directed=True)
    with pytest.raises(CycleError, match=r"0 -> 1 -> .* -> 7 -> \(12 more\) -> 0: remove") as caught:
        gp.topological_order(ring, device=device)
    assert pickle.loads(pickle.dumps(caught.value)).cycle == list(range(20))


def test_long_paths_and_results() -> None:
    found = gp.topological_order(gp.Graph.from_edgelist(range(5000), range(1, 5001), directed=True), device="cpu")
    assert (found.depth, found.describe()) == (5001, "5,001 levels, the widest of 1 vertices")
    empty = gp.topological_order(gp.Graph.from_edgelist([], [], directed=True), device="cpu")
    assert (empty.depth, empty.ids().tolist()) == (0, [])


def test_undirected_graphs_are_rejected() -> None:
    with pytest.raises(GraphError, match="topological_order needs a directed graph"):
        gp.topological_order(gp.grid(2))


def test_the_checker_refuses_other_orders() -> None:
    graph = gp.Graph.from_edgelist([0, 1], [2, 2], directed=True)
    found = gp.topological_order(graph, device="cpu")
    check_topological_order(graph, found)
    with pytest.raises(VerificationError, match="the order is not by level, then number"):
        check_topological_order(graph, replace(found, order=np.array([1, 0, 2])))

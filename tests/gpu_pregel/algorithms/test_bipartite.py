"""Tests of the bipartite check: NetworkX, odd cycles, ids and errors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.algorithms.checkers.bipartite import check_bipartite
from gpu_pregel.errors import VerificationError
from tests.graphs import arrays, edge_lists


@pytest.mark.parametrize(
    ("edges", "n", "directed", "sides", "cycle"),
    [
        ([], 0, False, [], None),
        ([], 2, False, [0, 0], None),
        ([(1, 1)], 2, False, [0, -1], [1]),
        ([(0, 1), (1, 0)], 2, True, [0, 1], None),
        ([(2, 1), (1, 0), (3, 4)], 5, True, [0, 1, 0, 0, 1], None),
        ([(0, 1), (1, 2), (2, 3), (3, 0)], 4, False, [0, 1, 0, 1], None),
        ([(0, 1), (2, 3), (3, 4), (4, 2)], 5, True, [0, 1, -1, -1, -1], [2, 3, 4]),
    ],
)
def test_known_answers(edges: Any, n: int, directed: bool, sides: list[int], cycle: list[int] | None) -> None:
    found = gp.bipartite(gp.Graph.from_edgelist(*arrays(edges), num_vertices=n, directed=directed), device="cpu")
    assert (found.sides.tolist(), found.odd_cycle(), bool(found)) == (sides, cycle, cycle is None)


@given(edge_lists(30, 35), st.booleans(), st.sampled_from(["cpu", "python"]))
@settings(max_examples=60)
def test_networkx_agrees(drawn: Any, directed: bool, device: str) -> None:
    n, edges = drawn
    graph = gp.Graph.from_edgelist(*arrays(edges), num_vertices=n, directed=directed)
    found = gp.bipartite(graph, device=device)
    plain = networkx.Graph(edges)
    assert bool(found) == networkx.is_bipartite(plain)
    check_bipartite(graph, found)


def test_a_long_odd_cycle_behind_a_path() -> None:
    ring = [(v, v + 1) for v in range(1000)] + [(1000, 300)]
    found = gp.bipartite(gp.Graph.from_edgelist(*arrays(ring), directed=True), device="cpu")
    assert found.cycle is not None
    assert sorted(found.cycle.tolist()) == list(range(300, 1001))
    assert found.describe() == "not bipartite: a cycle of 701 vertices"
    assert found.summary() == {"bipartite": False, "odd_cycle": 701}


def test_grids_are_bipartite() -> None:
    graph = gp.grid(30)
    found = gp.bipartite(graph, device="cpu")
    check_bipartite(graph, found)
    assert found.describe().startswith("bipartite, ")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cycle": None}, "there is an odd cycle if and only if"),
        ({"cycle": np.array([0, 1])}, "is not an odd cycle"),
        ({"cycle": np.array([0, 1, 3])}, "the odd cycle goes from 1 to 3, which is no edge"),
    ],
)
def test_the_checker_refuses_wrong_cycles(change: Any, message: str) -> None:
    graph = gp.Graph.from_edgelist([0, 1, 2, 2], [1, 2, 0, 3])
    found = gp.bipartite(graph, device="cpu")
    check_bipartite(graph, found)
    with pytest.raises(VerificationError, match=message):
        check_bipartite(graph, replace(found, **change))

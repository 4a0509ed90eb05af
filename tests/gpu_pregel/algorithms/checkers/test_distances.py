"""The breadth-first search of checkers: both ways of searching, and long paths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

import gpu_pregel as gp
from gpu_pregel.algorithms.checkers import _distances
from tests.graphs import arrays, edge_lists


@given(edge_lists())
def test_both_ways_find_the_same_distances(drawn: Any) -> None:
    n, edges = drawn
    graph = gp.Graph.from_edgelist(*arrays(edges), num_vertices=n, directed=True)
    for v in range(n):
        expected = _distances.hops_from(graph, np.array([v]))
        assert _distances._hops_in_scipy(graph.to_csr(), v).tolist() == expected.tolist()


def test_searches_of_long_paths_do_not_go_level_by_level(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 20_000
    path = gp.Graph.from_edgelist(np.arange(n - 1), np.arange(1, n), num_vertices=n + 1)
    levels: list[Any] = []
    unique = np.unique

    def count(values: Any) -> Any:
        levels.append(values)
        return unique(values)

    monkeypatch.setattr(np, "unique", count)
    hops = _distances.hops_from(path, np.array([5]))
    assert hops.tolist() == [5, 4, 3, 2, 1, *range(n - 5), -1]
    assert len(levels) < 100

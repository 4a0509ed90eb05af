"""The middle of a tree is found in linear time."""

from __future__ import annotations

import time

import networkx as nx
import pytest

_SECONDS = 5.0
"""Searches from all nodes took 27 s."""


@pytest.mark.parametrize("function", [nx.center, nx.barycenter])
def test_the_middle_of_a_long_path_is_found_quickly(function: nx.utils.backends._dispatchable) -> None:
    graph = nx.path_graph(30_000)
    begin = time.perf_counter()
    assert function(graph, backend="gpu_pregel") == [14_999, 15_000]
    assert time.perf_counter() - begin < _SECONDS

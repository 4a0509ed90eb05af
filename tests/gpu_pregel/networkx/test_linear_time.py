"""Functions that take linear time of graphs with long paths."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import networkx as nx
import pytest

N = 30_000
_SECONDS = 3.0
"""Each took longer with a search, or a pass over all nodes, for each node."""

CALLS: dict[str, tuple[Callable[..., Any], Any, Callable[[Any], bool]]] = {
    "center": (nx.center, nx.Graph, lambda found: found == [N // 2 - 1, N // 2]),
    "barycenter": (nx.barycenter, nx.Graph, lambda found: found == [N // 2 - 1, N // 2]),
    "trophic levels": (nx.trophic_levels, nx.DiGraph, lambda found: found[N - 1] == N),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_long_path_takes_linear_time(name: str) -> None:
    function, kind, is_right = CALLS[name]
    graph = nx.path_graph(N, create_using=kind)
    begin = time.perf_counter()
    assert is_right(function(graph, backend="gpu_pregel"))
    assert time.perf_counter() - begin < _SECONDS

"""Functions that take about linear time of long paths and of stars, whose hubs have many neighbours."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Any

import networkx as nx
import pytest

PATH, LEAVES = 30_000, 120_000
_SECONDS = 3.0
"""Each took longer with a pass over all nodes for each node."""


@cache
def _star() -> nx.Graph:
    return nx.star_graph(LEAVES)


CALLS: dict[str, tuple[Callable[..., Any], Callable[[], Any], Callable[[Any], bool]]] = {
    "center": (nx.center, lambda: nx.path_graph(PATH), lambda found: found == [PATH // 2 - 1, PATH // 2]),
    "barycenter": (nx.barycenter, lambda: nx.path_graph(PATH), lambda found: found == [PATH // 2 - 1, PATH // 2]),
    "trophic levels": (
        nx.trophic_levels,
        lambda: nx.path_graph(PATH, create_using=nx.DiGraph),
        lambda found: found[PATH - 1] == PATH,
    ),
    "generalized degree": (nx.generalized_degree, _star, lambda found: found[0] == {0: LEAVES}),
    "truss": (lambda graph, **options: nx.k_truss(graph, 3, **options), _star, lambda found: len(found) == 0),
    "labels": (nx.community.label_propagation_communities, _star, lambda found: len(found) == 1),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_path_or_a_star_takes_linear_time(name: str) -> None:
    function, make, is_right = CALLS[name]
    graph = make()
    # Kernels are compiled, or read, before.
    function(nx.star_graph(1, create_using=type(graph)), backend="gpu_pregel")
    begin = time.perf_counter()
    with nx.config(cache_converted_graphs=False):
        assert is_right(function(graph, backend="gpu_pregel"))
    assert time.perf_counter() - begin < _SECONDS

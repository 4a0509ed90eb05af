"""Functions that take about linear time of long paths and of stars, whose hubs have many neighbours."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Any

import networkx as nx
import pytest

from gpu_pregel.algorithms._iterations import KernelSums

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
    "square clustering": (nx.square_clustering, _star, lambda found: set(found.values()) == {0}),
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


def test_a_slowly_converging_hits_is_left_to_arpack_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[Any] = []
    advance = KernelSums.advance

    def counted(*given: Any, **options: Any) -> Any:
        steps.append(given)
        return advance(*given, **options)

    monkeypatch.setattr(KernelSums, "advance", counted)
    nx.hits(nx.grid_2d_graph(40, 40), backend="gpu_pregel")
    assert 10 < len(steps) <= 18
    steps.clear()
    core = nx.gnp_random_graph(60, 0.5, seed=1)
    ours, theirs = (nx.hits(core, backend=name)[0] for name in ("gpu_pregel", "networkx"))
    assert 10 < len(steps) <= 60
    assert ours == pytest.approx(theirs, abs=1e-6)

"""Loops over operators end with an error if the results of the device do not let them advance."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import DeviceError
from gpu_pregel.host.devices import get_device
from gpu_pregel.host.superstep.advance import Advance
from tests.devices import EMULATED

PATH = gp.Graph.from_edgelist([0, 1, 2, 3], [1, 2, 3, 4], np.ones(4), num_vertices=6)
CYCLE = gp.Graph.from_edgelist([0, 1, 2, 3, 4, 3], [1, 2, 3, 4, 0, 1], np.ones(6), directed=True)
TASKS = gp.Graph.from_edgelist([0, 0, 0, 1, 1, 2], [1, 2, 3, 2, 3, 3], directed=True)


def zero(*_: Any) -> int:
    return 0


def true(*_: Any) -> bool:
    return True


def near(u: Any, v: Any, weight: Any, distances: Any) -> bool:
    distances[v] = 0
    return True


# Bodies and what they are replaced by, the algorithm, its graph and other arguments, and what does not advance.
FAULTS: list[tuple[dict[str, Any], str, gp.Graph, dict[str, Any], str]] = [
    ({"greedy_color._color": true}, "greedy_color", PATH, {}, "coloring vertices"),
    ({"maximal_independent_set._decide": true}, "maximal_independent_set", PATH, {}, "deciding vertices"),
    ({"minimum_spanning_forest._flatten": zero}, "minimum_spanning_forest", PATH, {}, "joining trees"),
    ({"core_number._reach": zero}, "core_number", PATH, {}, "removing vertices"),
    ({"core_number._lower": true}, "core_number", PATH, {}, "removing vertices"),
    ({"core_number._is_left": true}, "core_number", PATH, {}, "removing vertices"),
    (
        {"strongly_connected_components._has_both": true, "strongly_connected_components._is_root": zero},
        *("strongly_connected_components", CYCLE, {}, "finding components"),
    ),
    (
        {"strongly_connected_components._lower": true},
        *("strongly_connected_components", CYCLE, {}, "passing colors on"),
    ),
    ({"strongly_connected_components._join": true}, "strongly_connected_components", CYCLE, {}, "adding vertices"),
    ({"_path_relaxation._relax": lambda dtype: near}, "sssp", PATH, {"source": 0, "delta": 1}, "shortening paths"),
    ({"_path_relaxation._is_far": true}, "sssp", PATH, {"source": 0, "delta": 1}, "settling vertices"),
    (
        {"_dependencies._discover": true, "_dependencies._COUNTING": ()},
        *("betweenness_centrality", CYCLE, {"weighted": False}, "discovering vertices"),
    ),
    ({"_dependencies._relax": true}, "betweenness_centrality", CYCLE, {"weighted": True}, "shortening paths"),
    (
        {"_dependencies._release": true, "_dependencies._WEIGHTED_COUNTING": ()},
        *("betweenness_centrality", CYCLE, {"weighted": True}, "ordering vertices"),
    ),
    ({"_searches._spread": true}, "closeness_centrality", PATH, {}, "searching levels"),
    ({"_searches._visit": true}, "k_hop", CYCLE, {"sources": [0], "k": 100}, "searching levels"),
    ({"topological_order._remove": true}, "topological_order", TASKS, {}, "ordering vertices"),
]


@pytest.mark.parametrize(("bodies", "algorithm", "graph", "options", "work"), FAULTS)
def test_wrong_bodies(
    bodies: dict[str, Any],
    algorithm: str,
    graph: gp.Graph,
    options: dict[str, Any],
    work: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    call: Callable[[], Any] = lambda: getattr(gp, algorithm)(graph, **options, device="python")
    call()
    for name, body in bodies.items():
        module, _, function = name.rpartition(".")
        monkeypatch.setattr(importlib.import_module(f"gpu_pregel.algorithms.{module}"), function, body)
    with pytest.raises(DeviceError, match=rf"device 'python' does not advance in {work}: .*please report this"):
        call()


def test_searches_of_a_diameter_that_bound_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The searches from many vertices find distances that the search from one of them does not."""
    from gpu_pregel.algorithms import _searches, diameter

    graph = gp.grid(4, holes=0)
    monkeypatch.setattr(diameter, "_SMALL", 10)
    assert gp.diameter(graph, device="python").upper == 6
    run = _searches.OperatorSearches.run
    monkeypatch.setattr(_searches.OperatorSearches, "run", lambda *given, **options: run(*given, **options) + 100)
    with pytest.raises(DeviceError, match="does not advance in searching from vertices"):
        gp.diameter(graph, device="python")


def test_buckets_without_vertices(monkeypatch: pytest.MonkeyPatch) -> None:
    made = gp.Buckets(gp.Frontier(PATH, device="python"), lambda v: v // 4)
    monkeypatch.setattr(made, "_is_at", lambda v, k: v < 4 and k == 0)
    found = made.pop()
    assert found is not None
    assert found[1].vertices().tolist() == [0, 1, 2, 3]
    with pytest.raises(DeviceError, match=r"it finds number 1, then no vertex with it .*report this, with number"):
        made.pop()


@EMULATED
def test_a_wrong_body_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpu_pregel.algorithms.greedy_color._color", lambda v, taken, ranks, colors, lowest: v >= 0)
    with pytest.raises(DeviceError, match="it took 7 steps of at most 6"):
        gp.greedy_color(PATH, device="emulated")


def test_limits() -> None:
    """As many steps as are allowed are no error; the next one is."""
    advance = Advance("walking", get_device("cpu"), 5)
    advance.take(3)
    advance.take(2)
    advance.take(0)
    with pytest.raises(DeviceError, match="device 'cpu' does not advance in walking: it took 6 steps of at most 5"):
        advance.take()
    advance = Advance("walking", get_device("cpu"), 5)
    advance.shrink(4)
    advance.shrink(0)
    with pytest.raises(DeviceError, match="it left 0 of 0 vertices"):
        advance.shrink(0)

"""Tests of ``device="auto"``: the faster device by the registry, with the reason in the statistics."""

from __future__ import annotations

from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.algorithms import _levels
from gpu_pregel.algorithms._driver import AlgorithmRun
from gpu_pregel.algorithms._entry import Algorithm
from gpu_pregel.algorithms.registry import ALGORITHMS
from gpu_pregel.host import devices
from gpu_pregel.host.devices import choose_device
from tests.devices import EMULATED

NEVER = {
    *("hits", "eigenvector_centrality", "katz_centrality", "edge_betweenness_centrality", "cdlp", "louvain", "leiden"),
    *("greedy_color", "minimum_spanning_forest", "eccentricity", "diameter", "k_hop", "random_walks"),
    *("sample_neighbors", "topological_order"),
}


@pytest.fixture(autouse=True)
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a machine with a GPU."""
    monkeypatch.setattr(devices, "_has_gpu", lambda: True)
    monkeypatch.delenv(devices.DEVICE_VARIABLE, raising=False)


def choose(entry: Algorithm, edges: int, name: str = "auto", **options: Any) -> tuple[str, str]:
    return choose_device(name, None, entry.name, entry.gpu_from, edges, **options)


@pytest.mark.parametrize("entry", ALGORITHMS, ids=lambda entry: entry.name)
def test_auto_is_the_device_on_which_an_algorithm_is_faster(entry: Algorithm) -> None:
    assert choose(entry, 1 << 34, "cuda:1").name == "cuda:1"  # type: ignore[attr-defined]
    if entry.name in NEVER:
        assert entry.gpu_from is None
        assert choose(entry, 1 << 34) == ("cpu", f"{entry.name} has not been faster on a GPU at any size measured")
        assert choose(entry, 1 << 34, given_on="cuda:1")[0] == "cpu"
        return
    assert entry.gpu_from is not None
    limit = f"{entry.name} is faster on a GPU from {entry.gpu_from:,} stored edges on"
    assert choose(entry, entry.gpu_from - 1) == ("cpu", f"{limit}, and the graph has {entry.gpu_from - 1:,}")
    assert choose(entry, entry.gpu_from) == ("cuda:0", f"{limit}, and the graph has {entry.gpu_from:,}")
    assert choose(entry, 1, given_on="cuda:1")[0] == "cuda:1"


def test_without_a_gpu_auto_is_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_has_gpu", lambda: False)
    assert choose_device("auto", None, "bfs", 10, 10) == ("cpu", "there is no GPU that can be used")


def test_the_environment_and_threads_decide_first(monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose_device("auto", 2, "bfs", 10, 10) == ("cpu", "threads=2 was passed")
    monkeypatch.setenv(devices.DEVICE_VARIABLE, "python")
    assert choose_device("auto", None, "bfs", 10, 10) == ("auto", "GPU_PREGEL_DEVICE=python")
    stats = gp.bfs(gp.grid(2), 0).stats
    assert (stats["device"], stats["device_reason"]) == ("python", "GPU_PREGEL_DEVICE=python")


def test_statistics_name_the_reason() -> None:
    graph = gp.kronecker(6)
    reason = f"and the graph has {graph.num_stored_edges:,}"
    program = gp.VertexProgram(
        value=int, init=lambda ctx: 0, message=lambda value, ctx: value, combine="min", apply=lambda old, new, ctx: new
    )
    for stats in (
        gp.connected_components(graph).stats,
        gp.connected_components(graph, method="propagation").stats,
        gp.run(graph, program).stats,
        gp.Frontier(graph).stats(),
    ):
        assert (stats["device"], stats["device_reason"][-len(reason) :]) == ("cpu", reason)
    assert gp.bfs(graph, 0, device="cpu").stats["device_reason"] == "device='cpu' was passed"
    assert AlgorithmRun("connected_components", graph).device.name == "cpu"


@EMULATED
def test_communities_searched_on_the_cpu_say_so() -> None:
    found = gp.louvain(gp.kronecker(5), device="emulated")
    assert found.stats["device"] == "cpu"
    assert "up to 32,768 stored edges are searched on the CPU" in found.stats["device_reason"]


def test_small_levels_of_communities_are_searched_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_levels, "SERIAL_EDGES", 20)
    found = gp.louvain(gp.kronecker(5, 4), device="emulated")
    assert (found.stats["device"], found.stats["device_reason"]) == ("emulated", "device='emulated' was passed")
    assert found.stats["on_cpu"] == "levels of up to 20 stored edges"

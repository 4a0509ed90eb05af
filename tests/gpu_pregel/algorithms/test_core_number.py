"""Core numbers and k-cores: known answers, NetworkX on random graphs, levels on one thread and on several."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.algorithms.checkers.core_number import check_core_number
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, GraphError, VerificationError
from gpu_pregel.kernels.algorithms import cores_cpu
from tests.devices import threads_of
from tests.graphs import arrays, edge_lists

DEVICES = pytest.mark.parametrize("device", ["cpu", "python"])
"""The conformance tests run the same operators on the emulated device."""
CLIQUE = list(combinations(range(5), 2))
KNOWN: list[tuple[str, int, list[tuple[int, int]], list[int]]] = [
    ("empty", 0, [], []),
    ("isolated vertices", 2, [], [0, 0]),
    ("self-loop", 1, [(0, 0)], [0]),
    ("repeated edge", 2, [(0, 1), (1, 0), (0, 1)], [1, 1]),
    ("path", 4, [(0, 1), (1, 2), (2, 3)], [1, 1, 1, 1]),
    ("star", 5, [(0, 1), (0, 2), (0, 3), (0, 4)], [1] * 5),
    ("triangle with a tail and a self-loop", 4, [(0, 1), (1, 2), (2, 0), (2, 3), (3, 3)], [2, 2, 2, 1]),
    ("clique of five, a level skipped", 8, [*CLIQUE, (4, 5), (5, 6)], [4] * 5 + [1, 1, 0]),
]


def built(n: int, edges: list[tuple[int, int]]) -> gp.Graph:
    return gp.Graph.from_edgelist(*arrays(edges), num_vertices=n)


@DEVICES
def test_known_answers(device: str) -> None:
    for name, n, edges, expected in KNOWN:
        found = gp.core_number(built(n, edges), device=device)
        assert found.to_numpy().tolist() == expected, name
        assert (found.degeneracy, found.cores.dtype) == (max(expected, default=0), np.int32), name


@DEVICES
def test_agrees_with_networkx(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    @settings(max_examples=50 if device == "cpu" else 10)
    @given(edge_lists(max_vertices=30, max_edges=150), st.sampled_from([1, 3]), st.sampled_from([0, 1024]))
    def check(graph: Any, threads: int, serial: int) -> None:
        n, edges = graph
        oracle = networkx.empty_graph(n)
        oracle.add_edges_from((u, v) for u, v in edges if u != v)
        monkeypatch.setattr(cores_cpu, "SERIAL", serial)
        found = gp.core_number(built(n, edges), device=device, **threads_of(device, threads))
        assert found.to_dict() == networkx.core_number(oracle)
        check_core_number(found.graph, found)
        k = found.degeneracy
        assert set(found.k_core().to_networkx()) == set(networkx.k_core(oracle)) if edges else k == 0

    check()


def test_threads_agree_on_large_graphs() -> None:
    for graph in (gp.kronecker(13, 8), gp.uniform(13, 4), gp.grid(120)):
        found = [gp.core_number(graph, device="cpu", threads=threads).to_numpy() for threads in (1, 2, 5)]
        assert found[0].tobytes() == found[1].tobytes() == found[2].tobytes()
        oracle = networkx.core_number(networkx.from_scipy_sparse_array(graph.to_scipy()))
        assert found[0].tolist() == [oracle[v] for v in range(graph.num_vertices)]


def test_long_paths_and_a_clique_between_them() -> None:
    clique = list(combinations(range(40), 2))
    path = [(39, 40), *((v, v + 1) for v in range(40, 30_000))]
    found = gp.core_number(built(30_001, clique + path), device="cpu", threads=2)
    assert found.to_numpy().tolist() == [39] * 40 + [1] * 29_961
    assert [row["phase"] for row in found.trace][:2] == ["count degrees", "level 1"]


def test_ids_k_cores_and_summary() -> None:
    graph = gp.Graph.from_edgelist(["a", "b", "c", "d"], ["b", "c", "a", "a"], [5, 6, 7, 8])
    cores = gp.core_number(graph, device="cpu")
    assert cores.to_dict() == {"a": 2, "b": 2, "c": 2, "d": 1}
    assert list(cores.k_core(2).to_networkx()) == ["a", "b", "c"]
    assert sorted(np.asarray(cores.k_core(2).weights).tolist()) == [5, 5, 6, 6, 7, 7]
    assert cores.k_core(0) is graph
    for core in (gp.k_core(graph), gp.k_core(graph, 2, device="cpu", threads=1)):
        assert list(core.to_networkx()) == ["a", "b", "c"]
    assert cores.summary() == {"degeneracy": 2, "vertices": 3}
    assert cores.describe() == "core numbers up to 2, which 3 vertices have"
    assert repr(cores) == "<CoreNumbers: up to 2, 4 vertices>"


def test_invalid_arguments_are_rejected() -> None:
    graph = gp.Graph.from_edgelist([0, 1, 2], [1, 2, 0], num_vertices=4)
    with pytest.raises(ArgumentError, match="k must be from 0 to 2, not 3"):
        gp.k_core(graph, 3)
    with pytest.raises(ArgumentError, match="k must be from 0 to 3, not -1"):
        gp.k_core(graph, -1)
    with pytest.raises(ArgumentTypeError, match="k must be a whole number"):
        gp.k_core(graph, 1.5)  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="core_number needs an undirected graph"):
        gp.core_number(gp.Graph.from_edgelist([0], [1], directed=True))
    with pytest.raises(GraphError, match="k_core needs an undirected graph"):
        gp.k_core(gp.Graph.from_edgelist([0], [1], directed=True))


def test_a_k_beyond_the_number_of_vertices_is_rejected_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("gpu_pregel.host.devices.cpu.CpuDevice.launch")
    with pytest.raises(ArgumentError, match="k must be from 0 to 1, not 2"):
        gp.k_core(gp.Graph.from_edgelist([0], [1]), 2, device="cpu")


@pytest.mark.parametrize(("values", "message"), [([2, 2], "shape"), ([2, 1, 2], "vertex 1 has core number 1, not 2")])
def test_the_checker_rejects_wrong_numbers(values: list[int], message: str) -> None:
    with pytest.raises(VerificationError, match=message):
        check_core_number(gp.Graph.from_edgelist([0, 0, 1], [1, 2, 2]), values)


@pytest.mark.parametrize(
    ("file", "largest"), [("snap/wiki-Vote.txt", 53), ("mtx/karate.mtx", 4), ("mesh/wing.graph", 3)]
)
def test_public_graphs(data: Path, file: str, largest: int) -> None:
    assert gp.core_number(gp.read_graph(data / file, directed=False), device="cpu").degeneracy == largest

"""Local clustering: known answers, NetworkX and the definition on random graphs, LDBC's expected results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.algorithms.checkers.local_clustering import check_local_clustering
from gpu_pregel.errors import VerificationError
from gpu_pregel.host.graphs.edge_arrays import to_host
from tests.devices import on, threads_of
from tests.graphs import arrays, edge_lists

DEVICES = pytest.mark.parametrize("device", ["cpu", on("python"), on("emulated"), on("cuda")])
TRIANGLE = [(0, 1), (1, 2), (2, 0)]
KNOWN: list[tuple[str, int, list[tuple[int, int]], bool, list[float]]] = [
    ("empty", 0, [], False, []),
    ("empty, directed", 0, [], True, []),
    ("one edge", 2, [(0, 1)], False, [0, 0]),
    ("triangle", 3, TRIANGLE, False, [1, 1, 1]),
    ("cycle of three", 3, TRIANGLE, True, [0.5, 0.5, 0.5]),
    ("cycle of three, one edge both ways", 3, [*TRIANGLE, (1, 0)], True, [0.5, 0.5, 1]),
    ("repeated edges and self-loops", 3, [*TRIANGLE, (0, 1), (1, 1)], True, [0.5, 0.5, 0.5]),
    ("triangle with a tail", 4, [*TRIANGLE, (2, 3)], False, [1, 1, 1 / 3, 0]),
    ("square with a diagonal", 4, [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)], False, [2 / 3, 1, 2 / 3, 1]),
]


def built(n: int, edges: list[tuple[int, int]], directed: bool) -> gp.Graph:
    return gp.Graph.from_edgelist(*arrays(edges), num_vertices=n, directed=directed)


@DEVICES
def test_known_answers(device: str) -> None:
    for name, n, edges, directed, expected in KNOWN:
        found = gp.local_clustering(built(n, edges, directed), device=device)
        assert found.to_numpy().tolist() == pytest.approx(expected, abs=1e-15), name
        assert found.coefficients.dtype == np.float64


@DEVICES
def test_agrees_with_networkx(device: str) -> None:
    @settings(max_examples=40 if device == "cpu" else 10)
    @given(edge_lists(max_vertices=20, max_edges=90))
    def check(graph: Any) -> None:
        n, edges = graph
        oracle = networkx.empty_graph(n)
        oracle.add_edges_from((u, v) for u, v in edges if u != v)
        found = gp.local_clustering(built(n, edges, directed=False), device=device)
        assert found.to_dict() == pytest.approx(networkx.clustering(oracle))
        assert found.average == pytest.approx(networkx.average_clustering(oracle))
        assert found.transitivity == pytest.approx(networkx.transitivity(oracle))
        assert found.to_numpy().tobytes() == gp.local_clustering(found.graph, device="cpu").to_numpy().tobytes()

    check()


@DEVICES
def test_follows_the_definition_of_ldbc_on_directed_graphs(device: str) -> None:
    @settings(max_examples=40 if device == "cpu" else 10)
    @given(edge_lists(max_vertices=16, max_edges=70), st.sampled_from([1, 3]))
    def check(graph: Any, threads: int) -> None:
        n, edges = graph
        proper = {(u, v) for u, v in edges if u != v}
        found = gp.local_clustering(built(n, edges, directed=True), device=device, **threads_of(device, threads))
        found_links, neighbors = to_host(found.links), to_host(found.neighbors)
        for v, value in enumerate(found.to_numpy().tolist()):
            around = {b for a, b in proper if a == v} | {a for a, b in proper if b == v}
            links = sum(a in around and b in around for a, b in proper)
            assert (found_links[v], neighbors[v]) == (links, len(around))
            assert value == pytest.approx(links / max(1, len(around) * (len(around) - 1)))

    check()


def test_threads_agree_and_the_checker_accepts() -> None:
    for directed in (False, True):
        edges = gp.kronecker(10, 8).to_pandas()
        graph = gp.Graph.from_edgelist(edges["source"], edges["target"], directed=directed)
        found = [gp.local_clustering(graph, device="cpu", threads=threads).to_numpy() for threads in (1, 2, 5)]
        assert found[0].tobytes() == found[1].tobytes() == found[2].tobytes()
        check_local_clustering(graph, found[0])


def test_ids_and_summary() -> None:
    graph = gp.Graph.from_edgelist(["a", "b", "c", "d"], ["b", "c", "a", "a"])
    clustering = gp.local_clustering(graph, device="cpu")
    assert clustering.to_dict() == {"a": pytest.approx(1 / 3), "b": 1.0, "c": 1.0, "d": 0.0}
    assert clustering.summary() == {"average": pytest.approx(7 / 12), "transitivity": pytest.approx(0.6)}
    assert clustering.describe() == "average clustering 0.583333, transitivity 0.600000"
    assert repr(clustering) == "<ClusteringCoefficients: average 0.583333, 4 vertices>"
    empty = gp.local_clustering(gp.Graph.from_edgelist([], [], num_vertices=0), device="cpu")
    assert empty.summary() == {"average": 0.0, "transitivity": 0.0}


@pytest.mark.parametrize(("values", "message"), [([1.0], "shape"), ([1.0, 1.0, 0.9], "vertex 2 has coefficient 0.9")])
def test_the_checker_rejects_wrong_coefficients(values: list[float], message: str) -> None:
    with pytest.raises(VerificationError, match=message):
        check_local_clustering(gp.Graph.from_edgelist([0, 0, 1], [1, 2, 2]), values)


@pytest.mark.parametrize("name", ["lcc/dir", "lcc/undir", "example/example-directed-", "example/example-undirected-"])
@DEVICES
def test_ldbc_graphalytics_expected_coefficients(data: Path, device: str, name: str) -> None:
    folder = data / "graphalytics"
    if name.startswith("lcc"):
        rows = [[int(x) for x in line.split()] for line in (folder / f"{name}-input").read_text().splitlines()]
        edges, output = [(row[0], v) for row in rows for v in row[1:]], folder / f"{name}-output"
        vertices = [row[0] for row in rows]
    else:
        lines = (folder / f"{name[:-1]}.e").read_text().splitlines()
        edges, output = [(int(line.split()[0]), int(line.split()[1])) for line in lines], folder / f"{name}LCC"
        vertices = [int(line) for line in (folder / f"{name[:-1]}.v").read_text().split()]
    src, dst = zip(*edges, strict=True)
    graph = gp.Graph.from_edgelist(src, dst, vertices=vertices, directed="undir" not in name)
    expected = {int(line.split()[0]): float(line.split()[1]) for line in output.read_text().splitlines()}
    found = gp.local_clustering(graph, device=device).to_dict()
    assert {v: found[v] for v in expected} == pytest.approx(expected, abs=1e-9)


def test_public_graphs(data: Path) -> None:
    votes = gp.local_clustering(gp.read_graph(data / "snap/wiki-Vote.txt", directed=False), device="cpu")
    assert votes.average == pytest.approx(0.1409, abs=5e-5)
    karate = gp.local_clustering(gp.read_graph(data / "mtx/karate.mtx"), device="cpu")
    assert karate.average == pytest.approx(networkx.average_clustering(networkx.karate_club_graph()))

"""Strongly connected components: NetworkX and SciPy, all steps on small graphs, the condensation, public graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
import scipy.sparse.csgraph
from hypothesis import given
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.algorithms import strongly_connected_components as module
from gpu_pregel.algorithms.checkers.strongly_connected_components import check_strongly_connected_components
from gpu_pregel.errors import ArgumentTypeError, VerificationError
from tests.chunks import shrink_chunks
from tests.graphs import arrays, edge_lists


def smallest_members(n: int, components: Any) -> list[int]:
    labels = [0] * n
    for component in components:
        for vertex in component:
            labels[vertex] = min(component)
    return labels


@pytest.mark.parametrize("serial_edges", [1 << 15, -1], ids=["serial", "parallel"])
@pytest.mark.parametrize(
    ("edges", "labels"),
    [
        ([], []),
        ([(0, 0)], [0]),
        ([(0, 1), (0, 1), (1, 1)], [0, 1]),
        ([(0, 1), (1, 0), (1, 2)], [0, 0, 2]),
        ([(3, 2), (2, 1), (1, 0)], [0, 1, 2, 3]),
        ([(3, 2), (2, 1), (1, 0), (0, 3)], [0, 0, 0, 0]),
        ([(0, 1), (1, 0), (1, 2), (2, 3), (3, 4), (4, 2)], [0, 0, 2, 2, 2]),
        # Two cycles besides that of the pivot, which has the largest degree: one before it, one after it.
        ([(0, 1), (1, 0), (1, 2), *[(2, v) for v in (3, 4, 5)], *[(v, 2) for v in (3, 4, 5)], (5, 6), (6, 7), (7, 6)],
         [0, 0, 2, 2, 2, 2, 6, 6]),
    ],
)  # fmt: skip
def test_known_answers(
    edges: list[tuple[int, int]], labels: list[int], serial_edges: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SERIAL_EDGES", serial_edges)
    graph = gp.Graph.from_edgelist(*arrays(edges), num_vertices=len(labels), directed=True)
    components = gp.strongly_connected_components(graph)
    assert components.labels.tolist() == labels
    assert components.labels.dtype == np.uint32
    assert components.count == len(set(labels))
    check_strongly_connected_components(graph, components)


@pytest.mark.parametrize("serial_edges", [1 << 15, -1], ids=["serial", "parallel"])
def test_agrees_with_networkx(serial_edges: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SERIAL_EDGES", serial_edges)
    monkeypatch.setattr(module, "_NARROW", 2)
    shrink_chunks(monkeypatch, 8)

    @given(graph=edge_lists(), threads=st.sampled_from([1, 3]))
    def check(graph: Any, threads: int) -> None:
        n, edges = graph
        oracle = networkx.DiGraph(edges)
        oracle.add_nodes_from(range(n))
        built = gp.Graph.from_edgelist(*arrays(edges), num_vertices=n, directed=True)
        components = gp.strongly_connected_components(built, device="cpu", threads=threads)
        assert components.to_numpy().tolist() == smallest_members(n, networkx.strongly_connected_components(oracle))
        check_strongly_connected_components(built, components)
        condensed = networkx.condensation(oracle, networkx.strongly_connected_components(oracle))
        smallest = {number: min(condensed.nodes[number]["members"]) for number in condensed}
        found = components.condensation()
        pairs = found.to_pandas()[["source", "target"]].to_numpy().tolist()
        assert sorted(map(tuple, pairs)) == sorted((smallest[u], smallest[v]) for u, v in condensed.edges)
        assert (found.num_vertices, found.is_directed) == (len(condensed), True)

    check()


def oriented(graph: gp.Graph, share: float) -> gp.Graph:
    """Keep each stored edge with a probability, in its direction."""
    rows = np.repeat(np.arange(graph.num_vertices), graph.out_degrees)
    kept = np.random.default_rng(1).random(len(rows)) < share
    return gp.Graph.from_edgelist(
        rows[kept], graph.indices[kept].astype(np.int64), num_vertices=graph.num_vertices, directed=True
    )


@pytest.mark.parametrize(
    "graph",
    [
        lambda: oriented(gp.kronecker(12, 8), 0.5),
        lambda: oriented(gp.uniform(11, 2), 0.4),
        lambda: oriented(gp.grid(50, 50), 0.6),
        lambda: gp.Graph.from_edgelist(np.arange(3000), (np.arange(3000) + 1) % 3000, directed=True),
        lambda: gp.Graph.from_edgelist(np.arange(3000), np.arange(3000) + 1, directed=True),
    ],
    ids=["kronecker", "uniform", "grid", "ring", "path"],
)
@pytest.mark.parametrize("narrow", [1, 1 << 10])
@pytest.mark.parametrize("share", [1, 20], ids=["push", "push and pull"])
def test_every_step_agrees_with_scipy(graph: Any, narrow: int, share: int, monkeypatch: pytest.MonkeyPatch) -> None:
    shrink_chunks(monkeypatch)
    for name, value in {"_SERIAL_EDGES": 0, "_NARROW": narrow, "_EDGE_SHARE": share, "_MANY": share}.items():
        monkeypatch.setattr(module, name, value)
    built = graph()
    count, numbers = scipy.sparse.csgraph.connected_components(built.to_scipy(), connection="strong")
    smallest = np.full(count, built.num_vertices)
    np.minimum.at(smallest, numbers, np.arange(built.num_vertices))
    for threads in (1, 2, 5):
        components = gp.strongly_connected_components(built, threads=threads)
        assert np.array_equal(components.labels, smallest[numbers])


def test_components_of_an_undirected_graph_are_the_connected_ones() -> None:
    graph = gp.grid(20, 30, holes=0.4)
    assert np.array_equal(gp.strongly_connected_components(graph).labels, gp.connected_components(graph).labels)


def test_ids_and_summary() -> None:
    graph = gp.Graph.from_edgelist(["a", "b", "b"], ["b", "a", "c"], directed=True)
    components = gp.strongly_connected_components(graph)
    assert components.to_dict() == {"a": "a", "b": "a", "c": "c"}
    assert components.summary() == {"components": 2, "largest": 2}
    assert components.sizes().tolist() == [2, 1]
    assert components.largest().ids is not None
    assert repr(components) == "<StrongComponents: 2 of 3 vertices>"
    assert components.condensation().neighbors("a").tolist() == ["c"]


def test_a_list_is_no_graph() -> None:
    with pytest.raises(ArgumentTypeError, match="graph must be a gpu_pregel Graph"):
        gp.strongly_connected_components([1])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 0, 0], "vertex 2 is not strongly connected to its label"),
        ([0, 1, 2], "the component of vertex 0 is part of a larger one"),
        ([0, 1, 3], "vertex 2 has a label that is not the smallest"),
        ([0, 0], "labels have shape"),
    ],
)
def test_the_checker_refuses_other_labels(labels: list[int], message: str) -> None:
    graph = gp.Graph.from_edgelist([0, 1, 1], [1, 0, 2], directed=True)
    with pytest.raises(VerificationError, match=message):
        check_strongly_connected_components(graph, labels)


def test_public_graph(data: Path) -> None:
    # SNAP states the size of the largest component: 1,300 vertices.
    graph = gp.read_graph(data / "snap" / "wiki-Vote.txt", directed=True)
    components = gp.strongly_connected_components(graph)
    assert int(components.sizes().max()) == 1300
    check_strongly_connected_components(graph, components)


def test_graph_of_ldbc_graphalytics(data: Path) -> None:
    lines = (data / "graphalytics" / "wcc" / "dir-input").read_text().splitlines()
    rows = [[int(x) for x in line.split()] for line in lines]
    oracle = networkx.DiGraph([(row[0], v) for row in rows for v in row[1:]])
    src, dst = zip(*oracle.edges, strict=True)
    found = gp.strongly_connected_components(gp.Graph.from_edgelist(src, dst, directed=True)).to_dict()
    assert found == {v: min(part) for part in networkx.strongly_connected_components(oracle) for v in part}

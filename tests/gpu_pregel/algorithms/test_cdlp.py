"""Tests of label propagation: LDBC's validation graphs, known answers, the definition, ids and devices."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, ArgumentTypeError
from tests.graphs import arrays, edge_lists


def expected_labels(
    vertices: list[Any], edges: list[tuple[Any, Any]], directed: bool, iterations: int
) -> dict[Any, Any]:
    """Propagate labels by the definition: an undirected self-loop counts once."""
    neighbors: dict[Any, list[Any]] = {v: [] for v in vertices}
    for u, v in edges:
        neighbors[u].append(v)
        if directed or u != v:
            neighbors[v].append(u)
    labels = {v: v for v in vertices}
    for _ in range(iterations):
        counts = {v: Counter(labels[w] for w in neighbors[v]) for v in vertices}
        labels = {
            v: min((-c, label) for label, c in counts[v].items())[1] if counts[v] else labels[v] for v in vertices
        }
    return labels


@given(graph=edge_lists(), directed=st.booleans(), iterations=st.integers(0, 6), threads=st.sampled_from([1, 3]))
def test_labels_follow_the_definition(graph: Any, directed: bool, iterations: int, threads: int) -> None:
    n, edges = graph
    built = gp.Graph.from_edgelist(*arrays(edges), num_vertices=n, directed=directed)
    found = gp.cdlp(built, iterations=iterations, device="cpu", threads=threads)
    assert found.to_dict() == expected_labels(list(range(n)), edges, directed, iterations)


@settings(max_examples=15)
@given(graph=edge_lists(12, 30), directed=st.booleans())
def test_operators_follow_the_definition(graph: Any, directed: bool) -> None:
    n, edges = graph
    built = gp.Graph.from_edgelist(*arrays(edges), num_vertices=n, directed=directed)
    assert gp.cdlp(built, iterations=3, device="python").to_dict() == expected_labels(
        list(range(n)), edges, directed, 3
    )


def read_labels(path: Path) -> dict[int, int]:
    pairs = map(str.split, path.read_text().splitlines())
    return {int(vertex): int(label) for vertex, label in pairs}


@pytest.mark.parametrize("direction", ["dir", "undir"])
def test_ldbc_validation_graphs(data: Path, direction: str) -> None:
    folder = data / "graphalytics" / "cdlp"
    rows = [[int(x) for x in line.split()] for line in (folder / f"{direction}-input").read_text().splitlines()]
    src, dst = zip(*[(row[0], v) for row in rows for v in row[1:]], strict=True)
    graph = gp.Graph.from_edgelist(src, dst, directed=direction == "dir")
    expected = read_labels(folder / f"{direction}-output")
    # The files of undirected graphs list every edge twice; the expected labels are those after five iterations.
    graph = graph if direction == "dir" else graph.simplify()
    assert gp.cdlp(graph, iterations=5).to_dict() == expected


@pytest.mark.parametrize("direction", ["directed", "undirected"])
def test_ldbc_example_graphs(data: Path, direction: str) -> None:
    folder = data / "graphalytics" / "example"
    graph = gp.read_graph(folder / f"example-{direction}.e", directed=direction == "directed")
    assert gp.cdlp(graph, iterations=2).to_dict() == read_labels(folder / f"example-{direction}-CDLP")


def test_the_smallest_id_wins_whatever_its_number() -> None:
    graph = networkx.Graph([(30, 10), (10, 20), (20, 30), (5, 30)])
    built = gp.Graph.from_networkx(graph)
    for device in ("cpu", "python"):
        found = gp.cdlp(built, iterations=2, device=device)
        assert found.to_dict() == expected_labels([30, 10, 20, 5], list(graph.edges), False, 2)
    assert found[10] == 5
    assert found.iterations == 2


def test_ids_that_are_no_integers_are_compared_by_number() -> None:
    graph = gp.Graph.from_edgelist(["z", "m", "a"], ["m", "a", "z"])
    found = gp.cdlp(graph)
    assert found.to_dict() == {"z": "z", "m": "z", "a": "z"}
    assert (found.count, found.sizes()) == (1, {"z": 3})
    assert found.to_pandas().to_dict("list") == {"vertex": ["z", "m", "a"], "label": ["z", "z", "z"]}


def test_labels_on_two_vertices_oscillate() -> None:
    graph = gp.Graph.from_edgelist([0], [1])
    assert [gp.cdlp(graph, iterations=i).to_numpy().tolist() for i in range(4)] == [[0, 1], [1, 0], [0, 1], [1, 0]]


def test_no_work_after_the_last_change() -> None:
    clique = gp.Graph.from_edgelist(*np.triu_indices(9, 1))
    found = gp.cdlp(clique, iterations=1000)
    assert found.labels.tolist() == [0] * 9
    assert len(found.trace) < 10


def test_equal_labels_for_any_number_of_threads() -> None:
    graph = gp.kronecker(14, 8)
    first = gp.cdlp(graph, threads=1).labels
    for threads in (2, 5):
        assert np.array_equal(gp.cdlp(graph, threads=threads).labels, first)


def test_invalid_iterations_are_rejected() -> None:
    with pytest.raises(ArgumentError, match="iterations must be at least 0, not -1"):
        gp.cdlp(gp.grid(2), iterations=-1)
    with pytest.raises(ArgumentTypeError, match=r"iterations must be a whole number, not 1\.5"):
        gp.cdlp(gp.grid(2), iterations=1.5)  # type: ignore[arg-type]

"""Tests of METIS graph files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.errors import FormatError

WriteFile = Callable[[str, str | bytes], Path]

# A graph like those in figures 2 and 3 of the METIS manual: a path 1-2-3 with a pendant vertex 4 at 2.
STAR = [(0, 1), (1, 2), (1, 3)]
HEAVY = [(0, 1, 5), (1, 2, 6), (1, 3, 7)]
READABLE: list[tuple[str, str, list[Any]]] = [
    ("plain", "4 3\n2\n1 3 4\n2\n2\n", STAR),
    ("no newline at the end", "4 3\n2\n1 3 4\n2\n2", STAR),
    ("comments and blanks", "% c\n 4  3 \n2\n% d\n  1\t3 4 \n2\n %\n2\n\n\n", STAR),
    ("CRLF", "4 3\r\n2\r\n1 3 4\r\n2\r\n2\r\n", STAR),
    ("edge weights", "4 3 1\n2 5\n1 5 3 6 4 7\n2 6\n2 7\n", HEAVY),
    ("edge weights, three digits", "4 3 001\n2 5\n1 5 3 6 4 7\n2 6\n2 7\n", HEAVY),
    ("vertex weights", "4 3 10\n9 2\n9 1 3 4\n9 2\n9 2\n", STAR),
    ("two vertex weights", "4 3 010 2\n9 0 2\n9 0 1 3 4\n9 0 2\n9 0 2\n", STAR),
    ("vertex sizes", "4 3 100\n1 2\n1 1 3 4\n1 2\n1 2\n", STAR),
    ("all", "4 3 111 2\n1 8 8 2 5\n1 8 8 1 5 3 6 4 7\n1 8 8 2 6\n1 8 8 2 7\n", HEAVY),
    ("isolated vertices", "5 1\n\n3\n2\n\n\n", [(1, 2)]),
    ("no edges", "2 0\n\n\n", []),
    ("no vertices", "0 0\n", []),
    ("twice the same edge", "2 2\n2 2\n1 1\n", [(0, 1), (0, 1)]),
]


@pytest.mark.parametrize("blocks", ["one block", "small blocks"])
@pytest.mark.parametrize("content, expected", [row[1:] for row in READABLE], ids=[row[0] for row in READABLE])
def test_reads(
    content: str, expected: Any, blocks: str, write_file: WriteFile, edges: Any, request: pytest.FixtureRequest
) -> None:
    if blocks == "small blocks":
        request.getfixturevalue("small_blocks")
    graph = gp.read_graph(write_file("a.graph", content))
    assert edges(graph) == expected
    assert graph.num_vertices == int(content.removeprefix("% c\n").split()[0])
    assert not graph.is_directed
    assert graph.weights is None or graph.weights.dtype == np.int64


REJECTED: list[tuple[str, str, int | None, str]] = [
    ("empty", "", None, "the header must contain two to four numbers"),
    ("one number", "% c\n4\n", 2, "the header must contain two to four numbers"),
    ("thousands of digits", f"{'9' * 5000} 3\n", 1, "the header must contain two to four numbers"),
    ("words", "four 3\n", 1, "the header must contain two to four numbers"),
    ("bad fmt", "2 1 2\n2\n1\n", 1, "the fmt 002 must be three digits"),
    ("long fmt", "2 1 0001\n2\n1\n", 1, "the fmt 0001 must be three digits"),
    ("too many vertices", "4294967295 0\n", 1, "exceed the limit"),
    ("too few lines", "% c\n4 3\n2\n1 3 4\n2\n", 2, "states 4 vertices, but 3 lines follow"),
    ("too many lines", "2 1\n2\n1\n% c\n\n1\n", 6, "more lines than the 2 vertices"),
    ("a line more at the end", "2 1\n2\n1\n1", 4, "more lines than the 2 vertices"),
    ("too few edges", "4 4\n2\n1 3 4\n2\n2\n", 1, "states 4 edges, hence 8 neighbours, but there are 6"),
    ("too many edges", "4 2\n2\n1 3 4\n2\n2\n", 1, "states 2 edges, hence 4 neighbours, but there are 6"),
    ("vertex 0", "% c\n2 1\n2\n% c\n0\n", 5, "the neighbour 0 is not a vertex"),
    ("vertex beyond", "2 1\n2\n3\n", 3, "the neighbour 3 is not a vertex: vertices are numbered from 1 to 2"),
    ("negative", "2 1\n2\n-1\n", 3, "the neighbour -1 is not a vertex"),
    ("self-loop", "2 1\n\n2 2\n", 3, "vertex 2 is its own neighbour"),
    ("not symmetric", "3 1\n2\n3\n\n", None, "not symmetric"),
    ("no number", "2 1\n2\nx\n", 3, "'x' is not a 64-bit integer"),
    ("fraction", "2 1 1\n2 0.5\n1 0.5\n", 2, "'0.5' is not a 64-bit integer"),
    ("hexadecimal", "2 1\n0x2\n1\n", 2, "'0x2' is not a 64-bit integer"),
    ("no vertex weight", "2 1 10\n1 2\n\n", 3, "requires 1 sizes and weights at the start of each line"),
    ("weight missing", "2 1 1\n2 5\n1\n", 3, "requires a weight after each neighbour"),
    ("weights differ", "2 1 1\n2 5\n1 6\n", None, "not symmetric"),
]


@pytest.mark.parametrize("blocks", ["one block", "small blocks"])
@pytest.mark.parametrize("content, line, problem", [row[1:] for row in REJECTED], ids=[row[0] for row in REJECTED])
def test_rejects(
    content: str,
    line: int | None,
    problem: str,
    blocks: str,
    write_file: WriteFile,
    assert_rejected: Any,
    request: pytest.FixtureRequest,
) -> None:
    if blocks == "small blocks":
        request.getfixturevalue("small_blocks")
    assert_rejected(write_file("a.graph", content), line, problem)


def test_options(write_file: WriteFile, edges: Any) -> None:
    path = write_file("a.graph", "2 2 1\n2 5 2 4\n1 5 1 4\n")
    assert edges(gp.read_graph(path, combine="min", weight_dtype="float32")) == [(0, 1, 4.0)]
    assert edges(gp.read_graph(path, weight=None, directed=True)) == [(0, 1), (0, 1), (1, 0), (1, 0)]


def test_directed_keeps_both_directions(write_file: WriteFile, edges: Any) -> None:
    assert edges(gp.read_graph(write_file("a.graph", "3 1\n2\n3\n\n"), directed=True)) == [(0, 1), (1, 2)]


def test_wing(data: Path) -> None:
    graph = gp.read_graph(data / "mesh" / "wing.graph")
    assert (graph.num_vertices, graph.num_stored_edges) == (62_032, 243_088)
    assert gp.connected_components(graph).to_numpy().max() == 0


@pytest.mark.parametrize("weighted", [False, True])
@settings(max_examples=25)
@given(
    pairs=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)).filter(lambda pair: pair[0] != pair[1])),
    seed=st.integers(0, 99),
)
def test_round_trip(
    weighted: bool, pairs: list[Any], seed: int, tmp_path_factory: pytest.TempPathFactory, equal: Any
) -> None:
    weights = np.random.default_rng(seed).integers(1, 9, len(pairs)) if weighted else None
    graph = gp.Graph.from_edgelist([u for u, _ in pairs], [v for _, v in pairs], weights, num_vertices=13)
    path = tmp_path_factory.getbasetemp() / "round.graph"
    graph.save(path)
    assert equal(gp.read_graph(path), graph)


def test_written_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, equal: Any) -> None:
    monkeypatch.setattr("gpu_pregel.io.metis._ENTRIES_PER_WRITE", 10)
    graph = gp.uniform(6, edge_factor=4, seed=1)
    graph.save(tmp_path / "a.graph.gz")
    assert equal(gp.read_graph(tmp_path / "a.graph.gz"), graph)


def test_written_text(tmp_path: Path) -> None:
    gp.Graph.from_edgelist([0, 1, 1], [1, 2, 3], [5, 6, 7]).save(tmp_path / "a.graph")
    assert (tmp_path / "a.graph").read_text() == "4 3 001\n2 5\n1 5 3 6 4 7\n2 6\n2 7\n"


def test_graphs_that_cannot_be_written(tmp_path: Path) -> None:
    for graph, problem in (
        (gp.Graph.from_edgelist([0], [1], directed=True), "directed=False"),
        (gp.Graph.from_edgelist([0, 1], [1, 1]), "self_loops='drop'"),
        (gp.Graph.from_edgelist([0], [1], [0.5]), "positive integer weights"),
        (gp.Graph.from_edgelist([0], [1], [0]), "positive integer weights"),
    ):
        with pytest.raises(FormatError, match=problem):
            graph.save(tmp_path / "a.graph")
    assert list(tmp_path.iterdir()) == []

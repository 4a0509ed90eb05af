"""Tests of the serialized graphs of GAPBS."""

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


def serialized(directed: int, m: int, n: int, *parts: tuple[list[int], list[int]]) -> bytes:
    """A file with a header and, for each part, offsets and neighbours."""
    content = bytes([directed]) + np.array([m, n], "<i8").tobytes()
    for offsets, neighbours in parts:
        content += np.array(offsets, "<i8").tobytes() + np.array(neighbours, "<i4").tobytes()
    return content


PATH = serialized(0, 4, 3, ([0, 1, 3, 4], [1, 0, 2, 1]))
ARCS = serialized(1, 2, 3, ([0, 1, 2, 2], [2, 2]), ([0, 0, 0, 2], [0, 1]))
HEAVY = serialized(0, 2, 2, ([0, 1, 2], [1, -7, 0, -7]))


def test_reads(write_file: WriteFile, edges: Any) -> None:
    assert edges(gp.read_graph(write_file("a.sg", PATH))) == [(0, 1), (1, 2)]
    assert edges(gp.read_graph(write_file("a.sg", ARCS))) == [(0, 2), (1, 2)]
    graph = gp.read_graph(write_file("a.wsg", HEAVY))
    assert edges(graph) == [(0, 1, -7)]
    assert graph.weights is not None
    assert graph.weights.dtype == np.int32
    assert gp.read_graph(write_file("a.wsg", HEAVY), weight=None).weights is None
    assert gp.read_graph(write_file("a.dat", HEAVY), "gapbs").weights is not None
    assert gp.read_graph(write_file("a.sg", serialized(0, 0, 0, ([0], [])))).num_vertices == 0


def test_direction_can_be_chosen(write_file: WriteFile, edges: Any) -> None:
    undirected = gp.read_graph(write_file("a.sg", ARCS), directed=False)
    assert not undirected.is_directed
    assert undirected.num_stored_edges == 4
    assert edges(undirected) == [(0, 2), (1, 2)]
    both = gp.read_graph(write_file("a.sg", PATH), directed=True)
    assert both.is_directed
    assert edges(both) == [(0, 1), (1, 0), (1, 2), (2, 1)]


def test_duplicates_can_be_dropped(write_file: WriteFile, edges: Any) -> None:
    path = write_file("a.sg", serialized(0, 5, 2, ([0, 3, 5], [0, 1, 1, 0, 0])))
    assert edges(gp.read_graph(path)) == [(0, 0), (0, 1), (0, 1)]
    assert edges(gp.read_graph(path, combine="min", self_loops="drop")) == [(0, 1)]


def test_unsorted_rows_are_sorted(write_file: WriteFile) -> None:
    graph = gp.read_graph(write_file("a.sg", serialized(0, 4, 3, ([0, 2, 3, 4], [2, 1, 0, 0]))))
    assert graph.indices.tolist() == [1, 2, 0, 0]


REJECTED: list[tuple[str, str, bytes, str, dict[str, Any]]] = [
    ("empty", "a.sg", b"", "has 0 bytes, but the header alone has 17", {}),
    ("header only", "a.sg", PATH[:17], "has 17 bytes", {}),
    (
        "truncated",
        "a.sg",
        PATH[:-1],
        "has 64 bytes, but an undirected graph of 3 vertices and 4 stored edges takes 65",
        {},
    ),
    ("too long", "a.sg", PATH + b"1", "the file is too long", {}),
    ("CSC missing", "a.sg", ARCS[:57], "has 57 bytes, but a directed graph of 3 vertices", {}),
    ("weights in .sg", "a.sg", HEAVY, "it has the wrong suffix", {}),
    ("no weights in .wsg", "a.wsg", PATH, "it has the wrong suffix", {}),
    ("negative edges", "a.sg", serialized(0, -1, 3, ([0] * 4, [])), "the header is damaged", {}),
    ("negative vertices", "a.sg", serialized(0, 0, -1), "the header is damaged", {}),
    ("huge", "a.sg", serialized(0, 2**60, 3, ([0] * 4, [])), "the file is truncated", {}),
    ("no direction", "a.sg", bytes([2]) + PATH[1:], "the header is damaged: directed 2", {}),
    ("decreasing offsets", "a.sg", serialized(0, 4, 3, ([0, 3, 1, 4], [1, 0, 2, 1])), "indptr decreases", {}),
    ("offsets beyond", "a.sg", serialized(0, 4, 3, ([0, 1, 9, 4], [1, 0, 2, 1])), "indptr decreases", {}),
    ("last offset", "a.sg", serialized(0, 4, 3, ([0, 1, 3, 3], [1, 0, 2, 1])), "indptr must begin with 0 and end", {}),
    ("neighbour beyond", "a.sg", serialized(0, 4, 3, ([0, 1, 3, 4], [1, 0, 3, 1])), "has an edge to 3", {}),
    ("negative neighbour", "a.sg", serialized(0, 4, 3, ([0, 1, 3, 4], [1, 0, -1, 1])), "has an edge to", {}),
    ("not symmetric", "a.sg", serialized(0, 1, 2, ([0, 1, 1], [1])), "not symmetric", {}),
]


@pytest.mark.parametrize(
    "name, content, problem, options", [row[1:] for row in REJECTED], ids=[row[0] for row in REJECTED]
)
def test_rejects(
    name: str, content: bytes, problem: str, options: Any, write_file: WriteFile, assert_rejected: Any
) -> None:
    assert_rejected(write_file(name, content), None, problem, **options)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", ["round.sg", "round.wsg", "round.wsg.gz"])
@settings(max_examples=25)
@given(pairs=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=30))
def test_round_trip(
    directed: bool, name: str, pairs: Any, tmp_path_factory: pytest.TempPathFactory, equal: Any
) -> None:
    weights = np.arange(len(pairs), dtype=np.int32) if "w" in name else None
    src, dst = [u for u, _ in pairs], [v for _, v in pairs]
    graph = gp.Graph.from_edgelist(src, dst, weights, num_vertices=10, directed=directed)
    path = tmp_path_factory.getbasetemp() / name
    graph.save(path)
    assert equal(gp.read_graph(path), graph)


def test_written_bytes(tmp_path: Path) -> None:
    gp.Graph.from_edgelist([0, 1], [1, 2]).save(tmp_path / "a.sg")
    assert (tmp_path / "a.sg").read_bytes() == PATH
    gp.Graph.from_edgelist([0, 1], [2, 2], directed=True).save(tmp_path / "a.sg")
    assert (tmp_path / "a.sg").read_bytes() == ARCS
    gp.Graph.from_edgelist([0], [1], np.array([-7], np.int32)).save(tmp_path / "a.wsg")
    assert (tmp_path / "a.wsg").read_bytes() == HEAVY


def test_graphs_that_cannot_be_written(tmp_path: Path) -> None:
    for graph, name, problem in (
        (gp.Graph.from_edgelist([0], [1]), "a.wsg", "use the suffix .sg"),
        (gp.Graph.from_edgelist([0], [1], np.array([1], np.int32)), "a.sg", "save as .wsg or .pregel"),
        (gp.Graph.from_edgelist([0], [1], [1]), "a.sg", "save as .wel or .pregel"),
        (gp.Graph.from_edgelist([0], [1], [0.5]), "a.wsg", "int32 weights, not float64"),
    ):
        with pytest.raises(FormatError, match=problem):
            graph.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []

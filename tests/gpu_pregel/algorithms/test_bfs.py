"""Tests of breadth-first search: known answers, NetworkX, LDBC's graphs, directions, limits and bad arguments."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.algorithms.checkers.bfs import check_bfs
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, UnknownVertexError, VerificationError
from tests.graphs import arrays, edge_lists

MODULE = "gpu_pregel.algorithms.bfs"


@pytest.mark.parametrize("device", ["cpu", "python"])
@pytest.mark.parametrize(
    ("edges", "directed", "source", "hops", "parents"),
    [
        ([], False, 0, [0, -1, -1], [0, -1, -1]),
        ([(0, 0)], False, 0, [0, -1, -1], [0, -1, -1]),
        ([(0, 1), (1, 2)], False, 2, [2, 1, 0], [1, 2, 2]),
        ([(0, 1), (1, 2)], True, 2, [-1, -1, 0], [-1, -1, 2]),
        ([(0, 1), (0, 1), (1, 1), (1, 2)], True, 0, [0, 1, 2], [0, 0, 1]),
        ([(0, 1), (0, 2), (2, 3), (1, 3)], False, 0, [0, 1, 1, 2], [0, 0, 0, 1]),
        ([(0, 4), (0, 2), (4, 1), (2, 1), (1, 3)], True, 0, [0, 2, 1, 3, 1], [0, 2, 0, 1, 0]),
        ([(0, 1), (1, 2), (2, 3), (3, 4)], False, [4, 0], [0, 1, 2, 1, 0], [0, 0, 1, 4, 4]),
    ],
)
def test_known_answers(
    edges: list[tuple[int, int]], directed: bool, source: Any, hops: list[int], parents: list[int], device: str
) -> None:
    graph = gp.Graph.from_edgelist(*arrays(edges), num_vertices=len(hops), directed=directed)
    found = gp.bfs(graph, source, device=device)
    assert (found.hops.tolist(), found.parents.tolist()) == (hops, parents)
    assert (found.hops.dtype, found.parents.dtype) == (np.int32, np.int32)


@given(edge_lists(), st.booleans(), st.data())
@settings(max_examples=25)
def test_hops_are_those_of_networkx(drawn: tuple[int, list[tuple[int, int]]], directed: bool, data: Any) -> None:
    n, edges = drawn
    source = data.draw(st.integers(0, n - 1))
    graph = gp.Graph.from_edgelist(*arrays(edges), num_vertices=n, directed=directed)
    found = gp.bfs(graph, source, device="cpu")
    expected = networkx.single_source_shortest_path_length(graph.to_networkx(), source)
    assert found.to_dict() == {v: expected.get(v) for v in range(n)}
    check_bfs(graph, found)


def mesh_with_hubs() -> gp.Graph:
    """A graph whose levels are long, then many at once: a path into a Kronecker graph, and another path out of it."""
    kronecker = gp.kronecker(11, seed=3)
    src, dst, n = np.repeat(np.arange(kronecker.num_vertices), kronecker.out_degrees), kronecker.indices, 2048
    path = np.arange(n, n + 200)
    hubs = np.argsort(kronecker.out_degrees)
    ends = np.concatenate([[hubs[-1]], path, [hubs[n // 2]], path + 200])
    return gp.Graph.from_edgelist(
        np.concatenate([src, ends[:-1]]), np.concatenate([dst, ends[1:]]), num_vertices=n + 400, directed=True
    )


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("serial_edges", [0, 1 << 8])
def test_pushes_and_pulls_find_the_same_parents(
    directed: bool, serial_edges: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = mesh_with_hubs() if directed else mesh_with_hubs().to_undirected()
    source = 2048 + 190
    expected = networkx.single_source_shortest_path_length(graph.to_networkx(), source)
    monkeypatch.setattr(f"{MODULE}._SERIAL_EDGES", serial_edges)
    found = []
    for alpha, threads in ((0, 2), (15, 1), (15, 5), (1 << 40, 2)):
        monkeypatch.setattr(f"{MODULE}._ALPHA", alpha)
        result = gp.bfs(graph, source, device="cpu", threads=threads)
        phases = {row["phase"] for row in result.trace}
        assert ("pull" in phases) == (alpha > 0)
        assert "push" in phases or (alpha > 0 and serial_edges > 0)
        check_bfs(graph, result)
        found.append(result)
    assert found[0].to_dict() == {v: expected.get(v) for v in range(graph.num_vertices)}
    assert found[0].hops.max() > 200
    assert all(np.array_equal(result.parents, found[0].parents) for result in found)


@pytest.mark.parametrize("space", [1 << 20, 1 << 9])
def test_threads_that_search_parts_of_a_grid(space: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{MODULE}._SLOT_VERTICES", 8)
    monkeypatch.setattr(f"{MODULE}._SLOT_EDGES", 1 << 12)
    monkeypatch.setattr(f"{MODULE}._SLOT_SPACE", space)
    graph = gp.grid(70, 150, holes=0.1, seed=2)
    source = int(graph.vertices(range(30, 40))[graph.out_degrees[30:40].argmax()])
    expected = gp.bfs(graph, source, device="cpu", threads=1)
    check_bfs(graph, expected)
    for threads, max_hops in ((2, None), (3, None), (5, None), (2, 120)):
        found = gp.bfs(graph, source, max_hops=max_hops, device="cpu", threads=threads)
        phases = {row["phase"] for row in found.trace}
        assert "search slots" in phases
        assert ("truncate" in phases) == (space == 1 << 9)
        within = expected.hops <= (max_hops or 1 << 20)
        assert np.array_equal(found.hops, np.where(within, expected.hops, -1))
        assert np.array_equal(found.parents, np.where(within, expected.parents, -1))


def test_a_limit_of_hops() -> None:
    graph = gp.grid(20, holes=0)
    full = gp.bfs(graph, 0, device="cpu")
    for limit in (0, 1, 7):
        found = gp.bfs(graph, 0, max_hops=limit, device="cpu")
        assert np.array_equal(found.hops, np.where(full.hops <= limit, full.hops, -1))
        assert np.array_equal(found.parents, np.where(full.hops <= limit, full.parents, -1))
        check_bfs(graph, found)


def test_a_limit_within_pulls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{MODULE}._SERIAL_EDGES", 0)
    monkeypatch.setattr(f"{MODULE}._ALPHA", 1 << 40)
    graph = gp.kronecker(9)
    source = int(graph.out_degrees.argmax())
    found = gp.bfs(graph, source, max_hops=1, device="cpu")
    assert np.flatnonzero(found.hops == 1).tolist() == graph.neighbors(source).tolist()
    assert found.hops.max() == 1


def test_ids_paths_and_tables() -> None:
    graph = gp.Graph.from_edgelist(["ann", "bob", "cid", "x"], ["bob", "cid", "dan", "y"])
    found = gp.bfs(graph, "bob", device="cpu")
    assert found.path("dan") == ["bob", "cid", "dan"]
    assert found.path("bob") == ["bob"]
    assert found.sources.tolist() == [1]
    assert found.hops.tolist() == [1, 0, 1, 2, -1, -1]
    assert found.to_arrow()["hops"].to_pylist() == list(found.to_dict().values()) == [1, 0, 1, 2, None, None]
    column = found.to_pandas()["hops"]
    assert (str(column.dtype), column.isna().tolist()) == ("Int32", [False] * 4 + [True] * 2)
    assert found._columns()["parent"].tolist() == ["bob", "bob", "bob", "cid", None, None]
    assert found.to_arrow().column("parent").to_pylist() == ["bob", "bob", "bob", "cid", None, None]
    assert found.summary() == {"reached": 4, "max_hops": 2}
    assert repr(found) == "<Hops: 4 of 6 vertices reached in up to 2 hops>"
    with pytest.raises(ArgumentError, match="there is no path to 'x': the search did not reach it"):
        found.path("x")
    with pytest.raises(UnknownVertexError, match="eve"):
        found.path("eve")
    connected = gp.bfs(gp.Graph.from_edgelist([10, 20], [20, 30]), [30, 10, 30], device="cpu")
    assert (connected.sources.tolist(), connected._columns()["parent"].tolist()) == ([0, 2], [10, 10, 30])


def test_bad_arguments() -> None:
    graph = gp.Graph.from_edgelist([1], [2])
    with pytest.raises(ArgumentError, match=r"source: .*\b3\b"):
        gp.bfs(graph, 3)
    with pytest.raises(ArgumentError, match=r"source: .*\b3\b"):
        gp.bfs(graph, [1, 3])
    with pytest.raises(ArgumentError, match="source is empty"):
        gp.bfs(graph, [])
    with pytest.raises(ArgumentError, match="max_hops must be from 0 to 2,147,483,647, not -1"):
        gp.bfs(graph, 1, max_hops=-1)
    with pytest.raises(ArgumentTypeError, match="max_hops must be a whole number"):
        gp.bfs(graph, 1, max_hops=1.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("direction", ["dir", "undir"])
def test_ldbc_graphalytics_expected_hops(data: Path, direction: str) -> None:
    folder = data / "graphalytics" / "bfs"
    rows = [[int(x) for x in line.split()] for line in (folder / f"{direction}-input").read_text().splitlines()]
    src, dst = zip(*[(row[0], v) for row in rows for v in row[1:]], strict=True)
    graph = gp.Graph.from_edgelist(src, dst, vertices=[row[0] for row in rows], directed=direction == "dir")
    pairs = (line.split() for line in (folder / f"{direction}-output").read_text().splitlines())
    expected = {int(v): int(hops) for v, hops in pairs}
    unreached = 2**63 - 1
    assert gp.bfs(graph, 1, device="cpu").to_dict() == {v: None if h == unreached else h for v, h in expected.items()}


@pytest.mark.parametrize(
    ("field", "values", "message"),
    [
        ("hops", [0, 1, 1, 2], "vertex 2 has parent 1"),
        ("hops", [0, 1, 3, 4], "leads from 1 to 3 hops"),
        ("hops", [0, 1, -1, -1], "leads from 1 to -1 hops"),
        ("hops", [0, 1, 2, 0], "only a source has 0"),
        ("hops", [0, 1, 2, -2], "outside of the limits"),
        ("parents", [0, 0, 0, 2], "vertex 2 has parent 0"),
        ("parents", [0, 0, 1, -1], "vertex 3 has parent -1"),
        ("parents", [0, 0, 1], "parents have shape"),
    ],
)
def test_the_checker_refuses(field: str, values: list[int], message: str) -> None:
    graph = gp.Graph.from_edgelist([0, 1, 2], [1, 2, 3])
    damage: dict[str, Any] = {field: np.array(values)}
    with pytest.raises(VerificationError, match=message):
        check_bfs(graph, replace(gp.bfs(graph, 0, device="cpu"), **damage))

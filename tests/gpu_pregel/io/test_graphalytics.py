"""Tests of LDBC Graphalytics graphs."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.errors import FormatError, MissingFileError

WriteFile = Callable[[str, str | bytes], Path]


@pytest.mark.parametrize("kind", ["directed", "undirected"])
@pytest.mark.parametrize("suffix", [".v", ".e"])
def test_public_example(kind: str, suffix: str, data: Path) -> None:
    stem = data / "graphalytics" / "example" / f"example-{kind}"
    graph = gp.read_graph(f"{stem}{suffix}", directed=kind == "directed")
    lines = [line.split() for line in Path(f"{stem}.e").read_text().splitlines()]
    rows = {int(u): {} for u in Path(f"{stem}.v").read_text().split()}  # type: dict[int, dict[int, float]]
    for u, v, weight in lines:
        rows[int(u)][int(v)] = float(weight)
        if kind == "undirected":
            rows[int(v)][int(u)] = float(weight)
    assert graph.ids is not None
    assert graph.ids.tolist() == sorted(rows)
    for number, u in enumerate(graph.ids.tolist()):
        part = slice(graph.indptr[number], graph.indptr[number + 1])
        found = dict(zip(graph.ids[graph.indices[part]].tolist(), graph.weights[part].tolist(), strict=True))  # type: ignore[index]
        assert found == rows[u]


def test_ids_and_isolated_vertices(write_file: WriteFile, edges: Any) -> None:
    write_file("g.v", "9223372036854775807\n-5\n\n70\n12\n")
    graph = gp.read_graph(write_file("g.e", "70 9223372036854775807\n-5 70\n"))
    assert graph.ids is not None
    assert graph.ids.tolist() == [-5, 12, 70, 9223372036854775807]
    assert edges(graph) == [(-5, 70), (70, 9223372036854775807)]


def test_ids_that_are_vertex_numbers(write_file: WriteFile) -> None:
    write_file("g.v", "2\n0\n1\n")
    graph = gp.read_graph(write_file("g.e", "0 2\n"))
    assert graph.ids is None
    assert graph.num_vertices == 3


@pytest.mark.parametrize(
    "text, options, directed",
    [
        ("graph.g.directed = true\n", {}, True),
        ("# LDBC\ngraph.g.meta.vertices = 2\ngraph.g.directed=false\n", {}, False),
        ("graph.other.directed = TRUE\r\n", {}, True),
        ("graph.g.directed = true\n", {"directed": False}, False),
        ("nothing\n", {}, False),
        (None, {}, False),
        (None, {"directed": True}, True),
    ],
)
def test_direction(text: str | None, options: Any, directed: bool, write_file: WriteFile) -> None:
    write_file("g.v", "0\n1\n")
    if text is not None:
        write_file("g.properties", text)
    assert gp.read_graph(write_file("g.e", "0 1\n"), **options).is_directed == directed


REJECTED: list[tuple[str, str, str, str, int | None, str, dict[str, Any]]] = [
    ("unknown id", "1\n2\n", "1 2\n\n2 3\n", "e", 3, "the id 3 is not in the vertex file", {}),
    ("unknown id, far", "1\n900000000\n", "1 900000000\n5 1\n", "e", 2, "the id 5 is not in the vertex file", {}),
    ("unknown negative id", "1\n2\n", "-1 2\n", "e", 1, "the id -1 is not in the vertex file", {}),
    ("unknown id after all numbers", "0\n1\n", "0 1\n1 2\n", "e", 2, "the id 2 is not in the vertex file", {}),
    ("unknown negative number", "0\n1\n", "0 1\n-1 1\n", "e", 2, "the id -1 is not in the vertex file", {}),
    ("no vertices", "", "1 2\n", "e", 1, "the id 1 is not in the vertex file", {}),
    ("unknown id at the end", "1\n2\n", "1 2\n1 3", "e", 2, "the id 3 is not in the vertex file", {}),
    ("duplicate id at the end", "3\n1\n\n3", "", "v", 4, "the id 3 already occurs on an earlier line", {}),
    ("duplicate id", "3\n1\n\n3\n", "", "v", 4, "the id 3 already occurs on an earlier line", {}),
    ("two ids on a line", "1\n2 3\n", "", "v", 2, "2 columns ('2 3'), but a vertex has 1", {}),
    ("no id", "1\nx\n", "", "v", 2, "the id 'x' is not an integer", {}),
    ("one end", "1\n2\n", "1 2\n1\n", "e", 2, "1 column ('1')", {}),
    ("weight missing", "1\n2\n", "1 2 5\n1 2\n", "e", 2, "but the first edge (line 1) has 3", {}),
    ("no number", "1\n2\n", "1 2 x\n", "e", 1, "the weight 'x' is not a number", {}),
]


@pytest.mark.parametrize(
    "vertices, lines, culprit, line, problem, options", [row[1:] for row in REJECTED], ids=[row[0] for row in REJECTED]
)
def test_rejects(
    vertices: str,
    lines: str,
    culprit: str,
    line: int | None,
    problem: str,
    options: Any,
    write_file: WriteFile,
    assert_rejected: Any,
) -> None:
    paths = {"v": write_file("g.v", vertices), "e": write_file("g.e", lines)}
    assert_rejected(paths[culprit], line, problem, **options)


def test_bad_properties(write_file: WriteFile) -> None:
    write_file("g.v", "1\n")
    path = write_file("g.properties", "# c\ngraph.g.directed = perhaps\n")
    with pytest.raises(ValueError, match=re.escape(f"{path}, line 2: directed is 'perhaps'")):
        gp.read_graph(write_file("g.e", ""))


@pytest.mark.parametrize("missing", ["v", "e"])
def test_one_file_missing(missing: str, write_file: WriteFile, tmp_path: Path) -> None:
    present = write_file("g.e" if missing == "v" else "g.v", "")
    with pytest.raises(MissingFileError, match=re.escape(str(tmp_path / f"g.{missing}"))):
        gp.read_graph(present)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@settings(max_examples=25)
@given(
    ids=st.lists(st.integers(0, 2**62), unique=True, min_size=1, max_size=12),
    pairs=st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=30),
)
def test_round_trip(
    directed: bool, weighted: bool, ids: list[int], pairs: Any, tmp_path_factory: pytest.TempPathFactory, equal: Any
) -> None:
    n = len(ids)
    src, dst = [u % n for u, _ in pairs], [v % n for _, v in pairs]
    weights = np.arange(len(src)) / 4 if weighted and pairs else None
    plain = gp.Graph.from_edgelist(src, dst, weights, num_vertices=n, directed=directed)
    renumbered = None if sorted(ids) == list(range(n)) else np.sort(np.array(ids))
    graph = gp.Graph(plain.to_csr(), directed=directed, ids=renumbered)
    path = tmp_path_factory.getbasetemp() / "round.v"
    graph.save(path)
    assert equal(gp.read_graph(path), graph)


def test_negative_ids_are_kept_and_larger_than_64_bits_rejected(tmp_path: Path, equal: Any) -> None:
    graph = gp.Graph.from_csr([0, 1, 2], [1, 0], ids=[-5, 4])
    graph.save(tmp_path / "g.v")
    assert equal(gp.read_graph(tmp_path / "g.v"), graph)
    with pytest.raises(FormatError, match=r"the id 9223372036854775808 is larger than 64 bits .*: save as \.pregel"):
        gp.Graph.from_edgelist([1], np.array([2**63], np.uint64)).save(tmp_path / "h.v")


def test_names_are_rejected_as_ids(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="integer ids"):
        gp.Graph.from_edgelist(["a"], ["b"]).save(tmp_path / "g.v")
    assert list(tmp_path.iterdir()) == []

"""Tests of Parquet tables of edges."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, FormatError

WriteFile = Callable[[str, str | bytes], Path]


@pytest.fixture
def table(tmp_path: Path) -> Callable[..., Path]:
    """Write a Parquet file with these columns; return its path."""

    def write(**columns: Any) -> Path:
        pyarrow.parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
        return tmp_path / "t.parquet"

    return write


def test_columns_by_name(table: Any, edges: Any) -> None:
    ends = [5, 6], [6, 7]
    for source, target in (("src", "dst"), ("source", "target"), ("From", "TO")):
        assert edges(gp.read_graph(table(**{target: ends[1], "x": [0, 0], source: ends[0]}), directed=True)) == [
            (5, 6),
            (6, 7),
        ]
    for weight in ("weight", "weights", "value"):
        path = table(src=ends[0], dst=ends[1], c=[1, 1], **{weight: [0.5, 2.0]})
        assert edges(gp.read_graph(path)) == [(5, 6, 0.5), (6, 7, 2.0)]
        assert edges(gp.read_graph(path, weight=None)) == [(5, 6), (6, 7)]


def test_requested_columns(table: Any, edges: Any) -> None:
    path = table(src=[1], dst=[2], weight=[9], a=[3], b=[4], c=[7])
    assert edges(gp.read_graph(path, source="a", target="b")) == [(3, 4, 9)]
    assert edges(gp.read_graph(path, source="a", target=4, weight=None)) == [(3, 4)]
    assert edges(gp.read_graph(path, weight="c")) == [(1, 2, 7)]
    graph = gp.read_graph(path, source="b", target="a", weight="c", directed=True, weight_dtype="float32")
    assert edges(graph) == [(4, 3, 7.0)]
    with pytest.raises(ArgumentError, match="no column 'z'; available columns: 'src', 'dst'"):
        gp.read_graph(path, source="a", target="z")


def test_names_as_ids(table: Any) -> None:
    graph = gp.read_graph(table(src=["ann", "bob"], dst=["bob", "cid"]))
    assert graph.ids is not None
    assert graph.ids.tolist() == ["ann", "bob", "cid"]


REJECTED: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
    ("null id", {"src": [1, None], "dst": [1, 2]}, "column 'src' is null in row 1", {}),
    ("null weight", {"src": [1], "dst": [2], "weight": pa.array([None], pa.float64())}, "is null in row 0", {}),
    ("NaN", {"src": [1], "dst": [2], "weight": [np.nan]}, "NaN", {}),
    ("weights that are no numbers", {"src": [1], "dst": [2], "weight": ["x"]}, "is string, not a number type", {}),
    (
        "weights that do not fit",
        {"src": [1], "dst": [2], "weight": [0.5]},
        "0.5 does not fit int32",
        {"weight_dtype": "int32"},
    ),
]


@pytest.mark.parametrize("columns, problem, options", [row[1:] for row in REJECTED], ids=[row[0] for row in REJECTED])
def test_rejects(columns: Any, problem: str, options: Any, table: Any, assert_rejected: Any) -> None:
    assert_rejected(table(**columns), None, problem, **options)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" + bytes(100) + b"PAR1"], ids=["empty", "short", "damaged"])
def test_rejects_other_files(content: bytes, write_file: WriteFile, assert_rejected: Any) -> None:
    assert_rejected(write_file("a.parquet", content), None, "is not a readable Parquet file")


def test_rejects_damaged_metadata(tmp_path: Path, assert_rejected: Any) -> None:
    table = pa.table({"src": [0], "dst": [1]}).replace_schema_metadata({"gpu_pregel": "{"})
    pyarrow.parquet.write_table(table, tmp_path / "a.pq")
    assert_rejected(tmp_path / "a.pq", None, "metadata 'gpu_pregel' is damaged")


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("dtype", [None, "int32", "uint64", "float32", "float64"])
def test_round_trip(directed: bool, dtype: str | None, tmp_path: Path, equal: Any) -> None:
    random = np.random.default_rng(3)
    src, dst = random.integers(0, 30, (2, 80))
    weights = None if dtype is None else random.integers(0, 9, 80).astype(dtype)
    graph = gp.Graph.from_edgelist(src, dst, weights, num_vertices=100, directed=directed)
    graph.save(tmp_path / "a.parquet")
    assert equal(gp.read_graph(tmp_path / "a.parquet"), graph)


@pytest.mark.parametrize("ids", [["x", "y", "z"], [2**40, 7, 2**50]], ids=["names", "sparse"])
def test_round_trip_of_ids(ids: list[Any], tmp_path: Path, equal: Any) -> None:
    graph = gp.Graph.from_edgelist([ids[0], ids[1]], [ids[1], ids[2]], [1.0, 2.0])
    graph.save(tmp_path / "a.parquet")
    assert equal(gp.read_graph(tmp_path / "a.parquet"), graph)


def test_ids_that_cannot_be_read_back_are_not_written(tmp_path: Path) -> None:
    names = np.empty(2, object)
    names[:] = [(0, 1), (1, 2)]
    graph = gp.Graph.from_csr([0, 1, 2], [1, 0], ids=names)
    with pytest.raises(FormatError, match=r"a\.parquet: \.parquet files require ids .*, not tuple such as \(0, 1\)"):
        graph.save(tmp_path / "a.parquet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ids", [[b"x", b"y"], [2**63, 2**63 + 1], [0.5, 1.5]])
def test_other_ids_are_preserved(ids: Any, tmp_path: Path) -> None:
    graph = gp.Graph.from_csr([0, 1, 2], [1, 0], ids=np.array(ids, np.uint64 if isinstance(ids[0], int) else object))
    graph.save(tmp_path / "a.parquet")
    found = gp.read_graph(tmp_path / "a.parquet").ids
    assert found is not None
    assert found.tolist() == ids


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns"])
def test_dates_are_kept_in_every_unit(unit: str, tmp_path: Path) -> None:
    dates = np.array(["1990", "2002", "2001"], "M8[Y]").astype(f"M8[{unit}]")
    graph = gp.Graph.from_edgelist(dates[:2], dates[1:])
    graph.save(tmp_path / "a.parquet")
    read = gp.read_graph(tmp_path / "a.parquet")
    assert read.vertices(dates).tolist() == graph.vertices(dates).tolist() == [0, 1, 2]
    column = gp.connected_components(graph).to_arrow()["vertex"]
    assert np.asarray(column).astype(dates.dtype).tolist() == dates.tolist()


def test_options_override_the_metadata(tmp_path: Path) -> None:
    gp.Graph.from_edgelist([0], [1], directed=True, num_vertices=5).save(tmp_path / "a.parquet")
    graph = gp.read_graph(tmp_path / "a.parquet", directed=False, num_vertices=9)
    assert (graph.num_vertices, graph.num_stored_edges, graph.is_directed) == (9, 2, False)


def test_empty_graph(tmp_path: Path, equal: Any) -> None:
    graph = gp.Graph.from_edgelist([], [], num_vertices=3)
    graph.save(tmp_path / "a.parquet")
    assert equal(gp.read_graph(tmp_path / "a.parquet"), graph)

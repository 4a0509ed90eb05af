"""Tests of result files."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pyarrow.parquet
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentTypeError, FormatError, WriteError
from gpu_pregel.io import save_result
from gpu_pregel.io.results import check_result_path

COLUMNS: dict[str, Any] = {"vertex": ["a", "b"], "label": np.array([0, 1], np.uint32)}
LABELS = np.array([0, 1], np.uint32)


def test_parquet(tmp_path: Path) -> None:
    for name in ("a.parquet", "a.PQ"):
        save_result(tmp_path / name, COLUMNS, LABELS)
        table = pyarrow.parquet.read_table(tmp_path / name)
        assert table.to_pydict() == {"vertex": ["a", "b"], "label": [0, 1]}


def test_csv(tmp_path: Path) -> None:
    save_result(tmp_path / "a.csv", COLUMNS, LABELS)
    assert (tmp_path / "a.csv").read_text() == '"vertex","label"\n"a",0\n"b",1\n'
    save_result(tmp_path / "a.csv.gz", COLUMNS, LABELS)
    assert gzip.decompress((tmp_path / "a.csv.gz").read_bytes()) == (tmp_path / "a.csv").read_bytes()


def test_npy(tmp_path: Path) -> None:
    save_result(tmp_path / "a.npy", COLUMNS, LABELS)
    array = np.load(tmp_path / "a.npy")
    assert array.dtype == np.uint32
    assert array.tolist() == [0, 1]


@pytest.mark.parametrize("array", [np.arange(6.0)[::2], np.arange(0), np.array([(1, 0.5)], [("a", "u4"), ("b", "f8")])])
def test_npy_files_equal_those_of_numpy(array: Any, tmp_path: Path) -> None:
    save_result(tmp_path / "a.npy", {"value": array}, array)
    np.save(tmp_path / "b.npy", array)
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()


@pytest.mark.parametrize("name", ["a.txt", "a", "a.npy.gz", "a.parquet.zst"])
def test_unknown_suffix(name: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"\.parquet, \.csv, \.csv\.gz, \.csv\.zst or \.npy"):
        save_result(tmp_path / name, COLUMNS, LABELS)
    with pytest.raises(FormatError, match=r"unsupported suffix: write results as"):
        check_result_path(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a.parquet", "a.csv", "a.csv.zst", "a.npy"])
def test_a_failed_write_leaves_no_file(name: str, tmp_path: Path, small_disk: Any) -> None:
    many = np.random.default_rng(1).integers(0, 2**60, 10_000)
    with pytest.raises(WriteError, match="was not written: File too large; no partial file remains"), small_disk():
        save_result(tmp_path / name, {"value": many}, many)
    with pytest.raises(WriteError, match="does not exist: create it first"):
        check_result_path(tmp_path / "missing" / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("nodes", [[1, "a", (2, 3)], [2**70, 1, 2], [frozenset(), frozenset([1]), frozenset([2])]])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_ids_that_tables_cannot_store(nodes: list[Any], suffix: str, tmp_path: Path) -> None:
    graph = gp.Graph.from_networkx(networkx.path_graph(nodes))
    components = gp.connected_components(graph)
    assert list(components.to_dict()) == nodes
    with pytest.raises(ArgumentTypeError, match=r"labels\..*: the ids in column 'vertex' cannot be stored in a table"):
        components.save(tmp_path / f"labels.{suffix}")
    for call in (components.to_arrow, graph.to_arrow):
        with pytest.raises(ArgumentTypeError, match=r"the ids in column '\w+' cannot be stored in a table"):
            call()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("nodes", [[(0, 1), (0, 2)], [b"\xff", b"a"]])
def test_ids_that_csv_cannot_store(nodes: list[Any], tmp_path: Path) -> None:
    components = gp.connected_components(gp.Graph.from_networkx(networkx.path_graph(nodes)))
    with pytest.raises(ArgumentTypeError, match=r"labels\.csv: CSV cannot store these ids .*: save as \.parquet"):
        components.save(tmp_path / "labels.csv")
    components.save(tmp_path / "labels.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["labels.parquet"]


def test_pregel_files_keep_numpy_integers(tmp_path: Path) -> None:
    graph = gp.Graph.from_networkx(networkx.path_graph([np.int64(5), np.int64(7)]))
    graph.save(tmp_path / "a.pregel")
    ids = gp.read_graph(tmp_path / "a.pregel").ids
    assert ids is not None
    assert ids.tolist() == [5, 7]

"""Tests of the .pregel format."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.errors import FormatError, GraphError

WriteFile = Callable[[str, str | bytes], Path]

NUMBERS = gp.Graph.from_edgelist([0, 1, 1], [1, 2, 1], [1.0, 2.0, 3.0], num_vertices=5)
NAMES = gp.Graph.from_edgelist(["a", "bö", "ccc"], ["bö", "ccc", "d"], directed=True)
SPARSE = gp.Graph.from_edgelist([2**40, 7], [7, 2**50])
NUMPY_TYPES = ["int32", "int64", "uint32", "uint64", "float32", "float64"]


@pytest.mark.parametrize("graph", [NUMBERS, NAMES, SPARSE, gp.Graph.from_edgelist([], [])], ids=repr)
def test_round_trip(graph: gp.Graph, tmp_path: Path, equal: Any) -> None:
    graph.save(tmp_path / "a.pregel")
    assert equal(gp.read_graph(tmp_path / "a.pregel"), graph)


@pytest.mark.parametrize("dtype", NUMPY_TYPES)
def test_round_trip_of_weights(dtype: str, tmp_path: Path, equal: Any) -> None:
    graph = gp.Graph.from_edgelist([0, 1], [1, 2], np.array([1, 2], dtype))
    graph.save(tmp_path / "a.pregel")
    assert equal(gp.read_graph(tmp_path / "a.pregel"), graph)


def test_arrays_are_views_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.pregel"
    sparse = gp.Graph.from_edgelist([2**40, 7], [7, 2**50], [0.5, 1.5])
    sparse.save(path)
    before = pa.total_allocated_bytes()
    graph = gp.read_graph(path)
    assert pa.total_allocated_bytes() == before
    mapped = [
        [int(end, 16) for end in line.split()[0].split("-")]
        for line in Path("/proc/self/maps").read_text().splitlines()
        if line.endswith(str(path))
    ]
    for array in (graph.indptr, graph.indices, graph.weights, graph.ids):
        assert array is not None
        address = array.__array_interface__["data"][0]
        assert any(begin <= address < end for begin, end in mapped)
        assert not array.flags.writeable


def test_without_a_mapping_the_file_may_change(tmp_path: Path, equal: Any) -> None:
    path = tmp_path / "a.pregel"
    NUMBERS.save(path)
    graph = gp.read_graph(path, mmap=False)
    assert str(path) not in Path("/proc/self/maps").read_text()
    path.write_bytes(b"")
    assert equal(graph, NUMBERS)
    assert gp.connected_components(graph, device="cpu").labels.tolist() == [0, 0, 0, 3, 4]


def test_a_truncated_file_is_an_error_when_a_run_begins(tmp_path: Path) -> None:
    path = tmp_path / "a.pregel"
    NAMES.save(path)
    graph = gp.read_graph(path)
    size = path.stat().st_size
    os.truncate(path, 100)
    try:
        for one in (graph, graph.transpose()):
            with pytest.raises(
                GraphError, match=rf"another program has truncated from {size:,} to 100 bytes: .* mmap=False"
            ):
                gp.bfs(one, "a")
        with pytest.raises(GraphError, match="truncated"):
            gp.Frontier(graph)
    finally:
        os.truncate(path, size)


def test_a_replaced_or_deleted_file_stays_mapped(tmp_path: Path) -> None:
    path = tmp_path / "a.pregel"
    NUMBERS.save(path)
    graph = gp.read_graph(path)
    gp.Graph.from_edgelist([0], [1]).save(path)
    assert gp.connected_components(graph, device="cpu").labels.tolist() == [0, 0, 0, 3, 4]
    path.unlink()
    assert gp.connected_components(graph, device="cpu").labels.tolist() == [0, 0, 0, 3, 4]


def test_options(tmp_path: Path, edges: Any) -> None:
    path = tmp_path / "a.pregel"
    gp.Graph.from_edgelist([0, 0, 1, 1], [1, 1, 1, 0], [4, 3, 2, 1], directed=True).save(path)
    assert gp.read_graph(path, weight=None).weights is None
    assert edges(gp.read_graph(path, weight_dtype="float32")) == [(0, 1, 3.0), (0, 1, 4.0), (1, 0, 1.0), (1, 1, 2.0)]
    assert edges(gp.read_graph(path, combine="min", self_loops="drop")) == [(0, 1, 3), (1, 0, 1)]
    assert edges(gp.read_graph(path, directed=False)) == [(0, 1, 1), (0, 1, 3), (0, 1, 4), (1, 1, 2)]


def large_list(values: Any, kind: Any) -> Any:
    return pa.array([values], pa.large_list(kind))


GOOD = {"indptr": large_list([0, 1, 2], pa.int64()), "indices": large_list([1, 0], pa.uint32())}
META = {"gpu_pregel.version": "1", "gpu_pregel.directed": "false"}
REJECTED: list[tuple[str, dict[str, Any], dict[str, str], str]] = [
    ("another Arrow file", GOOD, {}, "its metadata has no version"),
    (
        "newer",
        GOOD,
        {**META, "gpu_pregel.version": "2"},
        "has version 2 of the format, but only version 1 is supported",
    ),
    ("no direction", GOOD, {**META, "gpu_pregel.directed": "?"}, "must be true or false"),
    ("no indptr", {"indices": GOOD["indices"]}, META, "has no column 'indptr'"),
    ("no indices", {"indptr": GOOD["indptr"]}, META, "has no column 'indices'"),
    (
        "type of indices",
        {**GOOD, "indices": large_list([1, 0], pa.int64())},
        META,
        "the column 'indices' is large_list",
    ),
    ("small list", {**GOOD, "indices": pa.array([[1, 0]], pa.list_(pa.uint32()))}, META, "not a large list of uint32"),
    (
        "null value",
        {**GOOD, "indices": large_list([1, None], pa.uint32())},
        META,
        "the column 'indices' contains nulls",
    ),
    ("null row", {**GOOD, "indices": large_list(None, pa.uint32()).slice(0, 1)}, META, "contains nulls"),
    ("decreasing", {**GOOD, "indptr": large_list([0, 3, 2], pa.int64())}, META, "indptr decreases"),
    ("outside", {**GOOD, "indices": large_list([1, 2], pa.uint32())}, META, "has an edge to 2"),
    ("not symmetric", {**GOOD, "indices": large_list([1, 1], pa.uint32())}, META, "not symmetric"),
    ("too few ids", {**GOOD, "ids": large_list([1], pa.int64())}, META, "ids has 1 entries for 2 vertices"),
    ("too few weights", {**GOOD, "weights": large_list([1.0], pa.float64())}, META, "weight"),
    ("NaN", {**GOOD, "weights": large_list([1.0, np.nan], pa.float64())}, META, "NaN"),
    ("no rows", {name: column.slice(0, 0) for name, column in GOOD.items()}, META, "has 0 rows instead of one"),
    ("two rows", {name: pa.concat_arrays([column] * 2) for name, column in GOOD.items()}, META, "has 2 rows"),
]


@pytest.mark.parametrize("columns, metadata, problem", [row[1:] for row in REJECTED], ids=[row[0] for row in REJECTED])
def test_rejects(columns: Any, metadata: Any, problem: str, tmp_path: Path, assert_rejected: Any) -> None:
    batch = pa.record_batch(columns).replace_schema_metadata(metadata)
    with pa.OSFile(str(tmp_path / "a.pregel"), "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)
    assert_rejected(tmp_path / "a.pregel", None, problem)


def test_rejects_multiple_batches(tmp_path: Path, assert_rejected: Any) -> None:
    batch = pa.record_batch(GOOD).replace_schema_metadata(META)
    with pa.OSFile(str(tmp_path / "a.pregel"), "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)
        writer.write_batch(batch)
    assert_rejected(tmp_path / "a.pregel", None, "has 2 record batches")


@pytest.mark.parametrize("graph", [NUMBERS, NAMES], ids=["numbers", "names"])
def test_truncated_anywhere(graph: gp.Graph, tmp_path: Path, write_file: WriteFile, assert_rejected: Any) -> None:
    graph.save(tmp_path / "a.pregel")
    content = (tmp_path / "a.pregel").read_bytes()
    for size in range(0, len(content), 13):
        assert_rejected(write_file("b.pregel", content[:size]), None, "is not a .pregel file, or is truncated")


@settings(max_examples=150)
@given(data=st.data(), graph=st.sampled_from([NUMBERS, NAMES]))
def test_damaged_anywhere(data: Any, graph: gp.Graph, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A file with any damaged bytes is rejected, or its edges stay within the graph."""
    path = tmp_path_factory.getbasetemp() / "damaged.pregel"
    graph.save(path)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.sampled_from([0, 1, 127, 128, 200, 255]))
    path.write_bytes(content)
    try:
        damaged = gp.read_graph(path)
    except FormatError:
        return
    assert (np.diff(damaged.indptr) >= 0).all()
    assert damaged.indptr[-1] == damaged.num_stored_edges
    assert damaged.num_stored_edges == 0 or damaged.indices.max() < damaged.num_vertices


def test_ids_of_other_types(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="not tuple"):
        gp.Graph.from_edgelist(*np.array([[(0, 1), (1, 1)], [(1, 1), (2, 2)]], "i,i").astype(object)).save(
            tmp_path / "a.pregel"
        )
    assert list(tmp_path.iterdir()) == []

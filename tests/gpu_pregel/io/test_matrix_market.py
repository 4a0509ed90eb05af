"""Tests of Matrix Market files; valid files are compared with SciPy's reader."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
from hypothesis import given, settings
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError

WriteFile = Callable[[str, str | bytes], Path]
HEAD = "%%MatrixMarket matrix coordinate"


def dense(graph: gp.Graph) -> Any:
    """Return the adjacency matrix, with repeated entries summed."""
    return graph.to_scipy().astype(float).toarray()


SOUND = {
    "pattern general": f"{HEAD} pattern general\n3 3 3\n1 2\n2 1\n3 3\n",
    "pattern symmetric": f"{HEAD} pattern symmetric\n3 3 3\n2 1\n3 2\n3 3\n",
    "integer symmetric": f"{HEAD} integer symmetric\n% c\n\n3 3 3\n2 1 -7\n3 2 4\n3 3 2\n",
    "real general": f"{HEAD} real general\n% c\n%\n4 4 3\n1 2 0.5\n2 1 1e3\n4 4 -2\n",
    "skew": f"{HEAD} real skew-symmetric\n3 3 2\n2 1 0.5\n3 1 -2\n",
    "capitals": "%%MatrixMarket MATRIX Coordinate Real General\n2 2 1\n1 2 0.5\n",
    "duplicates": f"{HEAD} real general\n2 2 3\n1 2 1\n1 2 2\n2 2 5\n",
    "no entries": f"{HEAD} real general\n3 3 0\n",
    "tabs and blanks": f"{HEAD} real general\n 3\t3  1 \n 1\t2   7\n\n",
}


@pytest.mark.parametrize("content", SOUND.values(), ids=SOUND.keys())
def test_reads_as_scipy_does(content: str, write_file: WriteFile) -> None:
    path = write_file("a.mtx", content)
    graph = gp.read_graph(path)
    assert np.array_equal(dense(graph), scipy.io.mmread(path).toarray())
    assert graph.is_directed == ("symmetric" not in content or "skew" in content)


@pytest.mark.parametrize(
    "name",
    ["jagmesh7", "karate", "ldbc-wcc-example", "pushpull", "mangled_bool", "mangled_skew"]
    + [f"mangled_{kind}" for kind in ("int8", "int16", "int32", "uint8", "uint16", "uint32")],
)
def test_public_files(name: str, data: Path) -> None:
    path = data / "mtx" / f"{name}.mtx"
    graph = gp.read_graph(path)
    expected = scipy.io.mmread(path).tocsr()
    assert (graph.num_vertices, graph.num_stored_edges) == (expected.shape[0], expected.nnz)
    assert (graph.to_scipy() != expected).nnz == 0
    assert graph.weights is None or graph.weights.dtype == np.int64


MANGLED = [
    ("1", 1, "the object 'mangled'"),
    ("2", 1, "the format 'mangled'"),
    ("3", 1, "the field 'mangled'"),
    ("4", 1, "the symmetry 'mangled'"),
    ("5", 1, "the symmetry 'hermitian'"),
    ("6", 1, "the symmetry 'hermitian'"),
    ("7", 5, "an entry of a real matrix has 3"),
    ("8", 4, "size line"),
    ("9", 4, "is square"),
    ("10", 4, "is square"),
    ("11", 4, "is square"),
    ("12", 4, "is square"),
    ("13", 4, "is square"),
    ("14", 5, "is square"),
    ("15", 1, "the format 'array'"),
    ("16", 1, "the format 'array'"),
    ("_format", 1, "the format 'array'"),
]


@pytest.mark.parametrize("name, line, problem", MANGLED)
def test_damaged_public_files(name: str, line: int, problem: str, data: Path, assert_rejected: Any) -> None:
    assert_rejected(data / "mtx" / f"mangled{name}.mtx", line, problem)


REJECTED: list[tuple[str, str, int | None, str, dict[str, Any]]] = [
    ("empty", "", 1, "the first line must be", {}),
    ("no banner", "3 3 1\n1 2\n", 1, "the first line must be", {}),
    ("short banner", "%%MatrixMarket matrix coordinate real\n1 1 0\n", 1, "the first line must be", {}),
    ("vector", "%%MatrixMarket vector coordinate real general\n1 1 0\n", 1, "the object 'vector'", {}),
    ("thousands of digits", f"{HEAD} pattern general\n{'9' * 5000} 1 0\n", 2, "must contain three numbers", {}),
    ("array", "%%MatrixMarket matrix array real general\n1 1\n1\n", 1, "the format 'array'", {}),
    ("complex", f"{HEAD} complex general\n1 1 1\n1 1 0 0\n", 1, "the field 'complex'", {}),
    ("hermitian", f"{HEAD} real hermitian\n1 1 0\n", 1, "the symmetry 'hermitian'", {}),
    ("skew pattern", f"{HEAD} pattern skew-symmetric\n1 1 0\n", 1, "a pattern matrix cannot be skew-symmetric", {}),
    ("no size line", f"{HEAD} real general\n% c\n", None, "size line must contain three numbers", {}),
    ("two sizes", f"{HEAD} real general\n3 3\n1 2 3\n", 2, "size line must contain three numbers", {}),
    ("negative size", f"{HEAD} real general\n3 3 -1\n", 2, "size line must contain three numbers", {}),
    ("not square", f"{HEAD} real general\n% c\n3 4 0\n", 3, "3 rows and 4 columns", {}),
    ("too large", f"{HEAD} real general\n4294967295 4294967295 0\n", 2, "4,294,967,295 rows exceed", {}),
    ("truncated", f"{HEAD} real general\n3 3 3\n1 2 1\n2 3 1\n", None, "3 entries, but there are 2", {}),
    ("too long", f"{HEAD} real general\n3 3 1\n1 2 1\n2 3 1\n", None, "1 entries, but there are 2", {}),
    ("no value", f"{HEAD} real general\n3 3 1\n1 2\n", 3, "an entry of a real matrix has 3", {}),
    ("value of a pattern", f"{HEAD} pattern general\n3 3 1\n1 2 1\n", 3, "an entry of a pattern matrix has 2", {}),
    ("row 0", f"{HEAD} pattern general\n3 3 2\n1 2\n0 1\n", 4, "the id 0 is too small: ids start at 1", {}),
    ("column beyond", f"{HEAD} pattern general\n3 3 2\n1 2\n1 4\n", 4, "the matrix has 3 rows and columns", {}),
    ("words", f"{HEAD} real general\n3 3 1\n1 two 1\n", 3, "the id 'two' is not an integer", {}),
    ("value no number", f"{HEAD} real general\n3 3 1\n1 2 pi\n", 3, "the weight 'pi' is not a number", {}),
    ("real in an integer matrix", f"{HEAD} integer general\n3 3 1\n1 2 0.5\n", 3, "0.5 does not fit int64", {}),
    ("NaN", f"{HEAD} real general\n3 3 1\n1 2 nan\n", 3, "the weight is NaN", {}),
    ("skew diagonal", f"{HEAD} real skew-symmetric\n3 3 2\n2 1 1\n\n3 3 1\n", 5, "on the diagonal", {}),
    (
        "skew, unsigned",
        f"{HEAD} real skew-symmetric\n2 2 1\n2 1 1\n",
        None,
        "-1.0 does not fit uint32",
        {"weight_dtype": "uint32"},
    ),
]


@pytest.mark.parametrize(
    "content, line, problem, options", [row[1:] for row in REJECTED], ids=[row[0] for row in REJECTED]
)
def test_rejects(
    content: str, line: int | None, problem: str, options: Any, write_file: WriteFile, assert_rejected: Any
) -> None:
    assert_rejected(write_file("a.mtx", content), line, problem, **options)


def test_direction_can_be_chosen(write_file: WriteFile, edges: Any) -> None:
    path = write_file("a.mtx", f"{HEAD} integer symmetric\n3 3 3\n2 1 5\n3 2 6\n3 3 7\n")
    assert edges(gp.read_graph(path)) == [(0, 1, 5), (1, 2, 6), (2, 2, 7)]
    assert edges(gp.read_graph(path, directed=True)) == [(0, 1, 5), (1, 0, 5), (1, 2, 6), (2, 1, 6), (2, 2, 7)]
    path = write_file("b.mtx", f"{HEAD} integer general\n3 3 2\n2 1 5\n3 2 6\n")
    assert edges(gp.read_graph(path)) == [(1, 0, 5), (2, 1, 6)]
    assert edges(gp.read_graph(path, directed=False)) == [(0, 1, 5), (1, 2, 6)]
    path = write_file("c.mtx", f"{HEAD} integer skew-symmetric\n2 2 1\n2 1 5\n")
    assert edges(gp.read_graph(path)) == [(0, 1, -5), (1, 0, 5)]
    assert edges(gp.read_graph(path, directed=False, weight=None)) == [(0, 1)]
    with pytest.raises(ArgumentError, match="weight=None"):
        gp.read_graph(path, directed=False)


def test_weights(write_file: WriteFile) -> None:
    path = write_file("a.mtx", f"{HEAD} integer general\n2 2 1\n1 2 5\n")
    assert gp.read_graph(path, weight=None).weights is None
    assert gp.read_graph(path, weight_dtype="float32").weights.dtype == np.float32  # type: ignore[union-attr]


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("dtype", [None, "int32", "float64"])
@settings(max_examples=25)
@given(entries=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(-9, 9)), max_size=30))
def test_round_trip_and_scipy(
    directed: bool, dtype: str | None, entries: list[Any], tmp_path_factory: pytest.TempPathFactory, equal: Any
) -> None:
    columns = np.array(entries, np.int64).reshape(-1, 3).T
    weights = None if dtype is None else columns[2].astype(dtype)
    graph = gp.Graph.from_edgelist(columns[0], columns[1], weights, num_vertices=10, directed=directed)
    path = tmp_path_factory.getbasetemp() / "round.mtx.gz"
    graph.save(path)
    assert equal(gp.read_graph(path, weight_dtype=dtype), graph)
    assert np.array_equal(scipy.io.mmread(path).toarray(), dense(graph))


def test_written_header(tmp_path: Path) -> None:
    gp.Graph.from_edgelist([0, 1, 2], [1, 2, 2], [1.5, 2, 3]).save(tmp_path / "a.mtx")
    expected = f"{HEAD} real symmetric\n3 3 3\n2 1 1.5\n3 2 2\n3 3 3\n"
    assert re.sub(r"\.0$", "", (tmp_path / "a.mtx").read_text(), flags=re.MULTILINE) == expected

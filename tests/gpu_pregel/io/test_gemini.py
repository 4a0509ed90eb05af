"""Tests of the binary edge lists of Gemini."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import FormatError

WriteFile = Callable[[str, str | bytes], Path]

PAIRS = np.array([[0, 1], [1, 2], [2, 2]], "<u4").tobytes()
TRIPLES = b"".join(
    np.array(pair, "<u4").tobytes() + np.array(w, "<f4").tobytes() for *pair, w in [(0, 1, 0.5), (1, 2, 3)]
)


def test_reads(write_file: WriteFile, edges: Any) -> None:
    path = write_file("a.bin", PAIRS)
    assert edges(gp.read_graph(path)) == [(0, 1), (1, 2), (2, 2)]
    assert edges(gp.read_graph(write_file("b.bin", np.array([3, 1], "<u4").tobytes()), directed=True)) == [(3, 1)]
    assert gp.read_graph(path, num_vertices=10).num_vertices == 10
    assert edges(gp.read_graph(path, self_loops="drop")) == [(0, 1), (1, 2)]
    assert edges(gp.read_graph(write_file("a.bin.gz", gzip.compress(PAIRS)))) == [(0, 1), (1, 2), (2, 2)]
    assert gp.read_graph(write_file("empty.bin", b""), num_vertices=3).num_vertices == 3


def test_reads_weights(write_file: WriteFile, edges: Any) -> None:
    path = write_file("a.wbin", TRIPLES)
    graph = gp.read_graph(path)
    assert edges(graph) == [(0, 1, 0.5), (1, 2, 3.0)]
    assert graph.weights is not None
    assert graph.weights.dtype == np.float32
    assert gp.read_graph(path, weight=None).weights is None
    assert edges(gp.read_graph(write_file("b.dat", TRIPLES), "gemini-weighted")) == [(0, 1, 0.5), (1, 2, 3.0)]


@pytest.mark.parametrize(
    "name, content, problem, options",
    [
        ("a.bin", PAIRS[:-1], "has 23 bytes, which is not a multiple of the 8 bytes", {}),
        ("a.wbin", PAIRS[:16], "has 16 bytes, which is not a multiple of the 12 bytes", {}),
        ("a.bin", PAIRS, "src[2] is 2, but num_vertices is 2", {"num_vertices": 2}),
        ("a.wbin", PAIRS[:8] + np.array(np.nan, "<f4").tobytes(), "NaN", {}),
        ("a.wbin", TRIPLES, "edge 0: the weight 0.5 does not fit int32", {"weight_dtype": "int32"}),
    ],
)
def test_rejects(
    name: str, content: bytes, problem: str, options: Any, write_file: WriteFile, assert_rejected: Any
) -> None:
    assert_rejected(write_file(name, content), None, problem, **options)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", ["a.bin", "a.wbin", "a.wbin.zst"])
def test_round_trip(directed: bool, name: str, tmp_path: Path, equal: Any) -> None:
    random = np.random.default_rng(5)
    src, dst = random.integers(0, 30, (2, 100))
    weights = random.random(100, np.float32) if "w" in name else None
    graph = gp.Graph.from_edgelist(src, dst, weights, num_vertices=30, directed=directed)
    graph.save(tmp_path / name)
    assert equal(gp.read_graph(tmp_path / name, directed=directed, num_vertices=30), graph)


def test_undirected_edges_are_written_once(tmp_path: Path) -> None:
    gp.Graph.from_edgelist([2, 2, 1], [1, 2, 0]).save(tmp_path / "a.bin")
    assert np.fromfile(tmp_path / "a.bin", "<u4").reshape(-1, 2).tolist() == [[0, 1], [1, 2], [2, 2]]


def test_graphs_that_cannot_be_written(tmp_path: Path) -> None:
    plain = gp.Graph.from_edgelist([0], [1])
    for graph, name, problem in (
        (plain, "a.wbin", "use the suffix .bin"),
        (gp.Graph.from_edgelist([0], [1], [1]), "a.bin", "save as .wbin or .pregel"),
        (gp.Graph.from_edgelist([0], [1], [1e300]), "a.wbin", "float32"),
    ):
        with pytest.raises(FormatError, match=problem):
            graph.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "dtype, exact, inexact",
    [
        ("int32", [-(2**31), 2**24, -3], [2**31 - 1, 2**24 + 1, -(2**24) - 1]),
        ("uint32", [2**31, 2**32 - 256], [2**32 - 1]),
        ("int64", [-(2**63), 2**62], [2**63 - 1, 2**62 + 1]),
        ("uint64", [2**63, 2**64 - 2**40], [2**64 - 1, 2**63 + 1]),
    ],
)
def test_integers_are_written_exactly_or_not_at_all(
    dtype: str, exact: list[int], inexact: list[int], tmp_path: Path
) -> None:
    def save(weight: int) -> None:
        gp.Graph.from_edgelist([0, 0], [1, 2], np.array([1, weight], dtype)).save(tmp_path / "a.wbin")

    for weight in inexact:
        with pytest.raises(FormatError, match=f"the weight {weight} does not fit float32, .*: save as .wel or"):
            save(weight)
    assert list(tmp_path.iterdir()) == []
    for weight in exact:
        save(weight)
        weights = gp.read_graph(tmp_path / "a.wbin").weights
        assert weights is not None
        assert int(weights[1]) == weight


def test_float64_weights_are_rounded_on_request(tmp_path: Path) -> None:
    graph = gp.Graph.from_edgelist([0], [1], [0.1])
    with pytest.raises(FormatError, match=r"the weight 0\.1 does not fit float32, .*lossy=True to round the weights"):
        graph.save(tmp_path / "a.wbin")
    graph.save(tmp_path / "a.wbin", lossy=True)
    weights = gp.read_graph(tmp_path / "a.wbin").weights
    assert weights is not None
    assert weights.tolist() == [np.float32(0.1)] * 2

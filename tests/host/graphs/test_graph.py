"""Tests of graphs: constructors, argument checks and derived facts."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

import networkx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, GraphError
from gpu_pregel.host.graphs import edge_arrays
from gpu_pregel.host.graphs.csr import MAX_VERTICES
from tests.graphs import arrays, edge_lists


def rows(graph: gp.Graph) -> list[list[int]]:
    return [graph.indices[a:b].tolist() for a, b in zip(graph.indptr[:-1], graph.indptr[1:], strict=True)]


def test_an_undirected_edge_is_stored_twice_and_a_self_loop_once() -> None:
    graph = gp.Graph.from_edgelist([0, 1, 2], [1, 1, 0])
    assert rows(graph) == [[1, 2], [0, 1], [0]]
    assert (graph.num_vertices, graph.num_stored_edges, graph.is_directed) == (3, 5, False)


@pytest.mark.parametrize("directed", [False, True])
@given(edge_lists())
def test_edges_count_as_in_networkx(directed: bool, given: tuple[int, list[tuple[int, int]]]) -> None:
    graph = gp.Graph.from_edgelist(*arrays(given[1]), num_vertices=given[0], directed=directed)
    oracle = networkx.MultiDiGraph() if directed else networkx.MultiGraph()
    oracle.add_edges_from(given[1])
    assert graph.num_edges == graph.transpose().num_edges == oracle.number_of_edges()


def test_edges_are_counted_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge_arrays, "_EDGES_AT_ONCE", 3)
    assert gp.Graph.from_edgelist([0, 1, 2, 2, 4], [1, 1, 0, 4, 4]).num_edges == 5


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [[1, 1, 1, 1], [0, 0, 0, 0, 1]]),
        ({"combine": "min"}, [[1], [0, 1]]),
        ({"self_loops": "drop"}, [[1, 1, 1, 1], [0, 0, 0, 0]]),
        ({"combine": "min", "self_loops": "drop"}, [[1], [0]]),
        ({"directed": True}, [[1, 1], [0, 0, 1]]),
        ({"directed": True, "combine": "min"}, [[1], [0, 1]]),
    ],
)
def test_duplicates_and_self_loops(options: dict[str, Any], expected: list[list[int]]) -> None:
    graph = gp.Graph.from_edgelist([0, 0, 1, 1, 1], [1, 1, 0, 0, 1], **options)
    assert rows(graph) == expected


def test_the_smallest_weight() -> None:
    graph = gp.Graph.from_edgelist([0, 0, 1], [1, 1, 0], [3.0, 2.0, 5.0], combine="min")
    assert graph.weights is not None
    assert graph.weights.tolist() == [2.0, 2.0]
    kept = gp.Graph.from_edgelist([0, 0, 1], [1, 1, 0], [3.0, 2.0, 5.0])
    assert kept.weights is not None
    assert kept.weights.tolist() == [2, 3, 5, 2, 3, 5]


def test_isolated_vertices_and_empty_graphs() -> None:
    assert gp.Graph.from_edgelist([], []).num_vertices == 0
    assert rows(gp.Graph.from_edgelist([], [], num_vertices=3)) == [[], [], []]
    assert rows(gp.Graph.from_edgelist([1], [1], num_vertices=3)) == [[], [1], []]
    empty = gp.Graph.from_edgelist([], [], [])
    assert empty.weights is not None
    assert len(empty.weights) == 0


@pytest.mark.parametrize(
    "dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, ">i4"]
)
def test_every_integer_dtype_is_accepted(dtype: Any) -> None:
    graph = gp.Graph.from_edgelist(np.array([0, 5], dtype), np.array([5, 3], dtype))
    assert rows(graph) == [[2], [2], [0, 1]]
    assert graph.ids is not None
    assert (graph.ids.tolist(), graph.ids.dtype) == ([0, 3, 5], np.int64)
    mixed = gp.Graph.from_edgelist(np.array([0, 5], dtype), np.array([5, 3]))
    assert rows(mixed) == rows(graph)


@pytest.mark.parametrize(
    ("dtype", "kept"),
    [
        ("f2", "f4"),
        ("f4", "f4"),
        ("f8", "f8"),
        ("i1", "i4"),
        ("i4", "i4"),
        ("i8", "i8"),
        ("u4", "u4"),
        ("u8", "u8"),
        (">f4", "f4"),
    ],
)
def test_weight_dtypes(dtype: str, kept: str) -> None:
    graph = gp.Graph.from_edgelist([0], [1], np.array([3], dtype))
    assert graph.weights is not None
    assert graph.weights.dtype == np.dtype(kept)
    assert graph.weights.tolist() == [3, 3]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: gp.Graph.from_edgelist([0, 1], [1]), GraphError, "src has 2 entries and dst 1"),
        (
            lambda: gp.Graph.from_edgelist([0, -4], [1, 1], renumber=False),
            GraphError,
            r"src\[1\] is -4, but renumber=False takes ids as vertex numbers",
        ),
        (lambda: gp.Graph.from_edgelist([0, 1], [1, np.nan]), GraphError, r"dst\[1\] is missing \(nan\)"),
        (lambda: gp.Graph.from_edgelist(np.eye(2), [0, 1]), ArgumentTypeError, "src must have one dimension, not 2"),
        (lambda: gp.Graph.from_edgelist([[0]], [[1]]), ArgumentTypeError, r"src\[0\] is of type list, which is not"),
        (lambda: gp.Graph.from_edgelist(3, [1]), ArgumentTypeError, "src must be a list or an array, not int$"),
        (lambda: gp.Graph.from_edgelist({3}, [1]), ArgumentTypeError, r"src must be .*, not set: pass list\(src\)"),
        (lambda: gp.Graph.from_edgelist([1], {1: 2}.keys()), ArgumentTypeError, r"not dict_keys: pass list\(dst\)"),
        (lambda: gp.Graph.from_edgelist([0], [1], 5), ArgumentTypeError, "weight must be a list or an array, not int"),
        (
            lambda: gp.Graph.from_edgelist([0], [1], directed=cast(Any, "no")),
            ArgumentTypeError,
            "directed must be True or False",
        ),
        (
            lambda: gp.Graph.from_csr([0, 0], [], directed=cast(Any, "no")),
            ArgumentTypeError,
            "directed must be True or False",
        ),
        (lambda: gp.Graph.from_csr([0, 0], [], copy=cast(Any, "no")), ArgumentTypeError, "copy must be True or False"),
        (lambda: gp.Graph(), ArgumentTypeError, r"use gp\.read_graph\(path\), Graph\.from_edgelist\(src, dst\) or an"),
        (lambda: gp.Graph(networkx.path_graph(2), directed=True), ArgumentTypeError, "Graph.from_networkx"),
        (
            lambda: gp.Graph.from_edgelist([0, 7], [1, 1], num_vertices=7),
            GraphError,
            r"src\[1\] is 7, but num_vertices is 7",
        ),
        (lambda: gp.Graph.from_edgelist([0], [1], num_vertices=-1), ArgumentError, "num_vertices must be from 0"),
        (
            lambda: gp.Graph.from_edgelist([0], [1], num_vertices=cast(int, 2.0)),
            ArgumentTypeError,
            "must be a whole number",
        ),
        (lambda: gp.Graph.from_edgelist([0], [1], num_vertices=1 << 32), ArgumentError, "num_vertices must be from 0"),
        (
            lambda: gp.Graph.from_edgelist([0], [1 << 40], renumber=False),
            GraphError,
            r"dst\[0\] is 1,099,511,627,776, but renumber=False takes ids as vertex numbers",
        ),
        (lambda: gp.Graph.from_edgelist([0], [1 << 40], num_vertices=5), GraphError, r"dst\[0\] is 1,099,511,627,776"),
        (lambda: gp.Graph.from_edgelist([0], [1], [1, 2]), GraphError, "weight has 2 entries, but there are 1 edges"),
        (lambda: gp.Graph.from_edgelist([0], [1], [np.nan]), GraphError, "the weight of edge 0 is NaN"),
        (lambda: gp.Graph.from_edgelist([0], [1], ["a"]), ArgumentTypeError, "weight must have a dtype of int32"),
        (lambda: gp.Graph.from_edgelist([0], [1], [1j]), ArgumentTypeError, "weight must have a dtype of int32"),
        (
            lambda: gp.Graph.from_edgelist([0], [1], combine="last"),
            ArgumentError,
            "combine must be 'sum', 'min', 'max', 'mean', 'first' or 'count'",
        ),
        (
            lambda: gp.Graph.from_edgelist([0], [1], self_loops=cast(str, False)),
            ArgumentError,
            "self_loops must be 'keep'",
        ),
        (lambda: gp.Graph.from_edgelist([0], [1], renumber="yes"), ArgumentError, "renumber must be 'auto'"),
        (lambda: gp.Graph.from_edgelist([0], [1], renumber=cast(bool, 0)), ArgumentError, "renumber must be 'auto'"),
        (lambda: gp.Graph.from_edgelist([0], [1], renumber=True), ArgumentError, "renumber must be 'auto' or False"),
        (lambda: gp.Graph.from_edgelist([0], [1], threads=0), ArgumentError, "threads must be from 1 to 4,096, not 0"),
        (lambda: gp.Graph.from_edgelist(["a"], ["b"], renumber=False), ArgumentError, "requires integer ids"),
        (lambda: gp.Graph.from_edgelist(["a", None], ["b", "c"]), GraphError, r"src\[1\] is missing"),
        (lambda: gp.Graph.from_csr([0, 1], [0.5]), ArgumentTypeError, "indices must have an integer dtype"),
        (lambda: gp.Graph.from_csr([0, 1], [-1]), GraphError, r"indices\[0\] is -1, which does not fit uint32"),
        (lambda: gp.Graph.from_csr([0, 1, 0], [0]), GraphError, "end with the number of stored edges"),
        (lambda: gp.Graph.from_csr([0, 1, 1], [1]), GraphError, "undirected but not symmetric"),
        (lambda: gp.Graph.from_csr([0, 0], [], ids=["a", "b"]), GraphError, "ids has 2 entries for 1 vertices"),
        (lambda: gp.Graph.from_csr([0] * 4, [], ids=[9, 3, 9]), GraphError, "ids contains 9 more than once"),
        (lambda: gp.Graph.from_csr([0] * 3, [], ids=["a", "a"]), GraphError, "ids contains 'a' more than once"),
        (
            lambda: gp.Graph.from_csr([0] * 4, [], ids=np.array(["a", (1,), "a"], object)),
            GraphError,
            "ids contains 'a' more than once",
        ),
        (
            lambda: gp.Graph.from_csr([0] * 3, [], ids=np.array(["a", {}], object)),
            ArgumentTypeError,
            r"ids\[1\] is of type dict, which is not hashable",
        ),
    ],
)
def test_invalid_input_is_rejected(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_from_csr_sorts_rows() -> None:
    indptr, indices = np.array([0, 2, 3, 4]), np.array([1, 2, 0, 0], np.uint32)
    unsorted = gp.Graph.from_csr(indptr, indices[[1, 0, 2, 3]])
    assert unsorted.indices.tolist() == [1, 2, 0, 0]
    directed = gp.Graph.from_csr([0, 2, 2], [1, 0], [5, 6], directed=True)
    assert directed.indices.tolist() == [0, 1]
    assert directed.weights is not None
    assert directed.weights.tolist() == [6, 5]


@given(edge_lists(), st.booleans())
def test_derived_facts_agree_with_scipy(graph: Any, directed: bool) -> None:
    n, edges = graph
    src, dst = arrays(edges)
    built = gp.Graph.from_edgelist(src, dst, num_vertices=n, directed=directed)
    matrix = scipy.sparse.coo_array((np.ones(len(src), np.int64), (src, dst)), shape=(n, n)).toarray()
    if not directed:
        matrix = matrix + np.triu(matrix, 1).T + np.tril(matrix, -1).T
    assert built.out_degrees.tolist() == matrix.sum(axis=1).tolist()
    assert built.in_degrees.tolist() == matrix.sum(axis=0).tolist()
    assert built.has_duplicates == bool((matrix > 1).any())
    csc = built.csc
    assert csc.indptr.tolist() == np.append(0, np.cumsum(matrix.sum(axis=0))).tolist()
    columns = [csc.indices[a:b].tolist() for a, b in zip(csc.indptr[:-1], csc.indptr[1:], strict=True)]
    assert columns == [np.repeat(np.arange(n), matrix[:, v]).tolist() for v in range(n)]
    assert built.csc is csc


def test_the_csc_of_an_undirected_graph_is_its_csr_and_weights_move_along() -> None:
    graph = gp.Graph.from_edgelist([0, 2], [1, 1], [5, 6])
    assert graph.csc is graph.to_csr()
    directed = gp.Graph.from_edgelist([0, 2, 1], [1, 1, 0], [5, 6, 7], directed=True)
    assert directed.csc.weights is not None
    assert directed.csc.weights.tolist() == [7, 5, 6]


def test_num_vertices_is_checked_before_memory_is_allocated() -> None:
    with pytest.raises(ArgumentError, match=f"from 0 to {MAX_VERTICES:,}"):
        gp.Graph.from_edgelist([], [], num_vertices=MAX_VERTICES + 1)


def test_repr_and_describe() -> None:
    graph = gp.Graph.from_edgelist([0], [1], np.array([1], np.float32), directed=True)
    assert repr(graph) == "<Graph: 2 vertices, 1 stored edges, directed, float32 weights>"
    assert graph.describe() == "2 vertices, 1 stored edges, directed, float32 weights, 32 bytes"


def test_the_content_hash_depends_on_edges_and_weights() -> None:
    src, dst, weight = np.array([0, 1, 2, 2]), np.array([1, 2, 0, 2]), np.array([1.0, 2.0, 3.0, 4.0])
    build = partial(gp.Graph.from_edgelist, num_vertices=3, directed=True)
    first = build(src, dst, weight).content_hash
    assert build(src[::-1], dst[::-1], weight[::-1]).content_hash == first
    assert gp.Graph.from_csr(*build(src, dst, weight).to_csr(), directed=True, threads=1).content_hash == first
    others = [build(src, dst), build(dst, src, weight), build(src, dst, weight[::-1]), build(src[1:], dst[1:])]
    assert len({first, *(other.content_hash for other in others)}) == 5

"""Tests of vertex numbering."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentTypeError, GraphError
from gpu_pregel.host.graphs import numbering


@pytest.mark.parametrize(
    ("src", "dst", "options", "n", "ids"),
    [
        ([0, 1], [1, 2], {}, 3, None),
        ([0, 11], [1, 2], {}, 12, None),  # 11 < 4 * 4 distinct ids
        ([0, 15], [1, 2], {}, 16, None),
        ([0, 16], [1, 2], {}, 4, [0, 1, 2, 16]),
        ([0, 16], [1, 2], {"renumber": False}, 17, None),
        ([0, 1], [1, 2], {"renumber": True}, 3, [0, 1, 2]),
        ([0, 99], [1, 2], {"num_vertices": 100}, 100, None),
        ([1 << 50, 7], [7, 3], {}, 3, [3, 7, 1 << 50]),
        (np.array([2**64 - 1, 5], np.uint64), np.array([5, 5], np.uint64), {}, 2, [5, 2**64 - 1]),
        (np.array([2**60 + 1, 5], np.uint64), np.array([2**60, 5]), {}, 3, [5, 2**60, 2**60 + 1]),
        (np.array([2**60 + 1, 5]), np.array([2**64 - 1, 5], np.uint64), {}, 3, [5, 2**60 + 1, 2**64 - 1]),
        ([2**70, 5], [5, 2**70], {}, 2, [2**70, 5]),
        (["b", "a"], ["c", "b"], {}, 3, ["b", "c", "a"]),
        ([("x", 1), ("y", 2)], [("y", 2), ("x", 1)], {}, 2, [("x", 1), ("y", 2)]),
        ([b"k"], [b"l"], {}, 2, [b"k", b"l"]),
    ],
)
def test_numbering_rules(src: Any, dst: Any, options: dict[str, Any], n: int, ids: list[Any] | None) -> None:
    def column(values: Any) -> Any:
        if not isinstance(values[0], tuple):
            return values
        array = np.empty(len(values), object)
        array[:] = values
        return array

    graph = gp.Graph.from_edgelist(column(src), column(dst), directed=True, **options)
    assert graph.num_vertices == n
    assert (graph.ids is None) == (ids is None)
    if ids is not None and graph.ids is not None:
        assert graph.ids.tolist() == ids
    pairs = {(graph.to_ids(np.array([u]))[0], graph.to_ids(np.array([v]))[0]) for u, v in _edges(graph)}
    assert pairs == set(zip(np.asarray(src).tolist() if not isinstance(src[0], tuple) else src, dst, strict=True))


def _edges(graph: gp.Graph) -> list[tuple[int, int]]:
    src, dst, _ = graph.to_edgelist()
    return list(zip(src.tolist(), dst.tolist(), strict=True))


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 400)), min_size=1, max_size=60))
def test_density_test_is_exact(edges: list[tuple[int, int]]) -> None:
    src, dst = np.array(edges).T
    distinct = len(np.unique(edges))
    largest = int(np.max(edges))
    for block in (1, 3, 1 << 20):
        numbering._FIRST_BLOCK = block
        try:
            assert numbering._is_dense(src, dst, largest) == (largest < 4 * distinct)
        finally:
            numbering._FIRST_BLOCK = 1 << 20


def test_num_vertices_must_equal_the_number_of_renumbered_ids() -> None:
    with pytest.raises(GraphError, match="num_vertices is 5, but the edges have 2 distinct ids"):
        gp.Graph.from_edgelist(["a"], ["b"], num_vertices=5)
    assert gp.Graph.from_edgelist(["a"], ["b"], num_vertices=2).num_vertices == 2


def test_unhashable_ids_are_refused() -> None:
    lists = np.empty(1, object)
    lists[0] = {"a": [1]}
    with pytest.raises(ArgumentTypeError, match=r"src\[0\] is of type dict, which is not hashable"):
        gp.Graph.from_edgelist(lists, lists)


def test_object_floats_are_refused() -> None:
    values = np.array([0.5, 1.5], object)
    with pytest.raises(ArgumentTypeError, match="vertex ids of type double"):
        gp.Graph.from_edgelist(values, values)

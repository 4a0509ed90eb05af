"""Intersections of sorted rows: sets and bisection as oracles, interpreted and compiled."""

from __future__ import annotations

from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.kernels.library.sorted_rows import count_common, find
from tests.devices import on

ROWS = st.lists(st.integers(0, 40), max_size=40).map(sorted)


@given(ROWS, st.integers(-1, 41), st.data())
def test_find_returns_the_position_of_a_bisection(row: list[int], vertex: int, data: st.DataObject) -> None:
    begin = data.draw(st.integers(0, len(row)))
    end = data.draw(st.integers(begin, len(row)))
    assert find(row, begin, end, vertex) == bisect_left(row, vertex, begin, end)


@given(ROWS, ROWS)
def test_count_common_counts_each_vertex_once(row: list[int], other: list[int]) -> None:
    assert count_common(row, 0, len(row), other, 0, len(other)) == len(set(row) & set(other))


def test_find_takes_logarithmic_steps() -> None:
    read = []

    class Row(list[int]):
        def __getitem__(self, position):  # type: ignore[no-untyped-def]
            read.append(position)
            return position

    assert find(Row(), 0, 1 << 20, 700_001) == 700_001
    assert len(read) <= 6 * 20


@pytest.mark.parametrize("device", [on("cpu"), on("python"), on("emulated"), on("cuda")])
def test_bodies_of_operators_call_it_as_an_attribute(device: str) -> None:
    def common(u, v, weight, indptr, indices):  # type: ignore[no-untyped-def]
        return gp.sorted_rows.count_common(indices, indptr[u], indptr[u + 1], indices, indptr[v], indptr[v + 1])

    for directed, expected in ((False, 6), (True, 1)):
        graph = gp.Graph.from_edgelist([0, 0, 1, 2, 2], [1, 2, 2, 3, 3], directed=directed)
        frontier = gp.Frontier(graph, device=device)
        assert gp.process_edges(common, frontier, frontier.csr()[:2], returns="sum") == expected

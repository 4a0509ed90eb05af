"""Tests of partitions: ranges that are balanced and cover everything, edges that lie with the right owner."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError
from gpu_pregel.host.graphs import partitions as host_partitions
from gpu_pregel.host.graphs.partitions import Side, cut_ranges, full_bitmap, pack_bits, partition_graph
from tests.graphs import arrays, edge_lists


@given(st.lists(st.integers(0, 50), min_size=1, max_size=600), st.integers(1, 6))
def test_ranges_cover_all_vertices_and_are_cut_at_words(degrees: list[int], partitions: int) -> None:
    partitions = min(partitions, -(-len(degrees) // 64))
    bounds = cut_ranges(np.array(degrees), partitions)
    assert len(bounds) == partitions + 1
    assert (bounds[0], bounds[-1]) == (0, len(degrees))
    assert all(bound % 64 == 0 for bound in bounds[:-1])
    assert all(low < high for low, high in pairwise(bounds))


def test_ranges_are_balanced_by_edges() -> None:
    degrees = np.zeros(64 * 100, np.int64)
    degrees[: 64 * 10] = 1000
    bounds = cut_ranges(degrees, 2)
    # Half of the edges lie below vertex 320; the weight of the vertices themselves moves the cut but little.
    assert 320 <= bounds[1] <= 64 * 7
    assert cut_ranges(np.ones(64 * 100, np.int64), 4) == [0, 1600, 3200, 4800, 6400]


@pytest.mark.parametrize(("n", "partitions"), [(64, 2), (0, 2), (129, 4), (10, 0)])
def test_too_many_partitions_are_refused(n: int, partitions: int) -> None:
    with pytest.raises(ArgumentError, match="partitions must be from 1 to"):
        cut_ranges(np.zeros(n, np.int64), partitions)


def edges_of(side: Side, rows: Any, n: int) -> list[tuple[int, int]]:
    numbers = range(n) if rows is None else rows.tolist()
    return [(row, int(other)) for row in numbers for other in side.indices[side.begins[row] : side.ends[row]]]


@pytest.mark.parametrize("partitions", [1, 2, 3, 7])
def test_each_edge_lies_once_with_the_owner_of_its_other_end(partitions: int) -> None:
    graph = gp.kronecker(9, 4)
    src, dst, _ = gp.Graph.from_csr(*graph.to_csr(), directed=True).to_edgelist()
    expected = sorted(zip(src.tolist(), dst.tolist(), strict=True))
    parts = partition_graph(graph.to_csr(), graph.csc, partitions, threads=2)
    pushed, pulled = [], []
    for part in parts:
        out = edges_of(part.out_edges, None, graph.num_vertices)
        assert all(part.first <= v < part.last for _, v in out)
        assert pack_bits(np.isin(np.arange(graph.num_vertices), [u for u, _ in out])).tolist() == part.sources.tolist()
        into = edges_of(part.in_edges, part.rows, graph.num_vertices)
        assert all(part.first <= u < part.last for _, u in into)
        if part.rows is not None:
            assert part.rows.tolist() == sorted({v for v, _ in into})
        pushed += out
        pulled += [(u, v) for v, u in into]
    assert sorted(pushed) == expected
    assert sorted(pulled) == expected


def test_hubs_are_cut_into_pieces_that_make_up_their_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_partitions, "HUB_EDGES", 10)
    star = gp.Graph.from_edgelist(np.zeros(95, np.int64), np.arange(1, 96))
    (part,) = partition_graph(star.to_csr(), star.csc, 1, threads=1)
    for hubs in (part.in_hubs, part.out_hubs):
        assert hubs.rows.tolist() == [0] * 10
        assert (hubs.ends - hubs.begins).tolist() == [10] * 9 + [5]
        assert hubs.begins[0] == star.indptr[0]
        assert hubs.ends[-1] == star.indptr[1]
        assert hubs.begins[1:].tolist() == hubs.ends[:-1].tolist()


@given(edge_lists(max_vertices=200))
def test_bitmaps(graph: Any) -> None:
    n, edges = graph
    flags = np.zeros(n, bool)
    flags[arrays(edges)[0]] = True
    words = pack_bits(flags)
    assert [bool(int(words[v // 64]) >> (v % 64) & 1) for v in range(n)] == flags.tolist()
    assert full_bitmap(n).tolist() == pack_bits(np.ones(n, bool)).tolist()

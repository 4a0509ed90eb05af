"""Partitions: balanced ranges that cover all vertices, edges with the right owner, and memory."""

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
from gpu_pregel.host.graphs.partitions import (
    Partition,
    PartitionEdges,
    cut_ranges,
    full_bitmap,
    pack_bits,
    partition_graph,
)
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
    # Half of the edges are below vertex 320; the weight of the vertices themselves hardly moves the cut.
    assert 320 <= bounds[1] <= 64 * 7
    assert cut_ranges(np.ones(64 * 100, np.int64), 4) == [0, 1600, 3200, 4800, 6400]


def test_a_vertex_counts_as_eight_edges_for_each_additional_partition() -> None:
    """The first 512 vertices have 24 edges each, and three times as many have none."""
    degrees = np.repeat([24, 0], [512, 1536])
    assert cut_ranges(degrees, 2) == [0, 448, 2048]
    assert cut_ranges(degrees, 3) == [0, 384, 1088, 2048]


@pytest.mark.parametrize(("n", "partitions"), [(64, 2), (0, 2), (129, 4), (10, 0)])
def test_too_many_partitions_are_rejected(n: int, partitions: int) -> None:
    with pytest.raises(ArgumentError, match="partitions must be from 1 to"):
        cut_ranges(np.zeros(n, np.int64), partitions)


def edges_of(edges: PartitionEdges, n: int) -> list[tuple[int, int]]:
    rows = range(n) if edges.rows is None else edges.rows.tolist()
    return [
        (row, int(other))
        for row, begin, end in zip(rows, edges.begins, edges.ends, strict=True)
        for other in edges.indices[begin:end]
    ]


def sources_of(part: Partition) -> list[tuple[int, int]]:
    """Return the row and the vertex of each source, as the push kernel finds them."""
    numbers, bits, firsts = part.sources
    found = []
    for k, word in enumerate(bits.tolist()):
        number = k if numbers is None else int(numbers[k])
        vertices = [64 * number + place for place in range(64) if word >> place & 1]
        found += [(u if firsts is None else int(firsts[k]) + i, u) for i, u in enumerate(vertices)]
    return found


@pytest.mark.parametrize("partitions", [1, 2, 3, 7])
def test_each_edge_is_stored_once_with_the_owner_of_its_other_end(
    partitions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_partitions, "_BLOCK", 50)
    # Every vertex has edges, the first ones of partitions and of blocks too.
    ring, (src, dst, _) = np.arange(512), gp.kronecker(9, 4).to_edgelist()
    graph = gp.Graph.from_edgelist(np.append(src, ring), np.append(dst, (ring + 1) % 512), num_vertices=512)
    src, dst, _ = gp.Graph.from_csr(*graph.to_csr(), directed=True).to_edgelist()
    expected = sorted(zip(src.tolist(), dst.tolist(), strict=True))
    parts = partition_graph(graph.to_csr(), graph.csc, partitions, threads=2)
    pushed, pulled = [], []
    for part in parts:
        out = edges_of(part.out_edges, graph.num_vertices)
        assert all(part.first <= v < part.last for _, v in out)
        assert sorted({u for u, _ in out}) == [u for _, u in sources_of(part)]
        into = edges_of(part.in_edges, graph.num_vertices)
        assert all(part.first <= u < part.last for _, u in into)
        if part.out_edges.rows is not None:
            assert part.out_edges.rows.tolist() == [u for _, u in sources_of(part)]
            assert [row for row, _ in sources_of(part)] == list(range(len(part.out_edges.rows)))
        if part.in_edges.rows is not None:
            assert part.in_edges.rows.tolist() == sorted({v for v, _ in into})
        pushed += out
        pulled += [(u, v) for v, u in into]
    assert part.is_whole == (partitions == 1)
    assert sorted(pushed) == expected
    assert sorted(pulled) == expected


def test_pieces_of_hubs_make_up_their_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_partitions, "HUB_EDGES", 10)
    star = gp.Graph.from_edgelist(np.zeros(95, np.int64), np.arange(1, 96))
    (part,) = partition_graph(star.to_csr(), star.csc, 1, threads=1)
    for hubs in (part.in_hubs, part.out_hubs):
        assert hubs.rows.tolist() == [0] * 10
        assert (hubs.ends - hubs.begins).tolist() == [10] * 9 + [5]
        assert hubs.begins[0] == star.indptr[0]
        assert hubs.ends[-1] == star.indptr[1]
        assert hubs.begins[1:].tolist() == hubs.ends[:-1].tolist()
    assert (part.hub_words.tolist(), part.hub_bits.tolist()) == ([0] * 10, [1] * 10)


def test_pieces_of_hubs_name_the_words_of_their_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_partitions, "HUB_EDGES", 10)
    leaves = np.arange(200)
    graph = gp.Graph.from_edgelist(np.full(200, 130), leaves, num_vertices=200, directed=True)
    for part in partition_graph(graph.to_csr(), graph.csc, 3, threads=1):
        assert part.out_edges.rows.tolist() == [130]  # type: ignore[union-attr]
        assert [part.sources.numbers[k] for k in part.hub_words] == [2] * len(part.out_hubs.rows)  # type: ignore[index]
        assert part.hub_bits.tolist() == [1 << 2] * len(part.out_hubs.rows)
        assert (part.out_hubs.ends - part.out_hubs.begins).sum() == part.last - part.first


def test_a_hub_need_not_be_the_first_source_of_its_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """The words 0, 1 and 2 have sources, of which 66 and 130 are hubs; each hub follows another source."""
    monkeypatch.setattr(host_partitions, "HUB_EDGES", 10)
    hubs, sources = [66, 130], [0, 3, 65, 67, 128, 191]
    src = np.concatenate([np.repeat(hubs, 192), np.repeat(sources, 3)])
    dst = np.concatenate([np.tile(np.arange(192), 2), np.tile([1, 100, 150], 6)])
    graph = gp.Graph.from_edgelist(src, dst, num_vertices=192, directed=True)
    for part in partition_graph(graph.to_csr(), graph.csc, 3, threads=1):
        rows, words = part.out_edges.rows, part.sources.numbers
        assert rows is not None
        assert words is not None
        found = [
            64 * int(words[k]) + int(b).bit_length() - 1 for k, b in zip(part.hub_words, part.hub_bits, strict=True)
        ]
        assert found == rows[part.out_hubs.rows].tolist() == np.repeat(hubs, 7).tolist()


def test_a_row_of_exactly_the_length_of_a_piece_is_no_hub() -> None:
    """As in the kernels' ``row_range``, which would otherwise read its edges twice or not at all."""
    begins, ends = np.array([0, 10, 21]), np.array([10, 21, 30])
    edges = PartitionEdges(None, begins, ends, np.zeros(30, np.uint32), None)
    pieces = host_partitions.cut_hubs(edges, 10)
    assert (pieces.rows.tolist(), pieces.begins.tolist(), pieces.ends.tolist()) == ([1, 1], [10, 20], [20, 21])


def nbytes_of(part: Partition) -> int:
    """Bytes of a partition's own arrays, without the edges of the graph that all partitions share."""
    sides = [(edges.rows, edges.begins, edges.ends) for edges in (part.out_edges, part.in_edges)]
    own = [*sides[0], *sides[1], *part.sources, *part.out_hubs, *part.in_hubs, part.hub_words, part.hub_bits]
    return sum(array.nbytes for array in own if array is not None)


@pytest.mark.parametrize(
    ("graph", "border"),
    [
        (gp.grid(1, 1 << 16, holes=0), 2),
        (gp.grid(256, 256, holes=0), 2 * 256),
        (gp.Graph.from_edgelist(np.arange(0, 1 << 16, 64), np.arange(0, 1 << 16, 64), num_vertices=1 << 16), 0),
    ],
    ids=["path", "grid", "loops"],
)
def test_memory_grows_with_the_partition_and_not_with_the_graph(graph: gp.Graph, border: int) -> None:
    """``border`` vertices have edges on both sides of a cut."""
    totals = {}
    for partitions in (1, 4, 16, 64):
        parts = graph._partitions(partitions, threads=2)
        for part in parts:
            out_rows, in_rows = len(part.out_edges.begins), len(part.in_edges.begins)
            edges = int((part.out_edges.ends - part.out_edges.begins).sum())
            assert max(out_rows, in_rows) <= max(edges, part.last - part.first)
            # Each row has a vertex and two bounds on both sides, and at most one word on the sparse side.
            assert nbytes_of(part) <= 36 * out_rows + 20 * in_rows + 8 * (part.last - part.first)
        totals[partitions] = sum(map(nbytes_of, parts))
    assert totals[64] - totals[4] <= 60 * 56 * border
    assert totals[64] < 64 * graph.num_vertices


@given(edge_lists(max_vertices=200))
def test_bitmaps(graph: Any) -> None:
    n, edges = graph
    flags = np.zeros(n, bool)
    flags[arrays(edges)[0]] = True
    words = pack_bits(flags)
    assert [bool(int(words[v // 64]) >> (v % 64) & 1) for v in range(n)] == flags.tolist()
    assert full_bitmap(n).tolist() == pack_bits(np.ones(n, bool)).tolist()

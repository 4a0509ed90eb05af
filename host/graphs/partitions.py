"""Partitions of a graph: contiguous vertex ranges with their share of the edges, as in Gemini (OSDI 2016).

A partition is the master of its vertices. It has the out-edges whose destination it owns and the in-edges whose source
it owns. Rows are sorted, so the partition's share of a row is a slice of it, and no edge is copied.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from gpu_pregel.errors import ArgumentError
from gpu_pregel.host.devices.threads import parallel
from gpu_pregel.host.graphs.csr import CSR, read_only
from gpu_pregel.kernels.graphs import partition_cpu
from gpu_pregel.kernels.library.bits_cpu import WORD_BITS
from gpu_pregel.kernels.traverse.rows_cpu import HUB_EDGES

Array = np.ndarray[Any, Any]

ALPHA_PER_PARTITION = 8
"""Gemini counts a vertex as this many edges for each additional partition."""
_BLOCK = 1 << 14
"""Vertices whose rows one thread cuts at a time."""


@dataclass(frozen=True)
class PartitionEdges:
    """A partition's share of the edges in one direction.

    Attributes
    ----------
    rows : uint32[r] or None
        The vertices that have edges here, ascending; None if the partition is the whole graph, where row ``u`` is
        vertex ``u``.
    begins, ends : int64[r]
        Row ``i`` is ``indices[begins[i]:ends[i]]``.
    indices : uint32[m]
        The other ends of all edges of the graph.
    weights : [m] or None
    """

    rows: Array | None
    begins: Array
    ends: Array
    indices: Array
    weights: Array | None


class HubPieces(NamedTuple):
    """Rows of hubs in pieces of at most ``HUB_EDGES`` edges: piece ``i`` is ``indices[begins[i]:ends[i]]``."""

    rows: Array
    """The position of each piece's row among the partition's rows."""
    begins: Array
    ends: Array


class SourceWords(NamedTuple):
    """The words of the frontier's bitmap that contain sources of a partition's out-edges.

    Attributes
    ----------
    numbers : uint32[w] or None
        The position of each word in the bitmap; None if all words are listed.
    bits : uint32[w] or uint64[w]
        A bit for each source.
    firsts : uint32[w] or None
        The row of each word's lowest source; the other sources of the word have the next rows. None if the partition
        is the whole graph, where row ``u`` is vertex ``u``.
    """

    numbers: Array | None
    bits: Array
    firsts: Array | None


@dataclass(frozen=True)
class Partition:
    """A range of vertices, cut at whole words of the bitmaps, and its edges.

    Attributes
    ----------
    first, last : int
        The partition is the master of the vertices from ``first`` to ``last - 1``.
    out_edges : PartitionEdges
        Sparse side: the edges whose destination is in the range, by source.
    sources : SourceWords
        Where the bits of those sources are.
    in_edges : PartitionEdges
        Dense side: the edges whose source is in the range, by destination.
    out_hubs, in_hubs : HubPieces
        The rows that are too long for one thread.
    hub_words, hub_bits : uint32[h], uint64[h]
        For each piece of ``out_hubs``: the position of its source's word in ``sources``, and the source's bit.
    """

    number: int
    first: int
    last: int
    out_edges: PartitionEdges
    sources: SourceWords
    in_edges: PartitionEdges
    out_hubs: HubPieces
    in_hubs: HubPieces
    hub_words: Array
    hub_bits: Array

    @property
    def is_whole(self) -> bool:
        """Whether the partition is the whole graph."""
        return self.out_edges.rows is None


def cut_ranges(out_degrees: Array, partitions: int) -> list[int]:
    """Return the bounds of ``partitions`` vertex ranges, balanced by out-degree + alpha, at multiples of 64.

    This is Gemini's chunk-based partitioning: each range takes vertices until it has its share of the remaining load.
    """
    n = len(out_degrees)
    if not 1 <= partitions <= max(1, -(-n // WORD_BITS)):
        raise ArgumentError(
            f"partitions must be from 1 to {max(1, -(-n // WORD_BITS)):,}, as each has at least {WORD_BITS} vertices, "
            f"not {partitions}"
        )
    alpha = ALPHA_PER_PARTITION * (partitions - 1)
    load = np.cumsum(out_degrees + alpha)
    bounds = [0]
    for rest in range(partitions, 1, -1):
        done = load[bounds[-1] - 1] if bounds[-1] else 0
        target = done + (load[-1] - done) / rest
        cut = WORD_BITS * round(int(np.searchsorted(load, target)) / WORD_BITS)
        most = WORD_BITS * (-(-n // WORD_BITS) - (rest - 1))
        bounds.append(min(max(cut, bounds[-1] + WORD_BITS), most))
    return [*bounds, n]


def partition_graph(csr: CSR, csc: CSR | None, partitions: int, *, threads: int) -> list[Partition]:
    """Cut a graph into partitions; without a CSC their dense side is empty."""
    bounds = cut_ranges(np.diff(csr.indptr), partitions)
    out_edges = _cut_edges(csr, bounds, threads)
    in_edges = _cut_edges(csc, bounds, threads) if csc is not None else [_NO_EDGES] * partitions
    return [_make_partition(number, bounds, out_edges[number], in_edges[number]) for number in range(partitions)]


def _make_partition(number: int, bounds: list[int], out_edges: PartitionEdges, in_edges: PartitionEdges) -> Partition:
    sources, hubs = find_sources(out_edges, WORD_BITS), cut_hubs(out_edges, HUB_EDGES)
    vertices = hubs.rows if out_edges.rows is None else out_edges.rows[hubs.rows]
    words = vertices // WORD_BITS
    if sources.firsts is not None:
        words = np.searchsorted(sources.firsts, hubs.rows, side="right") - 1
    return Partition(
        number=number,
        first=bounds[number],
        last=bounds[number + 1],
        out_edges=out_edges,
        sources=sources,
        in_edges=in_edges,
        out_hubs=hubs,
        in_hubs=cut_hubs(in_edges, HUB_EDGES),
        hub_words=words.astype(np.uint32),
        hub_bits=np.uint64(1) << (vertices % WORD_BITS).astype(np.uint64),
    )


_NO_OFFSETS = read_only(np.empty(0, np.int64))
_NO_VERTICES = read_only(np.empty(0, np.uint32))
_NO_EDGES = PartitionEdges(_NO_VERTICES, _NO_OFFSETS, _NO_OFFSETS, _NO_VERTICES, None)


def find_sources(edges: PartitionEdges, word_bits: int) -> SourceWords:
    """Find the words, of 32 or 64 bits, of a bitmap that contain the rows' vertices."""
    if edges.rows is None:
        return SourceWords(None, pack_bits(edges.ends > edges.begins), None)
    words = edges.rows // word_bits
    firsts = np.flatnonzero(np.diff(words, prepend=words[:1] + 1))
    one: Any = np.uint64(1) if word_bits == 64 else np.uint32(1)
    bits = np.bitwise_or.reduceat(one << (edges.rows % word_bits).astype(one.dtype), firsts) if len(words) else words
    return SourceWords(words[firsts], bits.astype(one.dtype), firsts.astype(np.uint32))


def cut_hubs(edges: PartitionEdges, hub_edges: int) -> HubPieces:
    """Cut every row of more than ``hub_edges`` edges into pieces of at most that many."""
    lengths = edges.ends - edges.begins
    hubs = np.flatnonzero(lengths > hub_edges)
    counts = -(-lengths[hubs] // hub_edges)
    rows = np.repeat(hubs, counts)
    places = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    begins = edges.begins[rows] + places * hub_edges
    return HubPieces(rows.astype(np.uint32), begins, np.minimum(begins + hub_edges, edges.ends[rows]))


def _cut_edges(csr: CSR, bounds: list[int], threads: int) -> list[PartitionEdges]:
    """Cut every row at the bounds; a partition gets the rows in which it has edges."""
    indptr, indices = read_only(csr.indptr), read_only(csr.indices)
    weights = None if csr.weights is None else read_only(csr.weights)
    partitions, blocks = len(bounds) - 1, -(-(len(indptr) - 1) // _BLOCK)
    if partitions == 1:
        return [PartitionEdges(None, indptr[:-1], indptr[1:], indices, weights)]
    cuts = np.array(bounds, np.int64)
    counts = np.zeros((blocks, partitions), np.int64)
    parallel(partition_cpu.count_rows, blocks, 1, indptr, indices, cuts, _BLOCK, counts, threads=threads)
    # The rows of a partition are adjacent, block after block.
    stops = np.cumsum(counts.T).reshape(partitions, blocks)
    places = np.ascontiguousarray(stops.T) - counts
    total = int(stops[-1, -1])
    rows, begins, ends = np.empty(total, np.uint32), np.empty(total, np.int64), np.empty(total, np.int64)
    arguments = (indptr, indices, cuts, _BLOCK, places, rows, begins, ends)
    parallel(partition_cpu.cut_rows, blocks, 1, *arguments, threads=threads)
    edges = []
    for first, last in pairwise([0, *map(int, stops[:, -1])]):
        own_rows, own_begins, own_ends = (read_only(array[first:last]) for array in (rows, begins, ends))
        edges.append(PartitionEdges(own_rows, own_begins, own_ends, indices, weights))
    return edges


def pack_bits(flags: Array) -> Array:
    """Pack an array of booleans into a bitmap."""
    packed = np.zeros(-(-len(flags) // WORD_BITS) * 8, np.uint8)
    bits = np.packbits(flags, bitorder="little")
    packed[: len(bits)] = bits
    return packed.view("<u8").astype(np.uint64)


def full_bitmap(n: int) -> Array:
    """Return a bitmap in which the bits of all ``n`` vertices are set."""
    words = np.full(-(-n // WORD_BITS), ~np.uint64(0))
    if n % WORD_BITS:
        words[-1] = np.uint64((1 << (n % WORD_BITS)) - 1)
    return words

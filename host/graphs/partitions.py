"""Partitions of a graph: contiguous vertex ranges, and each one's share of the edges, as in Gemini (OSDI 2016).

A partition is master of its vertices. Out-edges lie with the owner of the destination, in-edges with the owner of the
source. Rows are sorted, so that a partition's share of a row is a slice of it: nothing is copied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpu_pregel.errors import ArgumentError
from gpu_pregel.host.devices.threads import parallel
from gpu_pregel.host.graphs.csr import CSR, read_only
from gpu_pregel.kernels.graphs import partition_cpu
from gpu_pregel.kernels.library.bits_cpu import WORD_BITS
from gpu_pregel.kernels.programs.rows_cpu import HUB_EDGES

Array = np.ndarray[Any, Any]

ALPHA_PER_PARTITION = 8
"""Gemini weighs a vertex as so many edges for each further partition."""
_CHUNK = 1 << 14


@dataclass(frozen=True)
class Side:
    """A partition's share of the edges in one direction: row ``u`` is ``indices[begins[u]:ends[u]]``."""

    begins: Array
    ends: Array
    indices: Array
    weights: Array | None


class Pieces(NamedTuple):
    """The rows of hubs in pieces of at most ``HUB_EDGES`` edges: piece i is ``indices[begins[i]:ends[i]]``."""

    rows: Array
    begins: Array
    ends: Array


@dataclass(frozen=True)
class Partition:
    """A range of vertices, cut at whole words of the bitmaps, and the edges that lie with it.

    Attributes
    ----------
    first, last : int
        The vertices whose master this is.
    out_edges : Side
        Sparse side: edges whose destination is here, by source; ``sources`` has a bit for each source of one.
    in_edges : Side
        Dense side: edges whose source is here, by destination; ``rows`` are the destinations that have any, or None
        if the partition is the whole graph; ``in_hubs`` and ``out_hubs`` are
        the rows that are too long for one thread.
    """

    number: int
    first: int
    last: int
    out_edges: Side
    sources: Array
    in_edges: Side
    rows: Array | None
    in_hubs: Pieces
    out_hubs: Pieces

    @property
    def words(self) -> Array:
        """The range of the bitmaps' words, int64[2]."""
        return np.array([self.first // WORD_BITS, -(-self.last // WORD_BITS)], np.int64)


def cut_ranges(out_degrees: Array, partitions: int) -> list[int]:
    """Bounds of ``partitions`` vertex ranges, balanced by out-degree + alpha and cut at multiples of 64.

    Chunk-based partitioning of Gemini: each range takes vertices until it has its share of what is left.
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
    out_degrees = np.diff(csr.indptr)
    bounds = cut_ranges(out_degrees, partitions)
    out_sides = _sides(csr, bounds, threads)
    in_sides = _sides(csc, bounds, threads) if csc is not None else [None] * partitions
    result = []
    for number, (out_side, in_side) in enumerate(zip(out_sides, in_sides, strict=True)):
        has_edges = out_side.ends > out_side.begins
        rows = None
        if in_side is not None and partitions > 1:
            rows = np.flatnonzero(in_side.ends > in_side.begins).astype(np.uint32)
        result.append(
            Partition(
                number=number,
                first=bounds[number],
                last=bounds[number + 1],
                out_edges=out_side,
                sources=pack_bits(has_edges),
                in_edges=in_side or _NO_SIDE,
                rows=rows,
                in_hubs=cut_hubs(in_side or _NO_SIDE, HUB_EDGES),
                out_hubs=cut_hubs(out_side, HUB_EDGES),
            )
        )
    return result


_NO_ROWS = read_only(np.empty(0, np.int64))
_NO_SIDE = Side(_NO_ROWS, _NO_ROWS, read_only(np.empty(0, np.uint32)), None)


def cut_hubs(side: Side, hub_edges: int) -> Pieces:
    """Cut every row of more than ``hub_edges`` edges into pieces of that many."""
    lengths = side.ends - side.begins
    hubs = np.flatnonzero(lengths > hub_edges)
    counts = -(-lengths[hubs] // hub_edges)
    rows = np.repeat(hubs, counts)
    places = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    begins = side.begins[rows] + places * hub_edges
    return Pieces(rows.astype(np.uint32), begins, np.minimum(begins + hub_edges, side.ends[rows]))


def _sides(csr: CSR, bounds: list[int], threads: int) -> list[Side]:
    """Each partition's slice of every row, by its bounds."""
    indptr, indices = read_only(csr.indptr), read_only(csr.indices)
    weights = None if csr.weights is None else read_only(csr.weights)
    if len(bounds) == 2:
        return [Side(indptr[:-1], indptr[1:], indices, weights)]
    n = len(indptr) - 1
    cuts = np.empty((len(bounds), n), np.int64)
    parallel(partition_cpu.cut_rows, n, _CHUNK, indptr, indices, np.array(bounds, np.int64), cuts, threads=threads)
    return [Side(read_only(cuts[k]), read_only(cuts[k + 1]), indices, weights) for k in range(len(bounds) - 1)]


def pack_bits(flags: Array) -> Array:
    """A bitmap of an array of booleans."""
    packed = np.zeros(-(-len(flags) // WORD_BITS) * 8, np.uint8)
    bits = np.packbits(flags, bitorder="little")
    packed[: len(bits)] = bits
    return packed.view("<u8").astype(np.uint64)


def full_bitmap(n: int) -> Array:
    """A bitmap with a bit for each of n vertices."""
    words = np.full(-(-n // WORD_BITS), ~np.uint64(0))
    if n % WORD_BITS:
        words[-1] = np.uint64((1 << (n % WORD_BITS)) - 1)
    return words

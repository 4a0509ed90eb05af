"""A graph's arrays in the memory of a device: each copied on first use, and kept while the graph is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from gpu_pregel.errors import GraphError
from gpu_pregel.host.csr import CSR
from gpu_pregel.host.partitions import Partition, Side, cut_hubs

_SMALL_OFFSETS = 1 << 32
_MOST_VERTICES = (1 << 32) - (1 << 12)
"""Kernels count vertices in 32 bits, a block of threads beyond the last one included."""


@dataclass(frozen=True)
class DeviceSide:
    """A partition's share of the edges in one direction, on a device.

    Attributes
    ----------
    begins, ends : array
        Of each row, by vertex.
    rows : uint32 array
        The rows that have edges; empty if all are meant.
    piece_rows, piece_begins, piece_ends : array
        Long rows in pieces: each piece's row and edges.
    hubs, firsts : uint32 array
        Each long row, and its first piece; one more at the end.
    """

    begins: Any
    ends: Any
    indices: Any
    weights: Any
    rows: Any
    piece_rows: Any
    piece_begins: Any
    piece_ends: Any
    hubs: Any
    firsts: Any
    count: int
    """Rows to go through."""


class DeviceGraph:
    """Copies of host arrays on a device, by the array that was copied."""

    def __init__(self, device: Any, num_edges: int) -> None:
        self.device = device
        self.offset = np.dtype(np.uint32 if num_edges < _SMALL_OFFSETS else np.int64)
        self._copies: dict[Any, tuple[Any, Any]] = {}

    def copy(self, array: np.ndarray[Any, Any], dtype: Any = None) -> Any:
        """The copy of a host array that does not change, in another dtype if one is given."""
        key = (array.ctypes.data, len(array), np.dtype(dtype or array.dtype))
        if key not in self._copies:
            self._copies[key] = array, self.device.upload(np.ascontiguousarray(array, dtype))
        return self._copies[key][1]

    def offsets(self, array: np.ndarray[Any, Any]) -> Any:
        """The copy of an array of positions of edges, or of degrees."""
        return self.copy(array, self.offset)

    def csr(self, csr: CSR, state: int) -> tuple[Any, Any]:
        """``indptr`` and ``indices``, if there is room for them and ``state`` bytes more."""
        n = len(csr.indptr) - 1
        check_vertices(n)
        there = {key[0] for key in self._copies}
        sizes = {csr.indptr.ctypes.data: (n + 1) * self.offset.itemsize, csr.indices.ctypes.data: csr.indices.nbytes}
        missing = sum(nbytes for address, nbytes in sizes.items() if address not in there)
        self.device.require(missing + state, f"a graph of {n:,} vertices and {len(csr.indices):,} stored edges")
        return self.offsets(csr.indptr), self.copy(csr.indices)

    def side(self, side: Side, rows: np.ndarray[Any, Any] | None, hub_edges: int) -> DeviceSide:
        """The copy of a partition's edges; ``rows`` as in the partition."""
        key = (id(side), hub_edges)
        if key not in self._copies:
            self._copies[key] = side, self._copy_side(side, rows, hub_edges)
        found: DeviceSide = self._copies[key][1]
        return found

    def _copy_side(self, side: Side, rows: np.ndarray[Any, Any] | None, hub_edges: int) -> DeviceSide:
        begins, ends = self._bounds(side)
        pieces = cut_hubs(side, hub_edges)
        hubs, firsts = np.unique(pieces.rows, return_index=True)
        return DeviceSide(
            begins=begins,
            ends=ends,
            indices=self.copy(side.indices),
            weights=None if side.weights is None else self.copy(side.weights),
            rows=self.copy(np.empty(0, np.uint32) if rows is None else rows),
            piece_rows=self.copy(pieces.rows),
            piece_begins=self.offsets(pieces.begins),
            piece_ends=self.offsets(pieces.ends),
            hubs=self.copy(hubs),
            firsts=self.copy(np.append(firsts, len(pieces.rows)).astype(np.uint32)),
            count=len(side.begins) if rows is None else len(rows),
        )

    def _bounds(self, side: Side) -> tuple[Any, Any]:
        """Where rows begin and end; of a whole graph both are parts of one array."""
        begins, ends = side.begins, side.ends
        if _is_shifted(begins, ends):
            whole = self.offsets(as_strided(begins, (len(begins) + 1,), begins.strides, writeable=False))
            return whole[: len(begins)], whole[1 : len(begins) + 1]
        return self.offsets(begins), self.offsets(ends)

    def missing_bytes(self, partitions: Iterable[Partition]) -> int:
        """Bytes that copies of the partitions would still take, at most, pieces of hubs aside."""
        missing: dict[int, int] = {}
        for partition in partitions:
            for side in (partition.out_edges, partition.in_edges):
                bounds = [side.begins] if _is_shifted(side.begins, side.ends) else [side.begins, side.ends]
                for array in bounds:
                    missing[array.ctypes.data] = (len(array) + 1) * self.offset.itemsize
                missing[side.indices.ctypes.data] = side.indices.nbytes
                if side.weights is not None:
                    missing[side.weights.ctypes.data] = side.weights.nbytes
        there = {key[0] for key in self._copies}
        return sum(nbytes for address, nbytes in missing.items() if address not in there)


def _is_shifted(begins: np.ndarray[Any, Any], ends: np.ndarray[Any, Any]) -> bool:
    """Whether the two are all but the last and all but the first of one array."""
    return len(begins) > 0 and begins.ctypes.data + begins.itemsize == ends.ctypes.data


def check_vertices(num_vertices: int) -> None:
    """Raise ``GraphError`` if a CUDA device cannot count so many vertices."""
    if num_vertices > _MOST_VERTICES:
        raise GraphError(f"a graph of {num_vertices:,} vertices is beyond the {_MOST_VERTICES:,} of a CUDA device")

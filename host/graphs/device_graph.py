"""A graph's arrays in the memory of a device: each copied on first use, and kept while the graph is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from gpu_pregel.errors import GraphError
from gpu_pregel.host.graphs.csr import CSR
from gpu_pregel.host.graphs.partitions import Partition, Pieces, Side, cut_hubs

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
        self._sides: dict[Any, _HostSide] = {}

    def copy(self, array: np.ndarray[Any, Any], dtype: Any = None) -> Any:
        """The copy of a host array that does not change, in another dtype if one is given."""
        key = _key(array, dtype)
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
        missing = self._missing([(csr.indptr, self.offset), (csr.indices, None)])
        self.device.require(missing + state, f"a graph of {n:,} vertices and {len(csr.indices):,} stored edges")
        return self.offsets(csr.indptr), self.copy(csr.indices)

    def side(self, side: Side, rows: np.ndarray[Any, Any] | None, hub_edges: int) -> DeviceSide:
        """The copy of a partition's edges; ``rows`` as in the partition."""
        host = self._cut(side, rows, hub_edges)
        bounds = [self.offsets(array) for array in host.bounds]
        n = len(side.begins)
        # Where rows begin and end; of a whole graph both are parts of one array.
        begins, ends = bounds if len(bounds) == 2 else (bounds[0][:n], bounds[0][1 : n + 1])
        return DeviceSide(
            begins=begins,
            ends=ends,
            indices=self.copy(side.indices),
            weights=None if side.weights is None else self.copy(side.weights),
            rows=self.copy(host.rows),
            piece_rows=self.copy(host.pieces.rows),
            piece_begins=self.offsets(host.pieces.begins),
            piece_ends=self.offsets(host.pieces.ends),
            hubs=self.copy(host.hubs),
            firsts=self.copy(host.firsts),
            count=n if rows is None else len(rows),
        )

    def count_pieces(self, side: Side, rows: np.ndarray[Any, Any] | None, hub_edges: int) -> int:
        """How many pieces the long rows of a partition's edges are cut into."""
        return len(self._cut(side, rows, hub_edges).pieces.rows)

    def missing_bytes(
        self, partitions: Iterable[Partition], degrees: Iterable[np.ndarray[Any, Any]], hub_edges: int
    ) -> int:
        """Bytes that the copies of the partitions and of the degrees would still take."""
        wanted: list[tuple[np.ndarray[Any, Any], Any]] = [(array, self.offset) for array in degrees]
        for partition in partitions:
            for side, rows in ((partition.out_edges, None), (partition.in_edges, partition.rows)):
                host = self._cut(side, rows, hub_edges)
                offsets = (*host.bounds, host.pieces.begins, host.pieces.ends)
                others = (side.indices, side.weights, host.rows, host.pieces.rows, host.hubs, host.firsts)
                wanted += [(array, self.offset) for array in offsets]
                wanted += [(array, None) for array in others if array is not None]
        return self._missing(wanted)

    def _cut(self, side: Side, rows: np.ndarray[Any, Any] | None, hub_edges: int) -> _HostSide:
        """A side's arrays that are made of it, made once."""
        key = (id(side), hub_edges)
        if key not in self._sides:
            pieces = cut_hubs(side, hub_edges)
            hubs, firsts = np.unique(pieces.rows, return_index=True)
            bounds: tuple[np.ndarray[Any, Any], ...] = (side.begins, side.ends)
            if _is_shifted(*bounds):
                shape, strides = (len(side.begins) + 1,), side.begins.strides
                bounds = (as_strided(side.begins, shape, strides, writeable=False),)
            self._sides[key] = _HostSide(
                side=side,
                bounds=bounds,
                rows=np.empty(0, np.uint32) if rows is None else rows,
                pieces=pieces,
                hubs=hubs,
                firsts=np.append(firsts, len(pieces.rows)).astype(np.uint32),
            )
        return self._sides[key]

    def _missing(self, wanted: Iterable[tuple[np.ndarray[Any, Any], Any]]) -> int:
        """Bytes of those arrays, as the dtypes beside them, that are not copied yet."""
        keys = {_key(array, dtype) for array, dtype in wanted}
        return sum(length * dtype.itemsize for _, length, dtype in keys - self._copies.keys())


class _HostSide(NamedTuple):
    """A partition's share of the edges on the host, as :class:`DeviceSide` has it on the device."""

    side: Side
    bounds: tuple[np.ndarray[Any, Any], ...]
    rows: np.ndarray[Any, Any]
    pieces: Pieces
    hubs: np.ndarray[Any, Any]
    firsts: np.ndarray[Any, Any]


def _key(array: np.ndarray[Any, Any], dtype: Any) -> tuple[int, int, np.dtype[Any]]:
    return array.ctypes.data, len(array), np.dtype(dtype or array.dtype)


def _is_shifted(begins: np.ndarray[Any, Any], ends: np.ndarray[Any, Any]) -> bool:
    """Whether the two are all but the last and all but the first of one array."""
    return len(begins) > 0 and begins.ctypes.data + begins.itemsize == ends.ctypes.data


def check_vertices(num_vertices: int) -> None:
    """Raise ``GraphError`` if a CUDA device cannot count so many vertices."""
    if num_vertices > _MOST_VERTICES:
        raise GraphError(f"a graph of {num_vertices:,} vertices is beyond the {_MOST_VERTICES:,} of a CUDA device")

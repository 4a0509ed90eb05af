"""Copies of a graph's arrays in device memory: made on first use, kept as long as the graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from gpu_pregel.errors import GraphError
from gpu_pregel.host.devices.device import Device, MemoryDevice
from gpu_pregel.host.graphs.csr import CSR
from gpu_pregel.host.graphs.partitions import HubPieces, Partition, PartitionEdges, cut_hubs, find_sources

Array = np.ndarray[Any, Any]

_WORD_BITS = 32
_SMALL_OFFSETS = 1 << 32
_MOST_VERTICES = (1 << 32) - (1 << 18)
"""Kernels number vertices in 32 bits, including those that are a step of all threads beyond the last one."""


@dataclass(frozen=True)
class DeviceEdges:
    """A partition's share of the edges in one direction, on a device.

    Attributes
    ----------
    begins, ends : array[r]
        Row ``i`` is ``indices[begins[i]:ends[i]]``.
    indices, weights : array[m]
        ``weights`` is None if the graph has none.
    rows : uint32[r]
        Dense side: the vertex of each row; empty if row ``u`` is vertex ``u``.
    source_words, source_bits, source_firsts : uint32[w]
        Sparse side: the partition's ``SourceWords``; empty if row ``u`` is vertex ``u``.
    piece_vertices, piece_begins, piece_ends : array[p]
        The pieces of long rows: the row's vertex and the edges of each piece.
    hubs, hub_rows, hub_firsts : uint32 array
        The vertex of each long row, its position among the rows, and its first piece, followed by the number of pieces.
    """

    begins: Any
    ends: Any
    indices: Any
    weights: Any
    rows: Any
    source_words: Any
    source_bits: Any
    source_firsts: Any
    piece_vertices: Any
    piece_begins: Any
    piece_ends: Any
    hubs: Any
    hub_rows: Any
    hub_firsts: Any


class DeviceGraph:
    """Copies of a graph's host arrays on a device, one of each array and dtype."""

    def __init__(self, device: Device, num_stored_edges: int) -> None:
        self.device = device
        self.offset = np.dtype(np.uint32 if num_stored_edges < _SMALL_OFFSETS else np.int64)
        self._copies: dict[Any, tuple[Any, Any]] = {}
        self._host_edges: dict[Any, _HostEdges] = {}

    def copy(self, array: Array, dtype: Any = None) -> Any:
        """Return the copy of a host array that never changes, converted to ``dtype`` if one is given."""
        key = _key(array, dtype)
        if key not in self._copies:
            self._copies[key] = array, self.device.upload(array, dtype)
        return self._copies[key][1]

    def has(self, array: Any) -> bool:
        """Whether an array is one of the copies."""
        return any(array is copy for _, copy in self._copies.values())

    def keep(self, host: Array, dtype: Any, device: MemoryDevice, values: Any, *, shared: bool) -> None:
        """Use a user's array on this device as the copy of ``host``, if it has the kind, size and order of ``dtype``.

        Unless it may be ``shared``, it is copied within the device.
        """
        array, dtype = device.adopt(values), np.dtype(dtype)
        is_alike = array.dtype.itemsize == dtype.itemsize and (array.dtype.kind == "f") == (dtype.kind == "f")
        if not is_alike or not array.dtype.isnative:
            return
        if not shared or array.dtype != dtype:
            array = device.copy(array, dtype)
        self._copies[_key(host, dtype)] = host, array

    def offsets(self, array: Array) -> Any:
        """Return the copy of an array of edge positions or degrees."""
        return self.copy(array, self.offset)

    def csr(self, csr: CSR, state: int) -> tuple[Any, Any]:
        """Return ``indptr`` and ``indices`` if the device has memory for them and ``state`` more bytes."""
        n = len(csr.indptr) - 1
        check_vertices(n)
        missing = self._missing([(csr.indptr, self.offset), (csr.indices, None)])
        self.device.require(missing + state, f"a graph of {n:,} vertices and {len(csr.indices):,} stored edges")
        return self.offsets(csr.indptr), self.copy(csr.indices)

    def edges(self, edges: PartitionEdges, hub_edges: int, *, sparse: bool) -> DeviceEdges:
        """Return the copy of a partition's edges for the sparse or the dense side; longer rows are cut into pieces."""
        host = self._prepare(edges, hub_edges, sparse)
        bounds = [self.offsets(array) for array in host.bounds]
        n = len(edges.begins)
        # The bounds of a whole graph are views of one array.
        begins, ends = bounds if len(bounds) == 2 else (bounds[0][:n], bounds[0][1 : n + 1])
        return DeviceEdges(
            begins=begins,
            ends=ends,
            indices=self.copy(edges.indices),
            weights=None if edges.weights is None else self.copy(edges.weights),
            rows=self.copy(host.rows),
            source_words=self.copy(host.source_words),
            source_bits=self.copy(host.source_bits),
            source_firsts=self.copy(host.source_firsts),
            piece_vertices=self.copy(host.piece_vertices),
            piece_begins=self.offsets(host.pieces.begins),
            piece_ends=self.offsets(host.pieces.ends),
            hubs=self.copy(host.hubs),
            hub_rows=self.copy(host.hub_rows),
            hub_firsts=self.copy(host.hub_firsts),
        )

    def count_pieces(self, edges: PartitionEdges, hub_edges: int) -> int:
        """Count the pieces that the long rows of a partition's in-edges are cut into."""
        return len(self._prepare(edges, hub_edges, False).pieces.rows)

    def missing_bytes(self, partitions: Iterable[Partition], degrees: Iterable[Array], hub_edges: int) -> int:
        """Return the bytes of those copies of the partitions' edges and of the degrees that do not exist yet."""
        wanted: list[tuple[Array, Any]] = [(array, self.offset) for array in degrees]
        for partition in partitions:
            for edges, sparse in ((partition.out_edges, True), (partition.in_edges, False)):
                wanted += self._prepare(edges, hub_edges, sparse).arrays(self.offset)
        return self._missing(wanted)

    def _prepare(self, edges: PartitionEdges, hub_edges: int, sparse: bool) -> _HostEdges:
        """Derive the arrays that kernels need besides the edges themselves, once."""
        key = (id(edges), hub_edges, sparse)
        if key not in self._host_edges:
            self._host_edges[key] = _HostEdges.derive(edges, hub_edges, sparse)
        return self._host_edges[key]

    def _missing(self, wanted: Iterable[tuple[Array, Any]]) -> int:
        """Return the bytes of those arrays, in the dtypes beside them, that have not been copied yet."""
        keys = {_key(array, dtype) for array, dtype in wanted}
        return sum(length * dtype.itemsize for _, length, dtype in keys - self._copies.keys())


class _HostEdges(NamedTuple):
    """The host arrays that :class:`DeviceEdges` has copies of."""

    edges: PartitionEdges
    bounds: tuple[Array, ...]
    rows: Array
    source_words: Array
    source_bits: Array
    source_firsts: Array
    pieces: HubPieces
    piece_vertices: Array
    hubs: Array
    hub_rows: Array
    hub_firsts: Array

    @classmethod
    def derive(cls, edges: PartitionEdges, hub_edges: int, sparse: bool) -> _HostEdges:
        pieces = cut_hubs(edges, hub_edges)
        hub_rows, firsts = np.unique(pieces.rows, return_index=True)
        none = np.empty(0, np.uint32)
        is_whole = edges.rows is None
        rows = none if edges.rows is None else edges.rows
        words: tuple[Any, ...] = (none, none, none) if is_whole or not sparse else find_sources(edges, _WORD_BITS)
        return cls(
            edges=edges,
            bounds=_whole_bounds(edges.begins, edges.ends) if is_whole else (edges.begins, edges.ends),
            rows=none if sparse else rows,
            source_words=words[0],
            source_bits=words[1],
            source_firsts=words[2],
            pieces=pieces,
            piece_vertices=pieces.rows if is_whole else rows[pieces.rows],
            hubs=hub_rows if is_whole else rows[hub_rows],
            hub_rows=hub_rows,
            hub_firsts=np.append(firsts, len(pieces.rows)).astype(np.uint32),
        )

    def arrays(self, offset: np.dtype[Any]) -> Iterator[tuple[Array, Any]]:
        """Yield the arrays with the dtypes of their copies, None for their own."""
        for array in (*self.bounds, self.pieces.begins, self.pieces.ends):
            yield array, offset
        edges, pieces = self.edges, (self.piece_vertices, self.hubs, self.hub_rows, self.hub_firsts)
        sources = (self.source_words, self.source_bits, self.source_firsts)
        for other in (edges.indices, edges.weights, self.rows, *sources, *pieces):
            if other is not None:
                yield other, None


def _whole_bounds(begins: Array, ends: Array) -> tuple[Array, ...]:
    """Return ``indptr`` if both are views of it, else the two arrays."""
    if len(begins) == 0 or begins.ctypes.data + begins.itemsize != ends.ctypes.data:
        return begins, ends
    return (as_strided(begins, (len(begins) + 1,), begins.strides, writeable=False),)


def _key(array: Array, dtype: Any) -> tuple[int, int, np.dtype[Any]]:
    return array.ctypes.data, len(array), np.dtype(dtype or array.dtype)


def check_vertices(num_vertices: int) -> None:
    """Raise ``GraphError`` if a CUDA device cannot number this many vertices."""
    if num_vertices > _MOST_VERTICES:
        raise GraphError(
            f"a graph of {num_vertices:,} vertices is beyond the {_MOST_VERTICES:,} of a CUDA device: use device='cpu'"
        )

"""Builds the CSR of an edge list in device memory there, with the kernels of ``gpu_pregel.kernels.graphs.csr_cuda``.

Only the finished CSR is copied to the host. Numbering stays there: an edge list whose ids need a table, or that is
invalid, is built by the host.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpu_pregel.errors import NotEnoughMemoryError
from gpu_pregel.host.devices.device import MemoryDevice
from gpu_pregel.host.devices.memory import require_memory
from gpu_pregel.host.devices.user_arrays import find_device
from gpu_pregel.host.graphs.csr import CSR, INDEX_DTYPE, INDPTR_DTYPE, MAX_VERTICES, WEIGHT_DTYPES
from gpu_pregel.host.graphs.device_sort import scan, sort_keys
from gpu_pregel.host.graphs.edge_arrays import check_num_vertices
from gpu_pregel.host.graphs.numbering import Numbering, check_renumber, number_limit, remove_unused

_SLOTS = 1 << 32
"""Slots of weighted edges are numbered in 32 bits."""
_BYTES_PER_EDGE = {(False, False): 19, (False, True): 27, (True, False): 31, (True, True): 34}
"""Peak memory by whether there are weights and whether duplicates are dropped: two copies of the keys (8 bytes) and the
slots (4), the counts and positions of digits (1.5), and the first of equal keys with their positions."""
_SMALL_BYTES = 1 << 14
_KINDS = {"u": 0, "i": 1, "f": 2}


class BuiltOnDevice(NamedTuple):
    """A graph in host memory, its ids, and those of its arrays that the device has too, None for others."""

    csr: CSR
    ids: np.ndarray[Any, Any] | None
    there: tuple[Any, Any, Any]


def build_on_device(
    *edges: Any,
    num_vertices: int | None,
    renumber: bool | str,
    symmetric: bool,
    combine: str | None,
    drop_self_loops: bool,
    threads: int,
) -> BuiltOnDevice | None:
    """Build the graph of ``src``, ``dst`` and ``weight`` in device memory; see ``Graph.from_edgelist`` for the rules.

    Return None if the host must build it: the arrays are elsewhere, have other dtypes or are invalid, the ids need a
    table, weights are to be combined other than by "min", or the device has too little memory.
    """
    check_renumber(renumber)
    given = None if num_vertices is None else check_num_vertices(num_vertices)
    found = find_edge_list(*edges)
    if found is None or combine in ("sum", "count") or (found.weight is not None and combine not in (None, "min")):
        return None
    builder = DeviceBuilder(
        found, symmetric=symmetric, drop_duplicates=combine is not None, drop_self_loops=drop_self_loops
    )
    largest = builder.largest_id()
    are_numbers = given is not None or renumber is False
    limit = MAX_VERTICES if given is None else given
    if largest >= (limit if are_numbers else number_limit(2 * found.src.size)):
        return None
    there = builder.build(largest + 1 if given is None else given)
    if there is None:
        return None
    csr = _download(found.device, there)
    if are_numbers or np.all(csr.indptr[1:] > csr.indptr[:-1]):
        return BuiltOnDevice(csr, None, (None, there.indices, there.weights))
    if drop_self_loops:
        return None
    numbering = Numbering(csr.indices, csr.indices, len(csr.indptr) - 1, None, np.zeros(len(csr.indptr) - 1, bool))
    csr, ids = remove_unused(csr, numbering, rows_name_all=symmetric, threads=threads)
    return BuiltOnDevice(csr, ids, (None, None, None) if ids is not None else (None, there.indices, there.weights))


def _download(device: MemoryDevice, there: DeviceCSR) -> CSR:
    """Copy a CSR to the host."""
    needed = sum(array.nbytes for array in there if array is not None)
    require_memory(needed, f"a graph of {there.indptr.size - 1:,} vertices, {there.indices.size:,} edges")
    indptr, indices, weights = (None if array is None else device.download(array) for array in there)
    assert indptr is not None
    assert indices is not None
    return CSR(indptr.view(INDPTR_DTYPE), indices, weights)


class DeviceEdgeList(NamedTuple):
    """An edge list in the memory of a device; ids are unsigned integers of 4 or 8 bytes, weights have any dtype."""

    device: MemoryDevice
    src: Any
    dst: Any
    weight: Any


class DeviceCSR(NamedTuple):
    """The arrays of a CSR in the memory of a device: ``indptr`` uint64, ``indices`` uint32 and optional ``weights``."""

    indptr: Any
    indices: Any
    weights: Any


def find_edge_list(src: Any, dst: Any, weight: Any) -> DeviceEdgeList | None:
    """Return arrays as an edge list if all are in the memory of one device and have dtypes that its kernels take."""
    device = find_device(src)
    if device is None or find_device(dst) is not device or (weight is not None and find_device(weight) is not device):
        return None
    src, dst, weight = (None if array is None else device.adopt(array) for array in (src, dst, weight))
    edges, size = src.size, src.dtype.itemsize
    if edges == 0 or edges != dst.size or dst.dtype.itemsize != size or size not in (4, 8):
        return None
    if not all(ids.dtype.kind in "iu" and ids.dtype.isnative for ids in (src, dst)):
        return None
    if weight is not None and (weight.size != edges or weight.dtype not in WEIGHT_DTYPES or 2 * edges >= _SLOTS):
        return None
    # Negative ids become larger than any vertex number.
    word = np.dtype(f"u{size}")
    return DeviceEdgeList(device, src.view(word), dst.view(word), weight)


class DeviceBuilder:
    """Builds the CSR of an edge list on its device.

    Parameters
    ----------
    edges : DeviceEdgeList
    symmetric : bool
        Store each edge in both directions, and a self-loop once.
    drop_duplicates, drop_self_loops : bool
        Of several edges with the same source and destination keep the one with the smallest weight; keep no self-loops.
    """

    def __init__(self, edges: DeviceEdgeList, *, symmetric: bool, drop_duplicates: bool, drop_self_loops: bool) -> None:
        from gpu_pregel.kernels.graphs import csr_cuda, edge_weights_cuda

        self._kernels, self._weight_kernels = csr_cuda, edge_weights_cuda
        self._device = edges.device
        self._edges = edges
        self._symmetric = symmetric
        self._drop_duplicates = drop_duplicates
        self._drop_self_loops = drop_self_loops
        self._stored: int = edges.src.size * (2 if symmetric else 1)
        self._facts = self._device.zeros(4, np.uint64)

    def largest_id(self) -> int:
        """Return the largest id, which is beyond all vertex numbers if an id is negative."""
        edges = self._edges
        find = getattr(self._kernels, f"find_largest_{8 * edges.src.dtype.itemsize}")
        self._device.launch(find, edges.src.size, edges.src, edges.dst, self._facts)
        return int(self._device.download(self._facts)[self._kernels.LARGEST])

    def build(self, n: int) -> DeviceCSR | None:
        """Return the CSR of ``n`` vertices; None if it does not fit in the device's memory or a weight is NaN."""
        try:
            self._device.require(self._memory(n), f"building a graph of {n:,} vertices, {self._stored:,} edges")
            return self._build(n)
        except NotEnoughMemoryError:
            pass  # after this block, the arrays that were allocated are free
        self._device.trim()
        return None

    def _build(self, n: int) -> DeviceCSR | None:
        edges, device = self._edges, self._device
        # With weights, the key of edges that are not stored must differ from all others.
        id_bits = max(1, (n - 1 if edges.weight is None else n).bit_length())
        keys, slots = self._sort(self._make_keys(id_bits), None, 2 * id_bits)
        size = self._stored - int(device.download(self._facts)[self._kernels.DROPPED])
        weights = None
        if edges.weight is not None:
            weights = self._take_weights(keys, slots, size)
            facts = self._device.download(self._facts)
            if facts[self._weight_kernels.NOT_NUMBERS]:
                return None
            if facts[self._weight_kernels.UNSORTED]:
                keys = slots = weights = None  # releases their memory
                keys, slots = self._sort_with_weights(id_bits)
        if self._drop_duplicates:
            weights = None
            keys, slots, size = self._keep_first(keys, slots, size)
        if edges.weight is not None and weights is None:
            weights = self._take_weights(keys, slots, size)
        return DeviceCSR(*self._rows(keys, size, n, id_bits), weights)

    def _memory(self, n: int) -> int:
        """Return the peak memory of :meth:`build` in bytes, without the input."""
        with_weights, drop = self._edges.weight is not None, self._drop_duplicates
        return self._stored * _BYTES_PER_EDGE[with_weights, drop] + 12 * (n + 1) + _SMALL_BYTES

    def _make_keys(self, id_bits: int) -> Any:
        """Return the keys of all stored edges, in the order of the list."""
        edges, keys = self._edges, self._device.empty(self._stored, np.uint64)
        make = getattr(self._kernels, f"make_keys_{8 * edges.src.dtype.itemsize}")
        options = (self._symmetric, not self._drop_self_loops, id_bits)
        self._device.launch(make, edges.src.size, edges.src, edges.dst, *options, keys, self._facts)
        return keys

    def _sort(self, keys: Any, slots: Any, bits: int) -> tuple[Any, Any]:
        """Sort keys by their lowest ``bits``; with weights, their slots too, which are at first the places of keys."""
        return sort_keys(self._device, keys, bits, slots, takes_slots=self._edges.weight is not None)

    def _sort_with_weights(self, id_bits: int) -> tuple[Any, Any]:
        """Sort slots by weight, then stably by key."""
        device, weight = self._device, self._edges.weight
        size = weight.dtype.itemsize
        keys = device.empty(self._stored, np.uint64)
        order = getattr(self._weight_kernels, f"order_weights_{8 * size}")
        device.launch(order, self._stored, weight.view(f"u{size}"), _KINDS[weight.dtype.kind], keys)
        keys, slots = self._sort(keys, None, 8 * size)
        device.launch(self._kernels.look_up_keys, self._stored, self._make_keys(id_bits), slots, keys)
        return self._sort(keys, slots, 2 * id_bits)

    def _take_weights(self, keys: Any, slots: Any, size: int) -> Any:
        """Return the weights of the first ``size`` keys, and check them."""
        weight = self._edges.weight
        word = np.dtype(f"u{weight.dtype.itemsize}")
        weights = self._device.empty(size, weight.dtype)
        take = getattr(self._weight_kernels, f"take_weights_{8 * word.itemsize}")
        kind = _KINDS[weight.dtype.kind]
        self._device.launch(take, size, keys, slots, weight.view(word), kind, weights.view(word), self._facts)
        return weights

    def _keep_first(self, keys: Any, slots: Any, size: int) -> tuple[Any, Any, int]:
        """Return the first of equal keys with their slots, and their number."""
        device, kernels = self._device, self._kernels
        is_first = device.empty(size + 1, np.uint32)
        device.launch(kernels.mark_first, size + 1, keys, size, is_first)
        positions = scan(self._device, is_first)
        kept = int(device.download(positions[size : size + 1])[0])
        moved, moved_slots = device.empty(kept, np.uint64), device.empty(kept if slots.size else 0, np.uint32)
        device.launch(kernels.keep_first, size, keys, slots, positions, moved, moved_slots)
        return moved, moved_slots, kept

    def _rows(self, keys: Any, size: int, n: int, id_bits: int) -> tuple[Any, Any]:
        """Return ``indptr`` and ``indices`` of the first ``size`` keys, which are sorted."""
        indices, degrees = self._device.empty(size, INDEX_DTYPE), self._device.zeros(n + 1, np.uint32)
        self._device.launch(self._kernels.write_rows, size, keys, size, id_bits, indices, degrees)
        return scan(self._device, degrees), indices

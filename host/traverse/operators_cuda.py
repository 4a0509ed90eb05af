"""The operators on CUDA devices: sets of vertices in device memory, and launches over their vertices and edges.

A superstep is at most three launches (clearing storage for its result, the kernel, and the sum of partial sums) and one
readback of a few bytes. Where a push follows a pull, two more launches list the vertices of the bitmap. Where the edges
are followed in the other direction than before, these also count degrees, and one more readback follows.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from gpu_pregel.errors import ArgumentError
from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.graphs.csr import CSR
from gpu_pregel.host.graphs.device_graph import DeviceEdges, check_vertices
from gpu_pregel.host.graphs.device_sort import scan
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.graphs.partitions import PartitionEdges, pack_bits
from gpu_pregel.host.traverse.bodies import Bodies, kernel_of
from gpu_pregel.host.traverse.compilation import explaining_compilation
from gpu_pregel.host.traverse.failures import check_bodies
from gpu_pregel.host.traverse.labels import LabelBodies
from gpu_pregel.host.traverse.operator_kernels_cuda import (
    LabelKernels,
    OperatorKernel,
    PairKernels,
    RowKernels,
    make_kernel,
    make_label_kernels,
    make_pair_kernels,
    make_row_kernels,
)
from gpu_pregel.host.traverse.operators_python import AnyBodies
from gpu_pregel.host.traverse.pairs import PairBodies, check_ends
from gpu_pregel.host.traverse.rows import RowBodies
from gpu_pregel.kernels.library.jit_cuda import BLOCK, WARP, WARPS
from gpu_pregel.kernels.traverse import frontier_cuda, pairs_cuda
from gpu_pregel.kernels.traverse.arrays_cuda import make_range
from gpu_pregel.kernels.traverse.frontier_cuda import CONTROL_LENGTH, COUNT, FOLDED, HUBS, LIST_WARPS, RECORD
from gpu_pregel.kernels.traverse.rows_cuda import HUB_EDGES

Array = np.ndarray[Any, Any]

MAX_BLOCKS = 1024
"""Maximum number of blocks that sum over vertices, the same on every chip, so that sums are too."""
MAX_QUOTA = 4
"""Maximum number of edges that are read first of each row that may end early."""
_QUEUE_COST = 8
"""Clearing a bit by the queue moves as many bytes as clearing this many words."""
_STATE_BYTES = 20
"""Bytes per vertex that operators need beside the edges: degrees, and the queues and bitmaps of three frontiers."""
_PIECES = (1 << 32) - 1
_MAX_PAIRS = (1 << 32) - BLOCK
"""Pairs, and the pieces of their rows, are numbered in 32 bits."""


_FEWEST_ENTRIES = 1_024
"""Least capacity of a queue, unless there are fewer vertices."""


class _Storage:
    """A bitmap, a queue, a list of hubs and figures, which sets of vertices use one after the other."""

    def __init__(self, device: Device, n: int, m: int) -> None:
        self._device, self._most_hubs = device, m // (HUB_EDGES + 1)
        self.words = device.zeros(-(-n // WARP), np.uint32)
        self.control = device.zeros(CONTROL_LENGTH, np.int64)
        self.record = self.control[RECORD:]
        self.reserve(0)

    def reserve(self, capacity: int) -> None:
        """Allocate a queue of that capacity, and a list of the hubs that may be in it; their content is lost."""
        hubs, empty = min(capacity, self._most_hubs), self._device.empty
        self.queue, self.hubs, self.firsts = empty(capacity, np.uint32), empty(hubs, np.uint32), empty(hubs, np.uint32)


_Pool = dict[int, list[tuple[_Storage, int | None]]]
"""Storage that is free, with the number of vertices in its queue if they are those of the bitmap, by capacity."""


class _Rows(NamedTuple):
    """The out-edges or in-edges of the graph, in device memory."""

    indptr: Any
    degrees: Any
    edges: DeviceEdges


class _Sums(NamedTuple):
    """Arrays for the sum of a dtype: those of the warps and of blocks, then in ``control`` the sum and the record."""

    partials: Any
    folded: Any
    control: Any
    result: Any
    record: Any


class CudaSet:
    """A set of vertices: a bitmap and, if ``queued``, a queue with the same vertices; None as storage means all.

    Attributes
    ----------
    count : int
    edges : int
        The sum of their in-degrees if ``transposed``, else of their out-degrees.
    hubs : int
        The number of hubs, by the same degrees, * 2**32 + the number of their pieces.
    transposed, queued : bool
    ordered : bool
        Whether the queue ascends.
    is_measured : bool
        Whether the figures are known.
    """

    def __init__(self, pool: _Pool, storage: _Storage | None, *, transposed: bool, queued: bool) -> None:
        self._pool = pool
        self.storage, self.transposed, self.queued, self.ordered = storage, transposed, queued, False
        self.count = self.edges = self.hubs = 0
        self.is_measured = False

    def measure(self, control: Array) -> None:
        """Take the figures that a kernel wrote."""
        self.count, self.edges, self.hubs = control.tolist()[COUNT : HUBS + 1]
        self.is_measured = True

    def __del__(self) -> None:
        if self.storage is not None:
            free = self._pool.setdefault(len(self.storage.queue), [])
            # A superstep that failed may have set bits of vertices that are not in the queue.
            free.append((self.storage, self.count if self.queued and self.is_measured else None))


class CudaOperators:
    """Runs operators on a CUDA device.

    A pull without ``receives`` has no fewer atomic operations than a push, and also reads the edges of other vertices.
    """

    pushes_to_all = True
    bits = WARP

    def __init__(self, graph: Graph, device: Device) -> None:
        check_vertices(graph.num_vertices)
        self._graph, self._device, self._copies = graph, device, graph._on(device)
        self._n, self._offset = graph.num_vertices, self._copies.offset
        self._pool: _Pool = {}
        self._rows: dict[bool, _Rows] = {}
        self._none = device.empty(0, np.uint32)
        self._sums: dict[np.dtype[Any], _Sums] = {}
        self._kept_tables: tuple[Any, Any] | None = None
        self._kept_partials: dict[tuple[np.dtype[Any], ...], tuple[Any, ...]] = {}

    @functools.cached_property
    def _no_weights(self) -> Any:
        """What kernels take in place of weights, and do not read."""
        return self._device.empty(1, np.float32)

    @functools.cached_property
    def _counts(self) -> Any:
        """The figures of the words that each warp lists."""
        groups = -(-self._n // (WARP * WARP))
        return self._device.empty(3 * min(LIST_WARPS, -(-max(1, groups) // WARPS) * WARPS), np.int64)

    def arrays_of(self, csr: CSR) -> CSR:
        """Return the arrays of the CSR or CSC in the device's memory."""
        copy = self._copies.copy
        return CSR(copy(csr.indptr), copy(csr.indices), None if csr.weights is None else copy(csr.weights))

    def is_of_graph(self, array: Any) -> bool:
        """Whether a device array belongs to the graph."""
        return self._copies.has(array)

    def everything(self) -> CudaSet:
        """Return the set of all vertices."""
        active = CudaSet(self._pool, None, transposed=False, queued=False)
        active.count, active.edges = self._n, self._graph.num_stored_edges
        return active

    def chosen(self, flags: Array) -> CudaSet:
        """Return the set of the vertices with true ``flags``, bool[n]."""
        storage = self._take(int(flags.sum()))
        storage.words = self._device.upload(pack_bits(flags).view(np.uint32)[: -(-self._n // WARP)])
        return self._counted(storage, transposed=False)

    def listed(self, active: CudaSet) -> Any:
        """Return the numbers of a set's vertices in ascending order, in device memory that the set keeps."""
        if active.storage is None:
            numbers = self._device.empty(self._n, np.uint32)
            self._launch(make_range(numbers.dtype), self._n, numbers)
            return numbers
        if not (active.queued and active.ordered):
            self._list(active, active.storage, transposed=active.transposed)
        return active.storage.queue[: active.count]

    def bitmap(self, active: CudaSet) -> Any:
        """Return the bitmap of a set that has not all vertices."""
        return self._words_of(active)

    def from_bitmap(self, words: Any, most: int) -> CudaSet:
        """Return the set of the vertices of a bitmap, which is copied."""
        storage = self._take(most)
        self._device.move(storage.words, words)
        return self._counted(storage, transposed=False)

    def union(self, one: CudaSet, other: CudaSet) -> CudaSet:
        """Return the set of the vertices of both."""
        if one.storage is None or other.storage is None:
            return self.everything()
        storage = self._take(one.count + other.count)
        words = (one.storage.words, other.storage.words, storage.words)
        self._launch(frontier_cuda.unite, len(storage.words), *words)
        return self._counted(storage, transposed=one.transposed)

    def _counted(self, storage: _Storage, *, transposed: bool) -> CudaSet:
        """Return the set of the vertices of a bitmap."""
        active = CudaSet(self._pool, storage, transposed=transposed, queued=False)
        self._list(active, storage, transposed=transposed)
        return active

    def flags(self, active: CudaSet) -> Array:
        """Return bool[n]: whether each vertex is in the set."""
        if active.storage is None:
            return np.ones(self._n, bool)
        words = self._device.download(active.storage.words)
        bits: Array = np.unpackbits(words.astype("<u4").view(np.uint8), bitorder="little")
        return bits[: self._n].astype(bool)

    def degree_sum(self, active: CudaSet, csr: CSR) -> int:
        """Return the sum of the degrees of a set's vertices."""
        transposed = csr is not self._graph._csr
        if active.storage is not None and active.transposed != transposed:
            self._list(active, active.storage, transposed=transposed)
        return active.edges

    def process_vertices(self, bodies: Bodies, active: CudaSet, arrays: tuple[Any, ...], returns: str | None) -> Any:
        """Return the sum of what the body returns, the set of the vertices for which it returns true, or nothing."""
        if returns != "frontier":
            return self._sum_over_vertices(bodies, active, arrays, returns)
        kind = "filter of queue" if active.queued else "filter of words"
        kernel = self._kernel(kind, bodies, returns)
        most = active.count if active.queued else None
        result, out, _, record = self._output(returns, None, most, 0, transposed=active.transposed)
        given = (*arrays, record) if kernel.records else arrays
        if active.count and active.storage is not None and active.queued:
            self._launch(kernel.kernel, active.count, active.storage.queue, active.count, given, out)
        elif active.count:
            self._launch(kernel.kernel, self._n, self._words_of(active), given, out)
        return self._finished(result, active, None, 0, bodies, arrays, records=kernel.records)

    def _sum_over_vertices(
        self, bodies: Bodies, active: CudaSet, arrays: tuple[Any, ...], returns: str | None
    ) -> int | float | None:
        kernel, total, records = self._kernel("sum of vertices", bodies, returns)
        if not active.count:
            return _nothing(total)
        count, queue, words = self._n, self._none, self._words_of(active)
        # The order in which a queue was filled would show in a sum of floats.
        if active.storage is not None and active.queued and (active.ordered or not _rounds(total)):
            count, queue, words = active.count, active.storage.queue, self._none
        threads = min(count, MAX_BLOCKS * BLOCK)
        warps = -(-threads // BLOCK) * WARPS
        _, out, _, record = self._output(returns, total, None, warps)
        self._launch(kernel, threads, queue, count, words, (*arrays, record) if records else arrays, out)
        return self._folded(total, warps, bodies, arrays, records=records)

    def process_edges(
        self,
        bodies: Bodies,
        active: CudaSet,
        arrays: tuple[Any, ...],
        returns: str | None,
        *,
        transpose: bool,
        push: bool,
    ) -> Any:
        """Return the sum of what the body returns, the set of the receivers for which it returns true, or nothing."""
        # A push reads the rows of the senders, a pull those of the receivers.
        rows = self._rows_of(transposed=transpose == push and self._graph.is_directed)
        kernel, total, records = self._kernel("push" if push else "pull", bodies, returns)
        prepare = self._pushed if push else self._pulled
        if not active.count:
            return self._result(transpose, 0)[0] if returns == "frontier" else _nothing(total)
        warps, given = prepare(active, rows, bodies, transpose, _rounds(total))
        result, out, _, record = self._output(
            returns, total, active.edges if push else None, warps, transposed=transpose
        )
        # The degrees of a frontier's vertices are those of the rows that a pull reads only if the graph is undirected.
        before = () if push else (self._graph.is_directed,)
        self._launch(kernel, warps * WARP, *given, (*arrays, record) if records else arrays, *before, out)
        return self._finished(result, active, total, warps, bodies, arrays, records=records)

    def reduce_rows(self, bodies: RowBodies, active: CudaSet, arrays: tuple[Any, ...], returns: str | None) -> Any:
        """Return the sum of what ``finish`` returns, the set of the vertices for which it returns true, or nothing."""
        transpose = bodies.transpose and self._graph.is_directed
        rows, key = self._rows_of(transposed=transpose), ("cuda", "rows", returns, self._offset)
        kernels: RowKernels = kernel_of(key, bodies, lambda: make_row_kernels(bodies, returns, self._offset))
        if not active.count:
            return self._result(transpose, 0)[0] if returns == "frontier" else _nothing(kernels.total)
        warps, given = self._pushed(active, rows, bodies, transpose, kernels.ordered)
        _, _, hubs, firsts, hub_count, pieces, *_ = given
        partials = self._partials(kernels.message, pieces)
        result, out, hubs_out, record = self._output(
            returns, kernels.total, active.count, warps, hub_count, transposed=transpose
        )
        passed = (*arrays, record) if kernels.records else arrays
        self._launch(kernels.rows, warps * WARP, *given, passed, partials, out)
        if hub_count:
            self._launch(kernels.hubs, hub_count, hubs, firsts, hub_count, pieces, passed, partials, hubs_out)
        return self._finished(result, active, kernels.total, warps + hub_count, bodies, arrays, records=kernels.records)

    def count_labels(self, bodies: LabelBodies, active: CudaSet, arrays: tuple[Any, ...], returns: str | None) -> Any:
        """Return the sum of what ``finish`` returns, the set of the vertices for which it returns true, or nothing."""
        transpose = bodies.transpose and self._graph.is_directed
        rows, key = self._rows_of(transposed=transpose), ("cuda", "labels", returns, self._offset)
        kernels: LabelKernels = kernel_of(key, bodies, lambda: make_label_kernels(bodies, returns, self._offset))
        if not active.count:
            return self._result(transpose, 0)[0] if returns == "frontier" else _nothing(kernels.total)
        warps, given = self._pushed(active, rows, bodies, transpose, _rounds(kernels.total))
        _, _, hubs, firsts, hub_count, pieces, *_ = given
        result, out, hubs_out, record = self._output(
            returns, kernels.total, active.count, warps, hub_count, transposed=transpose
        )
        passed, tables = (*arrays, record) if kernels.records else arrays, self._tables()
        # No rows: all warps have pieces of hubs.
        over_pieces = (given[0], 0, *given[2:7])
        if hub_count:
            self._launch(kernels.clear, pieces * WARP, *over_pieces, *tables)
        self._launch(kernels.rows, warps * WARP, *given, passed, *tables, out)
        if hub_count:
            partials = self._partials(kernels.message, pieces)
            self._launch(kernels.pieces, pieces * WARP, *over_pieces, passed, *tables, partials)
            self._launch(kernels.hubs, hub_count, hubs, firsts, hub_count, pieces, passed, partials, hubs_out)
        return self._finished(result, active, kernels.total, warps + hub_count, bodies, arrays, records=kernels.records)

    def edges(self, active: CudaSet) -> tuple[Any, Any]:
        """Return the ends of the edges of a set's vertices: marked in a bitmap of edges, then kept."""
        rows, device = self._rows_of(transposed=False), self._device
        m, indices = self._graph.num_stored_edges, rows.edges.indices
        if not m:
            return device.empty(0, np.uint32), device.empty(0, np.uint32)
        bits, sizes = (device.empty(-(-m // WARP), np.uint32) for _ in range(2))
        control, once = device.zeros(1, np.int64), not self._graph.is_directed
        given = (rows.indptr, indices, self._words_of(active), once, bits, sizes, control)
        self._launch(pairs_cuda.mark_edges, m, *given)
        count = int(device.download(control)[0])
        first, second = device.empty(count, np.uint32), device.empty(count, np.uint32)
        if count:
            self._launch(pairs_cuda.keep_edges, m, rows.indptr, indices, bits, scan(device, sizes), first, second)
        return first, second

    def intersect_rows(
        self, bodies: PairBodies, pairs: tuple[Any, Any], arrays: tuple[Any, ...], returns: str | None
    ) -> Any:
        """Return the result of each pair, their sum, or nothing."""
        rows = self._rows_of(transposed=bodies.transpose)
        ends, count = (pairs[0].dtype, pairs[1].dtype), pairs[0].size
        key = ("cuda", "pairs", returns, self._offset, ends)
        kernels: PairKernels = kernel_of(key, bodies, lambda: make_pair_kernels(bodies, returns, self._offset, ends))
        by_pair = returns == "pairs"
        if count > _MAX_PAIRS:
            raise ArgumentError(f"{count:,} pairs, but at most {_MAX_PAIRS:,} at once: pass parts of the arrays")
        found = self._device.empty(count, kernels.total) if by_pair else None
        if not count:
            return found if by_pair else _nothing(kernels.total)
        pieces, firsts = self._pieces_of(pairs, rows)
        warps, total = -(-count // WARP), None if by_pair else kernels.total
        sums = self._sums_of(total, warps)
        passed = (*arrays, sums.record) if kernels.records else arrays
        partials = (self._device.empty(pieces, kernels.message),)
        edges = (rows.indptr, rows.edges.indices, self._weights(rows.edges, bodies))
        given = (*pairs, pieces, firsts, *edges, passed, partials)
        if pieces:
            self._launch(kernels.pieces, pieces, *given)
        self._launch(kernels.pairs, count, *given, found if by_pair else (sums.partials, 0))
        folded = self._folded(total, warps, bodies, (*pairs, *arrays), records=kernels.records)
        return found if by_pair else folded

    def _pieces_of(self, pairs: tuple[Any, Any], rows: _Rows) -> tuple[int, Any]:
        """Return the number of pieces of all pairs, and those before each; raise an error if a pair is invalid."""
        device, count = self._device, pairs[0].size
        sizes, control = device.empty(count, np.uint32), device.zeros(2, np.int64)
        measure = pairs_cuda.make_measure((pairs[0].dtype, pairs[1].dtype))
        self._launch(measure, count, *pairs, rows.indptr, sizes, control)
        figures = device.download(control)
        if figures[pairs_cuda.WRONG]:
            check_ends(self._graph, *map(device.download, pairs))
        pieces = int(figures[pairs_cuda.PIECES])
        if pieces > _MAX_PAIRS:
            raise ArgumentError(
                f"the rows of {count:,} pairs have {pieces:,} pieces, but at most {_MAX_PAIRS:,} at once: pass parts "
                f"of the arrays"
            )
        return pieces, scan(device, sizes) if pieces else device.empty(0, np.uint64)

    def _partials(self, dtypes: tuple[np.dtype[Any], ...], pieces: int) -> tuple[Any, ...]:
        """Return arrays for what is found in pieces of hubs, which later calls use again."""
        kept = self._kept_partials.get(dtypes)
        if kept is None or len(kept[0]) < pieces:
            kept = self._kept_partials[dtypes] = tuple(self._device.empty(pieces, dtype) for dtype in dtypes)
        return kept

    def _tables(self) -> tuple[Any, Any]:
        """Return the hash tables of all rows: keys and sums."""
        if self._kept_tables is None:
            size, empty = self._graph.num_stored_edges, self._device.empty
            self._device.require(12 * size, f"counting labels along {size:,} edges")
            self._kept_tables = empty(size, np.uint32), empty(size, np.int64)
        return self._kept_tables

    def _output(
        self,
        returns: str | None,
        total: np.dtype[Any] | None,
        most: int | None,
        warps: int,
        hubs: int = 0,
        *,
        transposed: bool = False,
    ) -> tuple[CudaSet | None, tuple[Any, ...], tuple[Any, ...], Any]:
        """Return the set for a result, the outputs of a kernel over rows and of one over hubs, and a record.

        ``most`` is the largest number of vertices in the queue of the set, or None for a set without a queue.
        """
        if returns == "frontier":
            result, storage = self._result(transposed, most)
            degrees = self._rows_of(transposed=transposed).degrees
            out = (degrees, storage.words, storage.queue, storage.hubs, storage.firsts, storage.control)
            return result, out, out, storage.record
        sums = self._sums_of(total, warps + hubs)
        return None, (sums.partials, 0), (sums.partials, warps), sums.record

    def _pushed(
        self,
        active: CudaSet,
        rows: _Rows,
        bodies: AnyBodies,
        transpose: bool,
        ordered: bool,
    ) -> tuple[int, tuple[Any, ...]]:
        """Return the number of warps that read the rows of a set, and their arguments up to those of the bodies.

        A queue that is not ``ordered`` may have its vertices in any order.
        """
        edges, storage = rows.edges, active.storage
        if storage is None:
            # An empty queue stands for all vertices.
            count, queue, hubs, firsts = self._n, self._none, edges.hubs, edges.hub_firsts
            hub_count, pieces = len(edges.hubs), len(edges.piece_vertices)
        else:
            is_listed = active.queued and active.transposed == transpose
            if not is_listed or (ordered and not active.ordered):
                self._list(active, storage, transposed=transpose)
            count, queue, hubs, firsts = active.count, storage.queue, storage.hubs, storage.firsts
            hub_count, pieces = active.hubs >> 32, active.hubs & _PIECES
        given = (queue, count, hubs, firsts, hub_count, pieces)
        rest = (rows.indptr, edges.indices, self._weights(edges, bodies))
        return -(-count // WARP) + pieces, (*given, *rest)

    def _pulled(
        self, active: CudaSet, rows: _Rows, bodies: Bodies, _transpose: bool, _ordered: bool
    ) -> tuple[int, tuple[Any, ...]]:
        """Return the number of warps of a pull, and its arguments up to those of the bodies."""
        edges = rows.edges
        pieces = (edges.piece_vertices, edges.piece_begins, edges.piece_ends)
        given = (rows.indptr, *pieces, edges.indices, self._weights(edges, bodies))
        # As many edges of a row as are needed, on average, to find one from the frontier.
        quota = max(1, min(MAX_QUOTA, self._graph.num_stored_edges // max(1, active.edges)))
        return -(-self._n // WARP) + len(edges.piece_vertices), (self._words_of(active), quota, *given)

    def _weights(self, edges: DeviceEdges, bodies: AnyBodies) -> Any:
        return edges.weights if bodies.has_weights else self._no_weights

    def _words_of(self, active: CudaSet) -> Any:
        """Return the bitmap of a set; empty if it has all vertices."""
        return self._none if active.storage is None else active.storage.words

    def _list(self, active: CudaSet, storage: _Storage, *, transposed: bool) -> None:
        """Fill the queue of a set and its list of hubs in ascending order, from its bitmap, and read its figures."""
        is_known = active.is_measured and active.transposed == transposed
        by_degree = not is_known or active.hubs > 0
        if len(storage.queue) < active.count:
            storage.reserve(self._capacity(active.count))
        given = (storage.words, self._rows_of(transposed=transposed).degrees, by_degree, self._counts)
        warps = len(self._counts) // 3
        # Until the queue is complete and its figures are read, only the bitmap is valid.
        active.queued = active.is_measured = False
        self._launch(frontier_cuda.count_words, warps, *given)
        listed = (storage.queue, storage.hubs, storage.firsts, storage.control)
        self._launch(frontier_cuda.list_words, warps, *given, *listed)
        if not is_known:
            active.measure(self._device.download(storage.control))
        active.transposed, active.queued, active.ordered, active.is_measured = transposed, True, True, True

    def _result(self, transposed: bool, most: int | None) -> tuple[CudaSet, _Storage]:
        """Return an empty set for the result of an operator, with a queue for ``most`` vertices unless that is None."""
        storage = self._take(most or 0)
        result = CudaSet(self._pool, storage, transposed=transposed, queued=most is not None)
        result.is_measured = most == 0
        return result, storage

    def _finished(
        self,
        result: CudaSet | None,
        active: CudaSet,
        total: np.dtype[Any] | None,
        warps: int,
        bodies: AnyBodies,
        arrays: tuple[Any, ...],
        *,
        records: bool,
    ) -> Any:
        """Return the result after reading its figures, the one readback of a superstep; or the sum of that of warps."""
        if result is None:
            return self._folded(total, warps, bodies, arrays, records=records)
        if active.count and result.storage is not None:
            control = self._device.download(result.storage.control)
            check_bodies(control[RECORD:], bodies, arrays, self._graph, self._device)
            result.measure(control)
        return result

    def _capacity(self, most: int) -> int:
        """Return the capacity of a queue for ``most`` vertices: one of a few, so that queues are used again."""
        return min(self._n, max(_FEWEST_ENTRIES, 1 << (most - 1).bit_length())) if most else 0

    def _take(self, most: int) -> _Storage:
        """Return storage for a set, with no bit set and a queue for ``most`` vertices, or for all."""
        capacity = self._capacity(most)
        pool = list(self._pool.items())  # a set that is collected meanwhile may add a capacity
        enough = min((size for size, free in pool if free and size >= capacity), default=None)
        if enough is None:
            storage = _Storage(self._device, self._n, self._graph.num_stored_edges)
            storage.reserve(capacity)
            return storage
        storage, queued = self._pool[enough].pop()
        by_queue = queued is not None and queued * _QUEUE_COST < len(storage.words)
        size = max(CONTROL_LENGTH, queued if by_queue and queued is not None else len(storage.words))
        given = (by_queue, storage.queue, queued or 0, storage.words, storage.control)
        self._launch(frontier_cuda.clear, size, *given)
        return storage

    def _sums_of(self, total: np.dtype[Any] | None, warps: int) -> _Sums:
        """Return arrays for the sums of that many warps; without a dtype, for the record of failures alone."""
        if total is None:
            total, warps = np.dtype(np.int64), 0
        kept = self._sums.get(total)
        if kept is None or len(kept.partials) < warps:
            control, empty = self._device.zeros(3, np.int64), self._device.empty
            parts = empty(warps, total), empty(-(-warps // FOLDED), total)
            kept = _Sums(*parts, control, control[:1].view(total), control[1:])
            self._sums[total] = kept
        return kept

    def _folded(
        self,
        total: np.dtype[Any] | None,
        warps: int,
        bodies: AnyBodies,
        arrays: tuple[Any, ...],
        *,
        records: bool,
    ) -> int | float | None:
        """Return the sum of the partial sums of all warps; only the record of failures without a dtype."""
        if total is None and not records:
            return None
        kind = np.dtype(np.int64) if total is None else total
        sums = self._sums.pop(kind)  # they are kept unless a body raised
        if total is None:
            check_bodies(self._device.download(sums.record), bodies, arrays, self._graph, self._device)
            self._sums[kind] = sums
            return None
        fold, given, spare = frontier_cuda.make_fold(total), sums.partials, sums.folded
        while warps > FOLDED:
            self._launch(fold, warps, given, warps, spare)
            given, spare, warps = spare, given, -(-warps // FOLDED)
        self._launch(fold, warps, given, warps, sums.result)
        control = self._device.download(sums.control)
        check_bodies(control[1:], bodies, arrays, self._graph, self._device)
        self._sums[total] = sums
        number: int | float = control[:1].view(total)[0].item()
        return number

    def _rows_of(self, *, transposed: bool) -> _Rows:
        """Return the rows of the out-edges, or of the in-edges, in device memory."""
        transposed = transposed and self._graph.is_directed
        if transposed not in self._rows:
            csr, copies = self._graph.csc if transposed else self._graph._csr, self._copies
            edges = self._graph._fact(
                f"rows {transposed}",
                lambda: PartitionEdges(None, csr.indptr[:-1], csr.indptr[1:], csr.indices, csr.weights),
            )
            degrees = self._graph.in_degrees if transposed else self._graph.out_degrees
            weights = 0 if csr.weights is None else csr.weights.nbytes
            indptr, _ = copies.csr(csr, weights + self._n * _STATE_BYTES)
            self._rows[transposed] = _Rows(
                indptr, copies.offsets(degrees), copies.edges(edges, HUB_EDGES, sparse=False)
            )
        return self._rows[transposed]

    def _kernel(self, kind: str, bodies: Bodies, returns: str | None) -> OperatorKernel:
        """Return the kernel of a kind for these bodies."""
        key = ("cuda", kind, returns, self._offset)
        found: OperatorKernel = kernel_of(key, bodies, lambda: make_kernel(kind, bodies, returns, self._offset))
        return found

    def _launch(self, kernel: Any, size: int, *arguments: Any) -> None:
        with explaining_compilation(self._device.name):
            self._device.launch(kernel, size, *arguments)


def _nothing(total: np.dtype[Any] | None) -> int | float | None:
    """Return the sum over no vertices."""
    return None if total is None else total.type(0).item()


def _rounds(total: np.dtype[Any] | None) -> bool:
    """Whether a sum depends on the order of its terms."""
    return total is not None and total.kind == "f"

"""The operators on the CPU: sets of vertices, and the kernels that go over their vertices and edges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpu_pregel.host.devices.cpu import CpuDevice
from gpu_pregel.host.graphs.csr import CSR
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.graphs.partitions import pack_bits
from gpu_pregel.host.traverse.bodies import Bodies, CompiledBodies, Keyed, compile_bodies, kernel_of, silenced
from gpu_pregel.host.traverse.labels import LabelBodies, compile_labels, label_body
from gpu_pregel.host.traverse.pairs import PairBodies, check_ends, compile_pairs, edge_ends, pair_body
from gpu_pregel.host.traverse.rows import RowBodies, compile_rows, row_body
from gpu_pregel.kernels.library.jit_cpu import jit_program
from gpu_pregel.kernels.traverse import edges_cpu, vertices_cpu
from gpu_pregel.kernels.traverse.frontier_cpu import COUNT, COUNTERS_LENGTH, EDGES, count_bits, fill_queue

Array = np.ndarray[Any, Any]

_SERIAL_EDGES = 1 << 14
"""With fewer edges a launch takes less time than waking the threads."""
_SERIAL_VERTICES = 1 << 12
_MOST_ENTRIES = 1 << 8
"""Entries of a queue claimed at a time, at most."""
_WORDS = 16
"""Words of a bitmap claimed at a time by a pull: 1,024 rows."""
_NONE = np.empty(0, np.uint64)


class _Storage:
    """A bitmap and a queue that sets of vertices use one after the other."""

    def __init__(self, n: int) -> None:
        self.words = np.zeros(-(-n // 64), np.uint64)
        self.queue = np.empty(n, np.uint32)

    def clear(self, queued: int | None) -> None:
        """Clear the bitmap, whose vertices are the first ``queued`` of the queue if that is known."""
        if queued is None or queued > len(self.words) >> 3:
            self.words.fill(0)
        else:
            self.words[self.queue[:queued] >> np.uint32(6)] = 0


class CpuSet:
    """A set of vertices: a bitmap and, if ``queued``, a queue with the same vertices; None as storage means all.

    Attributes
    ----------
    count : int
    edges : int
        The sum of their out-degrees.
    """

    def __init__(self, pool: list[Any], storage: _Storage | None, count: int, edges: int, *, queued: bool) -> None:
        self._pool = pool
        self.storage, self.count, self.edges, self.queued = storage, count, edges, queued

    @property
    def words(self) -> Array:
        """The bitmap; empty if the set has all vertices."""
        return _NONE if self.storage is None else self.storage.words

    def __del__(self) -> None:
        if self.storage is not None:
            self._pool.append((self.storage, self.count if self.queued else None))


class CpuOperators:
    """Runs operators on the threads of a CPU device."""

    pushes_to_all = False
    bits = 64

    def __init__(self, graph: Graph, device: CpuDevice) -> None:
        self._graph, self._device = graph, device
        self._out = graph._csr
        self._pool: list[tuple[_Storage, int | None]] = []
        self._num_words = -(-graph.num_vertices // 64)

    def arrays_of(self, csr: CSR) -> CSR:
        """Return the arrays of the CSR or CSC in the device's memory."""
        return csr

    def is_of_graph(self, array: Any) -> bool:  # noqa: ARG002
        """Whether a device array belongs to the graph."""
        return False

    def everything(self) -> CpuSet:
        """Return the set of all vertices."""
        return CpuSet(self._pool, None, self._graph.num_vertices, self._graph.num_stored_edges, queued=False)

    def chosen(self, flags: Array) -> CpuSet:
        """Return the set of the vertices with true ``flags``, bool[n]."""
        storage = self._take()
        storage.words[:] = pack_bits(flags)
        return self._counted(storage)

    def bitmap(self, active: CpuSet) -> Array:
        """Return the bitmap of a set that has not all vertices."""
        return active.words

    def from_bitmap(self, words: Array, most: int) -> CpuSet:  # noqa: ARG002
        """Return the set of the vertices of a bitmap, which is copied."""
        storage = self._take()
        storage.words[:] = words
        return self._counted(storage)

    def _counted(self, storage: _Storage) -> CpuSet:
        """Return the set of the vertices of a bitmap."""
        counters = np.zeros(COUNTERS_LENGTH, np.int64)
        self._device.launch(count_bits, self._num_words, storage.words, self._out.indptr, counters)
        return CpuSet(self._pool, storage, int(counters[COUNT]), int(counters[EDGES]), queued=False)

    def flags(self, active: CpuSet) -> Array:
        """Return bool[n]: whether each vertex is in the set."""
        n = self._graph.num_vertices
        if active.storage is None:
            return np.ones(n, bool)
        bits: Array = np.unpackbits(active.words.astype("<u8").view(np.uint8), bitorder="little")
        return bits[:n].astype(bool)

    def listed(self, active: CpuSet) -> Array:
        """Return the numbers of a set's vertices in ascending order."""
        return np.flatnonzero(self.flags(active))

    def union(self, one: CpuSet, other: CpuSet) -> CpuSet:
        """Return the set of the vertices of both."""
        if one.storage is None or other.storage is None:
            return self.everything()
        storage = self._take()
        np.bitwise_or(one.words, other.words, out=storage.words)
        return self._counted(storage)

    def degree_sum(self, active: CpuSet, csr: CSR) -> int:
        """Return the sum of the degrees of a set's vertices."""
        if csr is self._out:
            return active.edges
        if active.storage is None:
            return len(csr.indices)
        counters = np.zeros(COUNTERS_LENGTH, np.int64)
        self._device.launch(count_bits, self._num_words, active.words, csr.indptr, counters)
        return int(counters[EDGES])

    def process_vertices(self, bodies: Bodies, active: CpuSet, arrays: tuple[Any, ...], returns: str | None) -> Any:
        """Implement ``process_vertices``."""
        return self._process(bodies, active, arrays, returns, lambda: compile_bodies(bodies, returns))

    def reduce_rows(self, bodies: RowBodies, active: CpuSet, arrays: tuple[Any, ...], returns: str | None) -> Any:
        """Implement ``reduce_rows``: the body of a vertex reduces its row, and finishes it."""
        edges = self._graph.csc if bodies.transpose else self._out

        def compiled() -> CompiledBodies:
            rows, count = compile_rows(bodies, returns), len(arrays)
            body = row_body(rows, count, has_weights=bodies.has_weights)
            return CompiledBodies(body, None, np.dtype(np.int64) if rows.total is None else rows.total)

        return self._process(bodies, active, (*edges, *arrays), returns, compiled)

    def count_labels(self, bodies: LabelBodies, active: CpuSet, arrays: tuple[Any, ...], returns: str | None) -> Any:
        """Implement ``count_labels``: the body of a vertex counts in a table of its own."""
        edges = self._graph.csc if bodies.transpose else self._out

        def compiled() -> CompiledBodies:
            labels, count = compile_labels(bodies, returns), len(arrays)
            body = label_body(labels, count, has_weights=bodies.has_weights)
            return CompiledBodies(body, None, np.dtype(np.int64) if labels.total is None else labels.total)

        size = len(edges.indices)
        tables = self._device.empty(size, np.uint32), self._device.empty(size, np.int64)
        return self._process(bodies, active, (*edges, *tables, *arrays), returns, compiled)

    def edges(self, active: CpuSet) -> tuple[Array, Array]:
        """Return the ends of the edges of a set's vertices."""
        flags = None if active.storage is None else self.flags(active)
        return edge_ends(self._graph, flags, self._device.threads)

    def intersect_rows(
        self, bodies: PairBodies, pairs: tuple[Array, Array], arrays: tuple[Any, ...], returns: str | None
    ) -> Any:
        """Implement ``intersect_rows``: the body of a pair walks the shorter row."""
        edges, count = self._graph.csc if bodies.transpose else self._out, len(pairs[0])

        def kernel_and_total() -> tuple[Any, np.dtype[Any]]:
            one = compile_pairs(bodies, returns)
            body = pair_body(one, len(arrays), returns, has_weights=bodies.has_weights)
            sums = one.total if returns == "sum" and one.total else np.dtype(np.int64)
            return jit_program(vertices_cpu.make_sum_of_words(body, zero=sums.type(0))), one.total or sums

        kernel, total = kernel_of(("pairs", returns), bodies, kernel_and_total)
        check_ends(self._graph, *pairs)
        found = np.empty(count if returns == "pairs" else 0, total)
        sums = np.empty(_blocks(count), total if returns == "sum" else np.int64)
        given = (*edges, *pairs, found, *arrays)
        self._device.launch_ranges(kernel, len(sums), _NONE, True, count, given, sums)
        result: int | float = sums.sum().item()
        return found if returns == "pairs" else result if returns == "sum" else None

    def _process(
        self,
        bodies: Keyed,
        active: CpuSet,
        arrays: tuple[Any, ...],
        returns: str | None,
        compiled: Callable[[], CompiledBodies],
    ) -> Any:
        """Call the body for each vertex: its kernel is kept by the key of the bodies."""
        if returns != "frontier":
            total = self._sum_over_vertices(bodies, active, arrays, returns, compiled)
            return total if returns == "sum" else None
        device, degrees = self._device, self._out.indptr
        storage, counters = self._take(), np.zeros(COUNTERS_LENGTH, np.int64)
        if active.storage is not None and active.queued:
            make = vertices_cpu.make_filter_of_queue
            kernel = kernel_of("filter of queue", bodies, lambda: jit_program(make(compiled().body)))
            queue, found = active.storage.queue, (storage.words, storage.queue, counters)
            device.launch_ranges(kernel, _blocks(active.count), queue, active.count, degrees, arrays, *found)
        else:
            make_words = vertices_cpu.make_filter_of_words
            kernel = kernel_of("filter of words", bodies, lambda: jit_program(make_words(compiled().body)))
            every = active.storage is None
            device.launch_ranges(kernel, self._num_words, active.words, every, degrees, arrays, storage.words, counters)
        return CpuSet(self._pool, storage, int(counters[COUNT]), int(counters[EDGES]), queued=active.queued)

    def _sum_over_vertices(
        self,
        bodies: Keyed,
        active: CpuSet,
        arrays: tuple[Any, ...],
        returns: str | None,
        compiled: Callable[[], CompiledBodies],
    ) -> int | float:
        queued = active.storage is not None and active.queued
        make = vertices_cpu.make_sum_of_queue if queued else vertices_cpu.make_sum_of_words

        def kernel_and_total() -> tuple[Any, np.dtype[Any]]:
            one = compiled()
            body = silenced(one.body, 1 + len(arrays)) if returns is None else one.body
            return jit_program(make(body, zero=one.total.type(0))), one.total

        kind = ("queue" if queued else "words", returns)
        kernel, total = kernel_of(kind, bodies, kernel_and_total)
        sums = np.empty(_blocks(active.count) if queued else self._num_words, total)
        if queued:
            queue = self._ordered(active, total)
            self._device.launch_ranges(kernel, len(sums), queue, active.count, arrays, sums)
        else:
            n, every = self._graph.num_vertices, active.storage is None
            self._device.launch_ranges(kernel, len(sums), active.words, every, n, arrays, sums)
        result: int | float = sums.sum().item()
        return result

    def process_edges(
        self,
        bodies: Bodies,
        active: CpuSet,
        arrays: tuple[Any, ...],
        returns: str | None,
        *,
        transpose: bool,
        push: bool,
    ) -> Any:
        """Implement ``process_edges`` in one direction."""
        # A push reads the rows of the senders, a pull those of the receivers.
        edges = self._graph.csc if transpose == push else self._out
        if returns != "frontier":
            total = self._sum_over_edges(bodies, active, arrays, edges, returns, push=push)
            return total if returns == "sum" else None
        storage, counters = self._take(), np.zeros(COUNTERS_LENGTH, np.int64)
        rest = (*edges, self._out.indptr, arrays, storage.words)
        if push:
            kernel = kernel_of("push", bodies, lambda: _plain(edges_cpu.make_push, bodies))
            self._launch_push(kernel, active, self._queue(active), *rest, storage.queue, counters)
        else:
            kernel = kernel_of("pull", bodies, lambda: _plain(edges_cpu.make_pull, bodies))
            every = active.storage is None
            self._device.launch(kernel, self._num_words, active.words, every, *rest, counters, chunk=self._word_chunk())
        return CpuSet(self._pool, storage, int(counters[COUNT]), int(counters[EDGES]), queued=push)

    def _launch_push(self, kernel: Any, active: CpuSet, queue: Array, *arguments: Any) -> None:
        chunk = active.count if active.edges < _SERIAL_EDGES else _entries(active.count, self._device.threads)
        self._device.launch(kernel, active.count, queue, *arguments, chunk=max(1, chunk))

    def _sum_over_edges(
        self, bodies: Bodies, active: CpuSet, arrays: tuple[Any, ...], edges: CSR, returns: str | None, *, push: bool
    ) -> int | float:
        make = edges_cpu.make_push_sum if push else edges_cpu.make_pull_sum
        kind = ("push sum" if push else "pull sum", returns)
        kernel, total = kernel_of(kind, bodies, lambda: _summing(make, bodies, returns))
        if push:
            blocks = -(-active.count // edges_cpu.ITEMS_PER_SUM)
            sums = np.empty(blocks, total)
            chunk = max(1, blocks) if active.edges < _SERIAL_EDGES else 1
            queue = self._ordered(active, total)
            self._device.launch(kernel, blocks, queue, active.count, *edges, arrays, sums, chunk=chunk)
        else:
            sums = np.empty(self._num_words, total)
            rest = (active.words, active.storage is None, *edges, arrays, sums)
            self._device.launch(kernel, self._num_words, *rest, chunk=self._word_chunk())
        result: int | float = sums.sum().item()
        return result

    def _queue(self, active: CpuSet) -> Array:
        """Return the queue of a set, after filling it if necessary."""
        if active.storage is None:
            return np.arange(self._graph.num_vertices, dtype=np.uint32)
        if not active.queued:
            counters = np.zeros(COUNTERS_LENGTH, np.int64)
            storage = active.storage
            chunk = self._num_words if self._num_words <= _SERIAL_VERTICES else 1 << 10
            self._device.launch(fill_queue, self._num_words, storage.words, storage.queue, counters, chunk=chunk)
            active.queued = True
        return active.storage.queue

    def _ordered(self, active: CpuSet, total: np.dtype[Any]) -> Array:
        """Return the queue in ascending order if a sum depends on the order."""
        queue = self._queue(active)
        if total.kind == "f" and active.storage is not None:
            queue[: active.count].sort()
        return queue

    def _word_chunk(self) -> int:
        """Return the number of words of a bitmap to claim at a time."""
        words = self._num_words
        return (
            max(1, words)
            if words << 6 <= _SERIAL_VERTICES
            else max(1, min(_WORDS, words // (8 * self._device.threads)))
        )

    def _take(self) -> _Storage:
        """Return storage for a set, with no bit set."""
        if not self._pool:
            return _Storage(self._graph.num_vertices)
        storage, queued = self._pool.pop()
        storage.clear(queued)
        return storage


def _blocks(count: int) -> int:
    """Return the number of work items of a queue of ``count`` vertices."""
    return -(-count // vertices_cpu.ITEM)


def _entries(count: int, threads: int) -> int:
    """Return the number of entries of a queue to claim at a time."""
    return max(1, min(_MOST_ENTRIES, count // (16 * threads)))


def _plain(make: Any, bodies: Bodies) -> Any:
    """Return a kernel whose bodies say which vertices become active."""
    one = compile_bodies(bodies, "frontier")
    return jit_program(make(one.body, one.receives, has_weights=bodies.has_weights))


def _summing(make: Any, bodies: Bodies, returns: str | None) -> tuple[Any, np.dtype[Any]]:
    """Return a kernel that sums the results of bodies of edges, or zeros, and the dtype of the sum."""
    one = compile_bodies(bodies, returns)
    body = silenced(one.body, 3 + len(bodies.kinds)) if returns is None else one.body
    return jit_program(make(body, one.receives, has_weights=bodies.has_weights, zero=one.total.type(0))), one.total

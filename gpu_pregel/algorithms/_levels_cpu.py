"""The phases of Louvain and Leiden on the CPU; ``_levels`` calls them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.algorithms._levels import Level, LevelPhases, Objective, Search, is_serial
from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.graphs.csr import CSR, build_csr, read_only
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.superstep.phases import Phases
from gpu_pregel.kernels.algorithms import aggregation_cpu, communities_cpu, refinement_cpu

Array = np.ndarray[Any, Any]

_NUMBERED_AT_ONCE = 1 << 12
_MEMBERS_PER_PIECE = 128
_CHUNKS_PER_THREAD = 8
_COMMUNITIES_AT_ONCE = 4


class CpuLevels:
    """Moves, refines and aggregates with kernels; each thread has a row of the tables in which it sums weights."""

    def __init__(self, device: Device, phases: Phases, n: int) -> None:
        self._device = device
        self._phases = phases
        self._threads = device.threads or 1
        self._n = n
        device.require(self._threads * n * 12 + 40 * n, f"the search for communities with {self._threads} threads")
        self._slots = np.zeros(16, np.int64)
        self._found = np.zeros((self._threads, n + 16), np.uint32)
        self._buffers: dict[str, Array] = {}
        self._small: Array | None = None
        self._wide: Array | None = None

    def _tables(self, level: Level) -> Array:
        """Return tables of zeros: of int32 for edges without weights, of which a vertex has fewer than 2^31."""
        if level.weights is None and level.n < 1 << 31:
            if self._small is None:
                self._small = np.zeros((self._threads, self._n), np.int32)
            return self._small
        if self._wide is None:
            self._wide = np.zeros((self._threads, self._n), np.int64)
        return self._wide

    def _buffer(self, name: str, size: int, dtype: Any) -> Array:
        """Return an uninitialised array that shares the memory of the last one of that name; new memory is slow."""
        buffer = self._buffers.get(name)
        if buffer is None or len(buffer) < size:
            buffer = self._buffers[name] = np.empty(size, dtype)
        return buffer[:size]

    def _launch(self, kernel: Any, size: int, *arguments: Any, chunk: int | None = None) -> None:
        self._slots[0] = 0
        self._device.launch(kernel, size, *arguments, chunk=chunk)

    def first_level(self, graph: Graph, factor: float | None) -> tuple[Level, int]:
        indptr, indices = read_only(graph.indptr), read_only(graph.indices)
        n, m = graph.num_vertices, graph.num_stored_edges
        degrees = np.empty(n, np.int64)
        weights = None
        with self._phases.measure("sum degrees"):
            if factor is None:
                self._launch(communities_cpu.count_degrees, n, indptr, indices, degrees)
            else:
                weights = np.empty(m, np.int64)
                given = read_only(graph.weights)  # type: ignore[arg-type]
                self._launch(communities_cpu.sum_degrees, n, indptr, indices, given, factor, weights, degrees)
                weights = read_only(weights)
        return Level(0, indptr, indices, weights, degrees), int(degrees.sum())

    def upload(self, labels: Any) -> Any:
        return labels

    def move(self, level: Level, starts: Any, search: Search, objective: Objective) -> Array:
        n, kernels = level.n, communities_cpu
        labels = np.arange(n, dtype=np.uint32) if starts is None else starts
        totals = level.degrees.copy() if starts is None else self._sum_totals(level, labels)
        active = np.ones(n, np.uint8)
        tables = self._tables(level)
        limit = objective.gain(search.tolerance / 10**level.number)
        graph = (level.indptr, level.indices, level.weights, level.degrees)
        scale = (objective.rate, objective.unit)
        if is_serial(level):
            with self._phases.measure(f"move {level.number + 1}"):
                order = search.order(n)
                self._launch(
                    kernels.move_serially,
                    1,
                    *graph,
                    labels,
                    totals,
                    active,
                    tables,
                    self._found,
                    *scale,
                    limit,
                    search.rounds,
                    *order,
                )
            return labels
        targets = labels.copy()
        for turn in range(search.rounds):
            gained = np.zeros(1, np.int64)
            tallies = (tables, self._found, self._slots, *scale)
            with self._phases.measure(f"move {level.number + 1}.{turn + 1}"):
                # In the first round every vertex stays active: nearly all would be activated again.
                if search.deterministic:
                    self._move_batches(level, search, labels, totals, active, targets, tallies, turn > 0, gained)
                else:
                    self._launch(kernels.move_at_once, n, *graph, labels, totals, active, *tallies, turn > 0, gained)
                if turn == 0:
                    active.fill(1)
            if gained[0] <= limit:
                break
        return labels

    def _move_batches(
        self,
        level: Level,
        search: Search,
        labels: Array,
        totals: Array,
        active: Array,
        targets: Array,
        tallies: tuple[Any, ...],
        mark: bool,
        gained: Array,
    ) -> None:
        """Move the vertices of one batch after the other, each batch by the communities that it found."""
        batches, block = search.batches(level)
        step, start = search.order(batches)
        blocks = -(-level.n // block)
        graph = (level.indptr, level.indices, level.weights, level.degrees)
        for i in range(batches):
            batch = (i * step + start) % batches
            size = max(0, -(-(blocks - batch) // batches))
            chunk = max(1, size // (_CHUNKS_PER_THREAD * self._threads))
            part, moving = (batch, batches, block), (labels, totals, active, targets)
            self._launch(communities_cpu.propose, size, *part, *graph, *moving, *tallies, gained, chunk=chunk)
            self._launch(communities_cpu.move, size, *part, *graph[:2], level.degrees, *moving, mark, chunk=chunk)

    def hand_over(self, level: Level, labels: list[Any]) -> tuple[LevelPhases, Level, list[Any]]:
        return self, level, labels

    def _sum_totals(self, level: Level, labels: Array) -> Array:
        totals = np.zeros(level.n, np.int64)
        self._launch(communities_cpu.sum_totals, level.n, labels, level.degrees, totals)
        return totals

    def number(self, labels: Any) -> tuple[Array, int]:
        n, kernels, block = len(labels), aggregation_cpu, _NUMBERED_AT_ONCE
        blocks = -(-n // block)
        smallest = np.full(n, n, np.uint32)
        counts = np.zeros(blocks, np.int64)
        numbers = np.empty(n, np.uint32)
        with self._phases.measure("number"):
            self._launch(kernels.find_smallest, n, labels, smallest)
            self._launch(kernels.count_smallest, blocks, block, labels, smallest, counts, chunk=1)
            starts = np.cumsum(counts) - counts
            self._launch(kernels.number_smallest, blocks, block, labels, smallest, starts, numbers, chunk=1)
        return self.look_up(numbers, labels), int(counts.sum())

    def look_up(self, table: Array, labels: Any) -> Array:
        found = np.empty(len(labels), np.uint32)
        self._launch(aggregation_cpu.look_up, len(labels), table, labels, found)
        return found

    def common_starts(self, communities: Any, refined: Any, count: int) -> Array:
        n = len(communities)
        first = np.full(n, n, np.uint32)
        self._launch(aggregation_cpu.find_first, n, communities, refined, first)
        starts = np.empty(count, np.uint32)
        self._launch(aggregation_cpu.look_up_first, n, communities, refined, first, starts)
        return starts

    def aggregate(self, level: Level, labels: Any, count: int) -> Level:
        n, m, kernels = level.n, level.m, aggregation_cpu
        scratch = (self._tables(level), self._found, self._slots)
        with self._phases.measure(f"aggregate {level.number + 1}"):
            members = self._members(labels).indices
            most = count + -(-n // _MEMBERS_PER_PIECE)
            pieces = (np.empty(most, np.uint32), np.empty(most, np.int64), np.empty(most, np.int64))
            edges = (self._buffer("piece indices", m, np.uint32), self._buffer("piece weights", m, np.int64))
            counts, degrees, cursor = np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(2, np.int64)
            graph = (level.indptr, level.indices, level.weights, level.degrees)
            self._launch(
                kernels.aggregate, n, members, labels, *graph, *scratch, *pieces, *edges, counts, degrees, cursor,
                chunk=_MEMBERS_PER_PIECE,
            )  # fmt: skip

            indptr = np.zeros(count + 1, np.int64)
            np.cumsum(counts, out=indptr[1:])
            # The arrays of this level are read no more when those of the one after the next are written.
            size, parity = int(indptr[-1]), level.number % 2
            indices = self._buffer(f"indices {parity}", size, np.uint32)
            weights = self._buffer(f"weights {parity}", size, np.int64)
            self._launch(kernels.join_pieces, int(cursor[0]), *pieces, *edges, indptr[:-1].copy(), indices, weights)
        return Level(level.number + 1, read_only(indptr), read_only(indices), read_only(weights), degrees)

    def refine(self, level: Level, communities: Any, count: int, objective: Objective) -> Array:
        graph = (level.indptr, level.indices, level.weights, level.degrees)
        refined, totals = np.arange(level.n, dtype=np.uint32), level.degrees.copy()
        scratch = (self._tables(level), self._found, self._slots)
        with self._phases.measure(f"refine {level.number + 1}"):
            members = self._members(communities)
            self._launch(
                refinement_cpu.refine, count, members.indptr, members.indices, *graph, communities, refined, totals,
                np.empty(level.n, np.int64), *scratch, objective.rate, objective.unit, chunk=_COMMUNITIES_AT_ONCE,
            )  # fmt: skip
        return refined

    def _members(self, communities: Any) -> CSR:
        """Return the members of each community in ascending order."""
        n = len(communities)
        numbers = np.arange(n, dtype=np.uint32)
        return build_csr(communities, numbers, None, n, symmetric=False, threads=self._threads)

"""The state of a vertex program's run on the CPU, and its phases partition by partition."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.host.devices.cpu import CpuDevice
from gpu_pregel.host.graphs.partitions import Partition, full_bitmap
from gpu_pregel.host.programs.compiler import CompiledProgram
from gpu_pregel.host.programs.state import Activity, ProgramState, SuperstepFigures
from gpu_pregel.host.traverse.exchange import LOCAL, Exchange, PartitionState, VertexArrays
from gpu_pregel.kernels.library.bits_cpu import WORD_BITS
from gpu_pregel.kernels.programs.program_cpu import BLOCK_WORDS

Array = np.ndarray[Any, Any]

_SERIAL_EDGES = 1 << 14
"""With fewer edges a phase takes less time than waking the threads."""
_MIN_ROWS, _MAX_ROWS = 1 << 6, 1 << 10
"""Rows claimed at a time: 64, as in Gemini, or more on large graphs; hubs are cut into pieces beforehand."""
_WORD_CHUNK = 4
"""Words of the frontier, or pieces of hubs, claimed at a time."""


class CpuPartition(PartitionState):
    """The state of one partition on the CPU, with the figures of its blocks of vertices."""

    def __init__(self, partition: Partition, program: CompiledProgram) -> None:
        super().__init__(partition)
        words = -(-(partition.last - partition.first) // WORD_BITS)
        blocks = -(-words // BLOCK_WORDS)
        self.origin = None if partition.is_whole else partition.first
        self.counts = np.zeros((blocks, 3), np.int64)
        self.partials = tuple(np.full(blocks, start, dtype) for _, dtype, start in program.aggregates)
        edges, hubs = partition.out_edges, partition.out_hubs
        self.push_items = len(partition.sources.bits) + len(hubs.rows)
        self.push_edges = (
            *(*partition.sources, edges.begins, edges.ends),
            *(partition.hub_words, partition.hub_bits, hubs.begins, hubs.ends),
            *(edges.indices, edges.weights if program.per_edge else None),
        )
        rows = partition.in_edges.rows
        self.hub_vertices = partition.in_hubs.rows if rows is None else rows[partition.in_hubs.rows]
        self.signals: tuple[Array, ...] = ()
        self.hub_mirrors: tuple[Array, ...] = ()
        """As ``mirrors``, for each piece of a hub."""


class CpuState(ProgramState):
    """Values, frontier and messages of a run on the CPU, and the phases of a superstep.

    Parameters
    ----------
    program : CompiledProgram
    partitions : list of Partition
    out_degrees, in_degrees : int64[n]
        ``in_degrees`` may be ``out_degrees`` if no function uses it.
    device : CpuDevice
    always : bool
        Whether every vertex applies in every superstep.
    exchange : Exchange, optional
        Default: the partitions read each other's arrays.
    """

    partitions: list[CpuPartition]
    _device: CpuDevice

    def __init__(
        self,
        program: CompiledProgram,
        partitions: list[Partition],
        out_degrees: Array,
        in_degrees: Array,
        device: CpuDevice,
        *,
        always: bool,
        exchange: Exchange = LOCAL,
    ) -> None:
        n = len(out_degrees)
        size = out_degrees.itemsize
        super().__init__(
            *(program, device, partitions),
            num_vertices=n,
            offset_size=size,
            word=np.uint64,
            always=always,
            exchange=exchange,
        )
        self._everywhere = full_bitmap(n)
        self._is_whole = partitions[0].is_whole
        self.context_arrays = tuple(np.array([start], dtype) for _, dtype, start in program.aggregates)
        self._totals: tuple[Array, ...] = ()
        self._is_hidden = np.zeros(1, bool)
        """Whether a signal equals that of a vertex that sends nothing."""
        self.partitions = [CpuPartition(partition, program) for partition in partitions]
        self._starts = program.identity if program.message.is_tuple else (program.identity,)
        touched = np.zeros_like(self._everywhere)
        self._use(
            VertexArrays(
                out_degrees,
                in_degrees,
                values=tuple(device.empty(n, dtype) for dtype in program.value.dtypes),
                frontier=np.zeros_like(self._everywhere),
                inbox=tuple(
                    np.full(n, start, dtype) for start, dtype in zip(self._starts, program.message.dtypes, strict=True)
                ),
                touched=touched,
                woken=touched if program.declaration.wake is None else np.zeros_like(self._everywhere),
            )
        )

    def initialise(self) -> Activity:
        """Run superstep 0: ``init`` and the first frontier."""
        for part in self.partitions:
            own, blocks = part.vertices, len(part.counts)
            self._device.launch(
                *(self._program.init, blocks, *self._given, part.partition.first, self._n),
                *(own.out_degrees, own.in_degrees, self.context_arrays, own.values, own.frontier, part.counts),
                chunk=_block_chunk(blocks),
            )
        return Activity(*self._sum_counts()[:2])

    def execute(
        self,
        direction: str,
        superstep: int,
        activity: Activity,
        totals: tuple[Any, ...],
        limit: int,  # noqa: ARG002
    ) -> list[SuperstepFigures]:
        """Run a superstep in which the active vertices send; ``totals`` are the aggregates that it sees."""
        if self._program.receives:
            seen = [np.array([total]) for total in totals]
            parameters = self.context_arrays[len(totals) :]
            if self._next_parameters is not None:
                parameters = self._upload_parameters(self._next_parameters)
            self._totals = (*seen, *parameters)
        (self._push if direction == "push" else self._pull)(superstep - 1, activity)
        self._deliver_posted()
        for array, total in zip(self.aggregates, totals, strict=True):
            array[0] = total
        if self._next_parameters is not None:
            self.set_parameters(self._next_parameters, self._seed)
        self._apply(superstep)
        active_vertices, active_edges, applied = self._sum_counts()
        return [SuperstepFigures(Activity(active_vertices, active_edges), applied, self._fold())]

    def _push(self, superstep: int, activity: Activity) -> None:
        """Sparse side: active sources send along their out-edges into the inboxes."""
        for part, signals in zip(self.partitions, self._exchange.send_signals(self), strict=True):
            own, items = part.vertices, part.push_items
            receivers = self._receivers(own, part.partition.first, superstep + 1) if self._program.receives else ()
            self._device.launch(
                *(self._program.push, items, *part.push_edges),
                *(signals.by_row, self._n, signals.out_degrees, signals.in_degrees),
                *(superstep, self.context_arrays, signals.values, signals.frontier),
                *(part.origin, receivers, _as_bits(own.inbox[0]), own.touched),
                chunk=items if activity.active_edges < _SERIAL_EDGES else _WORD_CHUNK,
            )

    def _pull(self, superstep: int, activity: Activity) -> None:
        """Dense side: every vertex, or every receiver, combines the messages of its active in-neighbours."""
        program, all_active = self._program, activity.active_vertices == self._n
        receivers: tuple[Any, ...] = ()
        if program.receives and (self._is_whole or self._exchange.shares_memory):
            receivers = self._receivers(self.vertices, 0, superstep + 1)
        for part in self.partitions:
            own = part.vertices
            sources: tuple[Any, ...]
            degrees = (own.out_degrees, own.in_degrees)
            state = (superstep, self.context_arrays, own.values, own.frontier)
            if program.signal is None:
                sources = (part.partition.in_edges.weights, part.origin, self._n, *degrees, *state, all_active)
            else:
                part.signals = part.signals or self._message_arrays(len(own.out_degrees))
                arguments = (part.partition.first, self._n, *degrees, *state, part.signals, self._is_hidden)
                self._is_hidden[0] = False
                self._device.launch(program.signal, len(own.out_degrees), *arguments)
                sources = (part.origin, part.signals, own.frontier, all_active, bool(self._is_hidden[0]))
            self._pull_partition(part, sources, receivers)
        if not self._is_whole:
            self._exchange.send_mirrors(self)

    def _pull_partition(self, part: CpuPartition, sources: tuple[Any, ...], receivers: tuple[Any, ...]) -> None:
        """Combine the messages of a partition's sources: into its mirrors, or the inbox of the whole graph."""
        edges, hubs = part.partition.in_edges, part.partition.in_hubs
        count, chunk = len(edges.begins), len(edges.begins)
        if len(edges.indices) >= _SERIAL_EDGES:
            chunk = max(_MIN_ROWS, min(_MAX_ROWS, count // (64 * self._device.threads) // _MIN_ROWS * _MIN_ROWS))
        inbox, marks = part.vertices.inbox, part.vertices.touched
        if not self._is_whole:
            part.mirrors = self._empty_mirrors(part.mirrors, count)
            inbox, marks = part.mirrors[:-1], part.mirrors[-1]
        selective = self._program.is_selective
        per_edge = self._program.signal is None
        chosen: tuple[Any, ...] = (edges.rows, receivers) if selective else (edges.rows,) if per_edge else ()
        arguments = (edges.begins, edges.ends, edges.indices, *sources, *chosen)
        self._device.launch(self._program.pull, count, *arguments, inbox, marks, chunk=chunk)
        if pieces := len(hubs.rows):
            part.hub_mirrors = self._empty_mirrors(part.hub_mirrors, pieces)
            sent, sent_marks = part.hub_mirrors[:-1], part.hub_mirrors[-1]
            chosen = (part.hub_vertices, receivers) if selective else (part.hub_vertices,) if per_edge else ()
            arguments = (hubs.begins, hubs.ends, edges.indices, *sources, *chosen)
            self._device.launch(self._program.pull, pieces, *arguments, sent, sent_marks, chunk=1)
            arguments = (hubs.rows, sent, sent_marks, None, inbox, marks)
            self._device.launch(self._program.slot, pieces, *arguments, chunk=pieces)

    def _receivers(self, vertices: VertexArrays, first: int, superstep: int) -> tuple[Any, ...]:
        """Return the state from which kernels decide which of these vertices take messages."""
        return (first, superstep, vertices.out_degrees, vertices.in_degrees, self._totals, vertices.values)

    def deliver(self, rows: Array, mirrors: tuple[Array, ...], owner: PartitionState | None = None) -> None:
        """Combine a mirror for each vertex of ``rows`` into the inbox of ``owner``, or into that of all vertices."""
        origin, own = (None, self.vertices) if owner is None else (owner.partition.first, owner.vertices)
        arguments = (mirrors[:-1], mirrors[-1], origin, own.inbox, own.touched)
        self._device.launch(self._program.slot, len(rows), rows, *arguments)

    def _deliver_posted(self) -> None:
        """Deliver the messages that were posted, after those of the edges."""
        posted = self.take_posted()
        if posted is not None:
            self.deliver(posted.vertices, (*posted.messages, full_bitmap(len(posted.vertices))))

    def _apply(self, superstep: int) -> None:
        """Deliver: vertices with messages, or all, apply them and decide whether they are active."""
        if self._always:
            self.vertices.touched[:] = self._everywhere
        if self.excluded is not None:
            touched = self.vertices.touched
            touched &= self._applying
            for inbox, start in zip(self.vertices.inbox, self._starts, strict=True):
                inbox[self.excluded] = start
        for part in self.partitions:
            for partial, (_, _, start) in zip(part.partials, self._program.aggregates, strict=True):
                partial.fill(start)
            own, blocks = part.vertices, len(part.counts)
            self._device.launch(
                *(self._program.apply, blocks, part.partition.first, self._n, own.out_degrees, own.in_degrees),
                *(superstep, self.context_arrays, own.inbox, own.touched, own.values, own.frontier),
                *(own.woken, part.counts, part.partials),
                chunk=_block_chunk(blocks),
            )

    def _sum_counts(self) -> list[int]:
        """Return the numbers of active vertices, active edges and vertices that applied."""
        totals, *others = self._exchange.gather_figures([part.counts.sum(axis=0) for part in self.partitions])
        for counts in others:
            totals = totals + counts
        result: list[int] = totals.tolist()
        return result

    def _fold(self) -> tuple[Any, ...]:
        """Fold the aggregates of all blocks, in order."""
        totals = []
        for k, (fold, (_, dtype, start)) in enumerate(
            zip(self._program.aggregate_folds, self._program.aggregates, strict=True)
        ):
            total = start
            for partials in self._exchange.gather_figures([part.partials[k] for part in self.partitions]):
                for partial in partials:
                    total = dtype.type(fold(total, partial))
            totals.append(total)
        return tuple(totals)

    def _message_arrays(self, count: int) -> tuple[Array, ...]:
        return tuple(self._device.empty(count, dtype) for dtype in self._program.message.dtypes)

    def _empty_mirrors(self, mirrors: tuple[Array, ...], count: int) -> tuple[Array, ...]:
        """Return mirrors without messages: these, or new ones."""
        mirrors = mirrors or (*self._message_arrays(count), np.zeros(-(-count // WORD_BITS), np.uint64))
        mirrors[-1].fill(0)
        return mirrors


def _as_bits(array: Array) -> Array:
    """Return a view as unsigned integers, for compare-and-swap, if the dtype is a float or bool."""
    return array.view(f"u{array.dtype.itemsize}") if array.dtype.kind in "fb" else array


def _block_chunk(blocks: int) -> int:
    """Return the blocks claimed at a time; one or two are not worth a second thread."""
    return blocks if blocks <= 2 else 4

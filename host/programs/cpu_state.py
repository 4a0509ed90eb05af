"""Numeric vertices: the state of a run of a vertex program, and its phases on the partitions of a device."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from gpu_pregel.host.devices.cpu import CpuDevice
from gpu_pregel.host.graphs.partitions import Partition, full_bitmap
from gpu_pregel.host.programs.compiler import CompiledProgram
from gpu_pregel.host.programs.traffic import Traffic
from gpu_pregel.kernels.library.bits_cpu import WORD_BITS
from gpu_pregel.kernels.programs.program_cpu import BLOCK_WORDS

Array = np.ndarray[Any, Any]

_SERIAL_EDGES = 1 << 14
"""So few edges take less time than waking the threads."""
_MIN_ROWS, _MAX_ROWS = 1 << 6, 1 << 10
"""Rows handed out at once: 64, as in Gemini, or more on large graphs; hubs are cut into pieces beforehand."""
_WORD_CHUNK = 4
"""Words of the frontier, or pieces of hubs, handed out at once."""


class Plan(NamedTuple):
    """What is active before a superstep."""

    active_vertices: int
    active_edges: int


class Step(NamedTuple):
    """What a superstep left: what is active now, how many vertices applied, and the aggregates."""

    plan: Plan
    applied: int
    totals: tuple[Any, ...]


class Run(Protocol):
    """The state of a run on a device, as the master sees it."""

    @property
    def aggregates(self) -> tuple[Any, ...]: ...  # noqa: D102
    @property
    def values(self) -> tuple[Any, ...]: ...  # noqa: D102

    def initialise(self) -> Plan:
        """Superstep 0: ``init`` and the first frontier."""

    def execute(self, direction: str, superstep: int, plan: Plan, totals: tuple[Any, ...], most: int) -> list[Step]:
        """Run one superstep, or up to ``most``: ``plan``'s vertices send, those who get a message apply it."""

    def fold(self) -> tuple[Any, ...]:
        """The aggregates so far."""

    def snapshot(self) -> dict[str, Array]:
        """The state between two supersteps, by name, in the memory of the host; the inboxes are empty then."""

    def restore(self, arrays: dict[str, Array]) -> None:
        """Take the state of a :meth:`snapshot`, in place of :meth:`initialise`."""

    def bytes_moved(self, direction: str, sent: Plan) -> int:
        """Bytes that a superstep moves by model."""


class NumericRun:
    """Values, frontier and messages of a run, and its phases.

    Parameters
    ----------
    program : CompiledProgram
    partitions : list of Partition
    out_degrees, in_degrees : int64[n]
        ``in_degrees`` may be ``out_degrees`` where no function asks for it.
    """

    def __init__(
        self,
        program: CompiledProgram,
        partitions: list[Partition],
        out_degrees: Array,
        in_degrees: Array,
        device: CpuDevice,
        *,
        always: bool,
    ) -> None:
        n = len(out_degrees)
        self._program = program
        self._partitions = partitions
        self._device = device
        self._degrees = (out_degrees, in_degrees)
        self._always = always
        self.values = tuple(device.empty(n, dtype) for dtype in program.value.dtypes)
        self.frontier = np.zeros(-(-n // WORD_BITS), np.uint64)
        self.aggregates = tuple(np.array([start], dtype) for _, dtype, start in program.aggregates)
        self._inbox = tuple(
            np.full(n, start, dtype) for start, dtype in zip(_parts(program), program.message.dtypes, strict=True)
        )
        self._signals: tuple[Array, ...] | None = None
        self._mirrors: dict[int, tuple[Array, ...]] = {}
        self._everywhere = full_bitmap(n)
        self._touched = np.zeros_like(self.frontier)
        blocks = [-(-int(partition.words[1] - partition.words[0]) // BLOCK_WORDS) for partition in partitions]
        out = partitions[0].out_edges
        self._traffic = Traffic(
            vertices=n,
            edges=len(partitions[0].in_edges.indices),
            value=program.value.itemsize,
            message=program.message.itemsize,
            edge=out.indices.itemsize + (0 if out.weights is None or not program.per_edge else out.weights.itemsize),
            row=2 * out_degrees.itemsize,
            bitmap=self.frontier.nbytes,
            has_signals=program.signal is not None,
        )
        self._words = [partition.words for partition in partitions]
        self._counts = [np.zeros((count, 3), np.int64) for count in blocks]
        self._partials = [
            tuple(np.full(count, start, dtype) for _, dtype, start in program.aggregates) for count in blocks
        ]

    def initialise(self) -> Plan:
        """Superstep 0: ``init`` and the first frontier."""
        for words, counts in zip(self._words, self._counts, strict=True):
            arguments = (*self._degrees, self.aggregates, self.values, self.frontier, counts)
            self._device.launch(self._program.init, len(counts), words, *arguments, chunk=_block_chunk(len(counts)))
        return Plan(*self._totals()[:2])

    def execute(self, direction: str, superstep: int, plan: Plan, totals: tuple[Any, ...], _most: int) -> list[Step]:
        """Run a superstep in which ``plan``'s vertices send; ``totals`` are the aggregates that it sees."""
        (self.push if direction == "push" else self.pull)(superstep - 1, plan)
        self.publish(totals)
        plan, applied = self.apply(superstep)
        return [Step(plan, applied, self.fold())]

    def push(self, superstep: int, plan: Plan) -> None:
        """Sparse side: active sources send along their out-edges into the inboxes."""
        inbox_bits = _as_bits(self._inbox[0])
        for partition in self._partitions:
            side = partition.out_edges
            weights = side.weights if self._program.per_edge else None
            edges = (partition.sources, side.begins, side.ends, *partition.out_hubs, side.indices, weights)
            items = len(self.frontier) + len(partition.out_hubs.rows)
            self._device.launch(
                self._program.push,
                items,
                *(*edges, *self._degrees, superstep, self.aggregates, self.values, self.frontier),
                *(inbox_bits, self._touched),
                chunk=items if plan.active_edges < _SERIAL_EDGES else _WORD_CHUNK,
            )

    def pull(self, superstep: int, plan: Plan) -> None:
        """Dense side: every vertex combines the messages of its active in-neighbours."""
        program, state = self._program, (*self._degrees, superstep, self.aggregates, self.values, self.frontier)
        n = len(self._degrees[0])
        if program.signal is not None:
            if self._signals is None:
                self._signals = tuple(self._device.empty(n, dtype) for dtype in program.message.dtypes)
            self._device.launch(program.signal, n, *state, self._signals)
            tail: tuple[Any, ...] = (self._signals,)
        for partition in self._partitions:
            side, rows = partition.in_edges, partition.rows
            count = n if rows is None else len(rows)
            inbox = self._inbox if rows is None else self._mirror(partition.number, count)
            if program.signal is None:
                tail = (side.weights, *state, plan.active_vertices == n)
            edges = (rows, side.begins, side.ends, side.indices)
            chunk = count
            if len(side.indices) >= _SERIAL_EDGES:
                chunk = max(_MIN_ROWS, min(_MAX_ROWS, count // (64 * self._device.threads)))
            self._device.launch(program.pull, count, *edges, *tail, inbox, chunk=chunk)
            if rows is not None:
                self._device.launch(program.slot, count, rows, inbox, self._inbox)
            hubs = partition.in_hubs
            if len(hubs.rows):
                pieces = self._mirror(-1 - partition.number, len(hubs.rows))
                edges = (None, hubs.begins, hubs.ends, side.indices)
                self._device.launch(program.pull, len(hubs.rows), *edges, *tail, pieces, chunk=1)
                self._device.launch(program.slot, len(hubs.rows), hubs.rows, pieces, self._inbox, chunk=len(hubs.rows))
        self._touched[:] = self._everywhere

    def apply(self, superstep: int) -> tuple[Plan, int]:
        """Deliver: vertices with messages apply them. Returns the next plan and how many vertices applied."""
        if self._always:
            self._touched[:] = self._everywhere
        for words, counts, partials in zip(self._words, self._counts, self._partials, strict=True):
            for partial, (_, _, start) in zip(partials, self._program.aggregates, strict=True):
                partial.fill(start)
            self._device.launch(
                self._program.apply,
                len(counts),
                *(words, *self._degrees, superstep, self.aggregates, self._inbox, self._touched),
                *(self.values, self.frontier, counts, partials),
                chunk=_block_chunk(len(counts)),
            )
        totals = self._totals()
        return Plan(totals[0], totals[1]), totals[2]

    def fold(self) -> tuple[Any, ...]:
        """Fold the blocks' aggregates, in order."""
        totals = []
        for k, (fold, (_, dtype, start)) in enumerate(
            zip(self._program.aggregate_folds, self._program.aggregates, strict=True)
        ):
            total = start
            for partials in self._partials:
                for partial in partials[k]:
                    total = dtype.type(fold(total, partial))
            totals.append(total)
        return tuple(totals)

    def publish(self, totals: tuple[Any, ...]) -> None:
        """Make these the aggregates that functions see."""
        for array, total in zip(self.aggregates, totals, strict=True):
            array[0] = total

    def snapshot(self) -> dict[str, Array]:
        """The state between two supersteps, by name, not copied; the inboxes are empty then."""
        fields = {f"value{k}": array for k, array in enumerate(self.values)}
        seen = {f"aggregate{k}": array for k, array in enumerate(self.aggregates)}
        return {**fields, "frontier": self.frontier, **seen}

    def restore(self, arrays: dict[str, Array]) -> None:
        """Take the state of a :meth:`snapshot`, in place of :meth:`initialise`."""
        for name, array in self.snapshot().items():
            array[...] = arrays[name]
        # No kernel checks that a bit of the frontier is a vertex.
        self.frontier &= self._everywhere

    def bytes_moved(self, direction: str, sent: Plan) -> int:
        """Bytes that a superstep moves by model."""
        return self._traffic.bytes_moved(direction, sent.active_vertices, sent.active_edges)

    def _totals(self) -> list[int]:
        """Active vertices, active edges and vertices that applied."""
        totals = self._counts[0].sum(axis=0)
        for counts in self._counts[1:]:
            totals += counts.sum(axis=0)
        result: list[int] = totals.tolist()
        return result

    def _mirror(self, number: int, count: int) -> tuple[Array, ...]:
        if number not in self._mirrors:
            self._mirrors[number] = tuple(self._device.empty(count, dtype) for dtype in self._program.message.dtypes)
        return self._mirrors[number]


def _parts(program: CompiledProgram) -> tuple[Any, ...]:
    return program.identity if program.message.is_tuple else (program.identity,)


def _as_bits(array: Array) -> Array:
    """A view as unsigned integers, for compare-and-swap, where the dtype is a float or bool."""
    return array.view(f"u{array.dtype.itemsize}") if array.dtype.kind in "fb" else array


def _block_chunk(blocks: int) -> int:
    """Blocks handed out at once; a graph of one or two is not worth a second thread."""
    return blocks if blocks <= 2 else 4

"""The state of a vertex program's run on a CUDA device, and its phases as launches.

After each superstep the host reads one small array, ``control``. While the frontier is small, one kernel runs up to
``CHAIN`` supersteps before the host reads their figures. Where that is not possible, several supersteps are launched
before the host reads; kernels launched beyond the end of the run see the device's done flag and return.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpu_pregel.errors import NotEnoughMemoryError
from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.graphs.device_graph import DeviceEdges, DeviceGraph, check_vertices
from gpu_pregel.host.graphs.partitions import Partition
from gpu_pregel.host.programs.compiler import CompiledProgram
from gpu_pregel.host.programs.cuda_arrays import (
    CudaPartition,
    array_sizes,
    list_bitmap,
    make_array,
    mirror_sizes,
    read_elements,
    upload_messages,
    write_elements,
)
from gpu_pregel.host.programs.failures import FailureReport
from gpu_pregel.host.programs.state import Activity, ProgramState, SuperstepFigures
from gpu_pregel.host.superstep.advance import stalled
from gpu_pregel.host.traverse.compilation import explaining_compilation
from gpu_pregel.host.traverse.exchange import LOCAL, Exchange, PartitionState, VertexArrays
from gpu_pregel.kernels.library.jit_cuda import BLOCK, WARP
from gpu_pregel.kernels.programs.chain_cuda import list_frontier
from gpu_pregel.kernels.programs.failures_cuda import read_failure
from gpu_pregel.kernels.programs.figures_cuda import FAILURE, FIGURES, NO_LIMIT, ROW, ROWS
from gpu_pregel.kernels.programs.program_cuda import MAX_BLOCKS
from gpu_pregel.kernels.traverse.elements_cuda import keep_bits
from gpu_pregel.kernels.traverse.rows_cuda import HUB_EDGES, WORDS_PER_WARP

Array = np.ndarray[Any, Any]

BATCH = 32
"""Supersteps launched before the host reads their figures."""
CHAIN = 1 << 10
"""Maximum number of supersteps in one launch; mostly some milliseconds, so that Ctrl-C and progress work."""
_WIDE_BATCH = 8
"""The same while the frontier is too large for a chain, which may soon be possible again and takes less time."""
_BATCH_EDGES = 1 << 20
"""With at most this many active edges launching takes longer than running, so supersteps are launched together."""
_ALONE_EDGES = 1 << 9
"""With at most this many active edges one block takes less time than a barrier of all blocks."""


class CudaState(ProgramState):
    """Values, frontier and messages of a run on a CUDA device, and the phases of a superstep.

    Parameters
    ----------
    program : CompiledProgram
        Compiled for CUDA.
    partitions : list of Partition
    out_degrees, in_degrees : int64[n]
        On the host; ``in_degrees`` may be ``out_degrees`` if no function uses it.
    graph : DeviceGraph
        Holds the copies of the edges.
    device : Device
        The device to run on, which can access the arrays of the graph's device.
    failures : FailureReport
    always : bool
        Whether every vertex applies in every superstep.
    push_limit : int or None
        The most active edges with which a superstep that follows a push may push too; None for any number.
    exchange : Exchange, optional
        Default: the partitions read each other's arrays. The device must have all partitions of the run, as it folds
        their figures itself.

    Raises
    ------
    NotEnoughMemoryError
        The device has too little memory; raised before anything is allocated.
    """

    partitions: list[CudaPartition]

    def __init__(
        self,
        program: CompiledProgram,
        partitions: list[Partition],
        out_degrees: Array,
        in_degrees: Array,
        graph: DeviceGraph,
        device: Device,
        failures: FailureReport,
        *,
        always: bool,
        push_limit: int | None,
        exchange: Exchange = LOCAL,
    ) -> None:
        n = len(out_degrees)
        check_vertices(n)
        super().__init__(
            *(program, device, partitions),
            num_vertices=n,
            offset_size=graph.offset.itemsize,
            word=np.uint32,
            always=always,
            exchange=exchange,
        )
        self._push_limit = int(NO_LIMIT) if push_limit is None else push_limit
        self._tiles = min(MAX_BLOCKS, -(-n // BLOCK))
        self._width = FIGURES + len(program.aggregates)
        pieces = [graph.count_pieces(one.in_edges, HUB_EDGES) for one in partitions]
        rows = {"control": BATCH * self._width, "chain control": CHAIN * FIGURES}
        sizes = array_sizes(program, n, pieces, self._tiles, rows, queue=min(n, _BATCH_EDGES))
        state = sum(size * np.dtype(dtype).itemsize for arrays in sizes.values() for size, dtype, _ in arrays)
        copies = graph.missing_bytes(partitions, (out_degrees, in_degrees), HUB_EDGES)
        copies += sum(array.nbytes for array in program.captured)
        stored = len(partitions[0].out_edges.indices)
        device.require(state + copies, f"a run over {n:,} vertices and {stored:,} stored edges")
        try:
            degrees = (graph.offsets(out_degrees), graph.offsets(in_degrees))
            self.partitions = [CudaPartition(one, graph) for one in partitions]
            made = {name: tuple(make_array(device, *one) for one in arrays) for name, arrays in sizes.items()}
        except NotEnoughMemoryError:
            device.trim()
            raise
        for k, part in enumerate(self.partitions):
            part.pieces = made[f"pieces{k}"]
        frontier, touched, woken = (*made["bitmaps"], made["bitmaps"][1])[:3]
        self._use(VertexArrays(*degrees, made["values"], frontier, made["inbox"], touched, woken))
        self._signals, (self._hidden,), (self._control,) = made["signals"], made["hidden"], made["control"]
        self._figures = (*made["counts"], made["partials"], self._control)
        self._failures, self._rows_read = failures, 0
        record = (self._control[FAILURE : FAILURE + 1],) if program.records else ()
        self.context_arrays, self._totals = (*made["aggregates"], *record), (*made["totals"], *record)
        (self._no_weights,), (self._no_rows,) = made["no weights"], made["no rows"]
        self._can_chain = bool(program.chain) and exchange.shares_memory and partitions[0].is_whole
        self._queue, self._received = made["queues"]
        (self._chain_state,), (self._chain_control,) = made["chain state"], made["chain control"]
        self._woken = made["woken"]
        self._is_queued = False
        """Whether the queue has the active vertices, as well as the frontier."""

    def attach(self, values: Sequence[Any] | None, frontier: Array | None) -> None:
        """Use these values, and this frontier of the host, instead of the state's own."""
        self._is_queued = False
        super().attach(values, frontier)

    def activate(self, vertices: Array, flags: Array) -> None:
        """Add some vertices to the frontier, or remove them where the flag is false."""
        self._is_queued = False
        super().activate(vertices, flags)

    def exclude(self, vertices: Array) -> None:
        """Apply nothing to some vertices; chains of supersteps would."""
        super().exclude(vertices)
        self._can_chain = False

    def initialise(self) -> Activity:
        """Run superstep 0: ``init`` and the first frontier."""
        self._is_queued = False
        if self._n == 0:
            return Activity(0, 0)
        own = self.vertices
        degrees, aggregates = (own.out_degrees, own.in_degrees), (self.context_arrays, self._totals)
        given = (*self._given, degrees, aggregates, own.values, own.frontier, self._figures)
        self._launch(self._program.init, self._tiles * BLOCK, *given)
        return self._read_figures(0, 1)[0].activity

    def execute(
        self,
        direction: str,
        superstep: int,
        activity: Activity,
        totals: tuple[Any, ...],  # noqa: ARG002 (they are on the device)
        limit: int,
    ) -> list[SuperstepFigures]:
        """Run a superstep in which the active vertices send, and up to ``limit`` while a small frontier pushes."""
        if self._n == 0:
            return [SuperstepFigures(Activity(0, 0), 0, self.initial_totals)]
        if self._next_parameters is None:
            return self._execute(direction, superstep, activity, limit)
        own, count = self._upload_parameters(self._next_parameters), len(self._program.aggregates)
        self._totals = (*self._totals[:count], *own, *self._totals[count + len(own) :])
        steps = self._execute(direction, superstep, activity, limit)
        self.set_parameters(self._next_parameters, self._seed)
        return steps

    def _execute(self, direction: str, superstep: int, activity: Activity, limit: int) -> list[SuperstepFigures]:
        """Run supersteps; a chain cannot, if receivers in the first one see other parameters than its senders."""
        is_chain = direction == "push" and self.posted is None and self._is_small(activity)
        if is_chain:
            steps = self._chain(superstep, activity, min(limit, CHAIN))
            if steps:
                return steps
        self._is_queued = False
        if direction == "pull":
            self._pull(superstep - 1, activity)
            self._deliver_posted()
            self._apply(superstep, 0, edge_limit=int(NO_LIMIT))
            return self._read_figures(superstep, 1)
        batch = 1
        if activity.active_edges <= _BATCH_EDGES and self._exchange.shares_memory and not is_chain:
            batch = min(limit, _WIDE_BATCH if self._can_chain else BATCH)
        for k in range(batch):
            self._push(superstep - 1 + k, k)
            self._deliver_posted()
            self._apply(superstep + k, k, edge_limit=self._push_limit)
        return self._read_figures(superstep, batch)

    def _is_small(self, activity: Activity) -> bool:
        """Whether the next supersteps are worth a queue: with half of its capacity if it has to be made first."""
        most = _BATCH_EDGES if self._is_queued else _BATCH_EDGES // 2
        if not self._can_chain or self._next_parameters is not None or max(activity) > most:
            return False
        # If all vertices are active, so is a hub, at which a chain ends.
        return activity.active_vertices < self._n or not len(self.partitions[0].out_edges.piece_vertices)

    def _chain(self, superstep: int, activity: Activity, limit: int) -> list[SuperstepFigures]:
        """Run up to ``limit`` supersteps in one launch; none if a hub sends in the first."""
        own, edges = self.vertices, self.partitions[0].out_edges
        if not self._is_queued:
            given = (own.frontier, own.out_degrees, superstep, self._queue, self._chain_state)
            self._launch(list_frontier, len(own.frontier), *given)
        most = min(_BATCH_EDGES, len(edges.indices))
        rows = (edges.begins, edges.ends, edges.indices, self._weights(edges))
        limits = (superstep, limit, *activity, min(self._push_limit, _BATCH_EDGES), _ALONE_EDGES)
        vertices = (own.out_degrees, own.in_degrees, self.context_arrays, own.values)
        self._launch(
            *(self._program.chain, 1 if most <= _ALONE_EDGES else most, rows, limits, vertices, own.inbox, own.touched),
            *(own.frontier, self._queue, self._received, self._chain_state, self._chain_control),
        )
        self._is_queued = True
        control = self._device.download(self._chain_control)
        written = int(control[ROWS])
        figures = control[ROW:].reshape(-1, FIGURES)[: max(0, written)]
        self._check_progress(figures, superstep, limit, written, least=0)
        return [SuperstepFigures(Activity(*row[:2]), row[2], ()) for row in figures.tolist()]

    def _push(self, superstep: int, row: int) -> None:
        """Sparse side: active sources send along their out-edges into the inboxes."""
        own, receivers = self.vertices, self._receivers(superstep + 1)
        for part, signals in zip(self.partitions, self._exchange.send_signals(self), strict=True):
            edges = part.out_edges
            words = len(own.frontier) if part.partition.is_whole else len(edges.source_words)
            warps = -(-words // WORDS_PER_WARP) + len(edges.piece_vertices)
            lists = (edges.source_words, edges.source_bits, edges.source_firsts)
            hubs = (edges.piece_vertices, edges.piece_begins, edges.piece_ends)
            degrees = (signals.out_degrees, signals.in_degrees)
            senders = (self._weights(edges), *degrees, superstep, self.context_arrays, signals.values)
            self._launch(
                *(self._program.push, warps * WARP, lists, (edges.begins, edges.ends), hubs, edges.indices),
                *(senders, signals.frontier, row, receivers, own.inbox[0], own.touched, self._control),
            )

    def _pull(self, superstep: int, activity: Activity) -> None:
        """Dense side: every vertex combines the messages of its active in-neighbours."""
        program, own, receivers = self._program, self.vertices, self._receivers(superstep + 1)
        sources = (own.out_degrees, own.in_degrees, superstep, self.context_arrays, own.values, own.frontier)
        if program.signal is not None:
            self._launch(program.signal, self._n, *sources, self._signals, self._hidden)
        in_place = self._exchange.shares_memory or self.partitions[0].partition.is_whole
        for part in self.partitions:
            edges, rows, hubs, inbox = part.in_edges, part.in_edges.rows, part.in_edges.hubs, own.inbox
            count, marks, all_active = len(edges.begins), own.touched, activity.active_vertices == self._n
            if not in_place:
                part.mirrors = part.mirrors or self._mirrors(count)
                rows, hubs, inbox, marks = self._no_rows, edges.hub_rows, part.mirrors[:-1], part.mirrors[-1]
            pieces, piece_marks = part.pieces[:-1], part.pieces[-1]
            given: tuple[Any, ...] = (self._signals, own.frontier, all_active, superstep, self._hidden)
            if program.signal is None:
                given = ((self._weights(edges), *sources[:-1]), own.frontier, all_active, edges.rows)
            chosen = (in_place, edges.piece_vertices, receivers) if receivers else ()
            warps = -(-count // WARP) + len(edges.piece_vertices)
            bounds = (edges.begins, edges.ends, edges.piece_begins, edges.piece_ends)
            accumulate = in_place and len(self.partitions) > 1
            if count:
                given = (given, chosen, self._n, accumulate, inbox, marks, pieces, piece_marks)
                self._launch(program.pull, warps * WARP, rows, *bounds, edges.indices, *given)
            if len(hubs):
                inputs = (hubs, edges.hub_firsts, pieces, piece_marks)
                self._launch(program.slot, len(hubs), *inputs, inbox, marks)
        if not in_place:
            self._exchange.send_mirrors(self)

    def _receivers(self, superstep: int) -> tuple[Any, ...]:
        """Return the state from which kernels decide which vertices take messages; empty if all of them do."""
        if not self._program.receives:
            return ()
        own = self.vertices
        return (0, superstep, own.out_degrees, own.in_degrees, self._totals, own.values)

    def deliver(self, rows: Array, mirrors: tuple[Any, ...], owner: PartitionState | None = None) -> None:
        """Combine a mirror for each vertex of ``rows`` into the inbox of ``owner``, or into that of all vertices."""
        first, own = (0, self.vertices) if owner is None else (owner.partition.first, owner.vertices)
        upload, count = self._device.upload, len(rows)
        hubs, firsts = upload((rows - first).astype(np.uint32)), upload(np.arange(count + 1, dtype=np.uint32))
        self._launch(self._program.slot, count, hubs, firsts, mirrors[:-1], mirrors[-1], own.inbox, own.touched)

    def _deliver_posted(self) -> None:
        """Deliver the messages that were posted, after those of the edges."""
        posted = self.take_posted()
        if posted is not None:
            self.deliver(posted.vertices, upload_messages(self._device, posted, self._program.message))

    def woken(self) -> Array:
        """Return the vertices that woke agents in the last superstep, in ascending order; the device lists them."""
        if self._n == 0:
            return np.zeros(0, np.int64)
        own, (found,) = self.vertices, self._woken
        return list_bitmap(self._device, own.woken, own.out_degrees, found, self._chain_state)

    def _apply(self, superstep: int, row: int, *, edge_limit: int) -> None:
        """Deliver: vertices with messages, or all, apply them; the figures go to row ``row`` of ``control``."""
        own, every = self.vertices, self._always
        touched = own.touched
        if self._applying is not None:
            applying = self._device.upload(self._applying.view(np.uint32).copy())
            if every:  # the kernel clears the bitmap
                every, touched = False, applying
            else:
                self._launch(keep_bits, len(touched), touched, applying)
        degrees, aggregates = (own.out_degrees, own.in_degrees), (self.context_arrays, self._totals)
        self._launch(
            *(self._program.apply, self._tiles * BLOCK, every, superstep, row, edge_limit, degrees, aggregates),
            *(own.inbox, touched, own.values, own.frontier, own.woken, self._figures),
        )

    def _read(self, array: Any, places: Array) -> Array:
        return read_elements(self._device, array, places)

    def _write(self, array: Any, places: Array, values: Array) -> None:
        write_elements(self._device, array, places, values)

    def _launch(self, kernel: Any, size: int, *arguments: Any) -> None:
        with explaining_compilation(self._device.name):
            self._device.launch(kernel, size, *arguments)

    def _weights(self, edges: DeviceEdges) -> Any:
        """Return the weights of the edges, or an array of their dtype that is not read."""
        return self._no_weights if edges.weights is None or not self._program.per_edge else edges.weights

    def _mirrors(self, count: int) -> tuple[Any, ...]:
        return tuple(make_array(self._device, *one) for one in mirror_sizes(self._program.message, count))

    def _read_figures(self, superstep: int, launched: int) -> list[SuperstepFigures]:
        """Read the rows of the supersteps launched, from ``superstep`` on: the one readback of a superstep.

        Raises
        ------
        VertexError
            A function of the program raised.
        DeviceError
            The device did not run the supersteps.
        """
        control = self._device.download(self._control)
        written, self._rows_read = int(control[ROWS]) - self._rows_read, int(control[ROWS])
        failure = read_failure(int(control[FAILURE]), [name for name, *_ in self._program.aggregates])
        if failure is not None:
            # The row of the superstep is missing if a message failed.
            failed = superstep + written - (failure.role != "message")
            changed = None if failure.role == "message" else self._next_parameters
            parameters = self._sent_with if changed is None else changed
            raise self._failures.error_of(failure, failed, self, (parameters, self._seed))
        own = control[ROW:].reshape(-1, self._width)[:written]
        self._check_progress(own, superstep, launched, written)
        (rows,) = self._exchange.gather_figures([own])
        steps = []
        for row in rows:
            active_vertices, active_edges, applied = row[:FIGURES].tolist()
            totals = tuple(
                _of_bits(bits, dtype)
                for bits, (_, dtype, _) in zip(row[FIGURES:], self._program.aggregates, strict=True)
            )
            steps.append(SuperstepFigures(Activity(active_vertices, active_edges), applied, totals))
        return steps

    def _check_progress(self, rows: Array, superstep: int, launched: int, written: int, *, least: int = 1) -> None:
        """Raise unless the device has run at least ``least`` of the supersteps and stopped where they had to end."""
        ends = (rows[:, 0] == 0) | (rows[:, 1] > self._push_limit)
        if not least <= written <= launched or (launched > 1 and bool(ends[:-1].any())):
            found = f"ran {written} supersteps of the {launched} launched from superstep {superstep} on"
            raise stalled(self._device.name, found, "the program")

    def set_parameters(self, values: tuple[Any, ...], seed: int = 0) -> None:
        """Set the values of the program's parameters, which are scalars of the declared dtypes, and the seed."""
        count, record = len(self._program.aggregates), self._totals[-1:] if self._program.records else ()
        super().set_parameters(values, seed)
        self.context_arrays = (*self.context_arrays, *record)
        self._totals = (*self._totals[:count], *self.context_arrays[count:])

    def restore(self, arrays: Mapping[str, Array]) -> None:
        """Restore the state from a snapshot and the totals beside it, instead of :meth:`initialise`."""
        super().restore(arrays)
        self._totals = self._restored_aggregates("total", arrays)


def _of_bits(bits: Any, dtype: np.dtype[Any]) -> Any:
    """Return an aggregate from the 64 bits that the device wrote."""
    return dtype.type(bits.view(np.float64)) if dtype.kind == "f" else bits.astype(dtype)

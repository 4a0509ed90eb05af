"""Numeric vertices on a CUDA device: the state of a run of a vertex program, and its phases as launches.

After each superstep the host reads one small array, ``control``. Along small frontiers several supersteps are launched
before it does: the device's done flag makes those return at once that are launched beyond the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.errors import NotEnoughMemoryError
from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.graphs.device_graph import DeviceGraph, DeviceSide, check_vertices
from gpu_pregel.host.graphs.partitions import Partition, full_bitmap
from gpu_pregel.host.programs.checks import explaining_compilation
from gpu_pregel.host.programs.compiler import CompiledProgram
from gpu_pregel.host.programs.cpu_state import Plan, Step
from gpu_pregel.host.programs.traffic import Traffic
from gpu_pregel.kernels.library.jit_cuda import BLOCK, WARP, WARPS
from gpu_pregel.kernels.programs.combine_cuda import inbox_dtypes
from gpu_pregel.kernels.programs.figures_cuda import FIGURES, NO_LIMIT, ROW, ROWS
from gpu_pregel.kernels.programs.program_cuda import MAX_BLOCKS
from gpu_pregel.kernels.programs.push_cuda import WORDS_PER_WARP
from gpu_pregel.kernels.programs.rows_cuda import HUB_EDGES

Array = np.ndarray[Any, Any]

BATCH = 32
"""Supersteps launched without asking for their figures."""
_BATCH_EDGES = 1 << 16
"""Several supersteps are launched at once where so few edges are active that launching takes longer than running."""


class CudaRun:
    """Values, frontier and messages of a run on a device, and its phases.

    Parameters
    ----------
    program : CompiledProgram
        Compiled for CUDA.
    partitions : list of Partition
    out_degrees, in_degrees : int64[n]
        On the host; ``in_degrees`` may be ``out_degrees`` where no function asks for it.
    graph : DeviceGraph
        Where the copies of the edges are kept.
    device : Device
        Where to run; its arrays are those of the graph's device.
    push_limit : int or None
        Most active edges with which a superstep that follows a push pushes too; None for any number.

    Raises
    ------
    NotEnoughMemoryError
        The device has too little memory; said before anything is allocated.
    """

    def __init__(
        self,
        program: CompiledProgram,
        partitions: list[Partition],
        out_degrees: Array,
        in_degrees: Array,
        graph: DeviceGraph,
        device: Device,
        *,
        always: bool,
        push_limit: int | None,
    ) -> None:
        n = len(out_degrees)
        check_vertices(n)
        self._program, self._device, self._always = program, device, always
        self._push_limit = int(NO_LIMIT) if push_limit is None else push_limit
        self._n = n
        self._tiles = min(MAX_BLOCKS, -(-n // BLOCK))
        self._width = FIGURES + len(program.aggregates)
        pieces = [graph.count_pieces(one.in_edges, one.rows, HUB_EDGES) for one in partitions]
        sizes = self._sizes(pieces)
        state = sum(size * np.dtype(dtype).itemsize for arrays in sizes.values() for size, dtype, _ in arrays)
        copies = graph.missing_bytes(partitions, (out_degrees, in_degrees), HUB_EDGES)
        stored = len(partitions[0].out_edges.indices)
        device.require(state + copies, f"a run over {n:,} vertices and {stored:,} stored edges")
        try:
            self._degrees = (graph.offsets(out_degrees), graph.offsets(in_degrees))
            self._out = [graph.side(one.out_edges, None, HUB_EDGES) for one in partitions]
            self._in = [graph.side(one.in_edges, one.rows, HUB_EDGES) for one in partitions]
            made = {name: tuple(_array(device, *one) for one in arrays) for name, arrays in sizes.items()}
        except NotEnoughMemoryError:
            device.trim()
            raise
        self.values, self._inbox, self._signals = made["values"], made["inbox"], made["signals"]
        self._pieces = [made[f"pieces{k}"] for k in range(len(partitions))]
        self.aggregates, self._totals, self._partials = made["aggregates"], made["totals"], made["partials"]
        (self.frontier, self._touched), (self._counts,) = made["bitmaps"], made["counts"]
        (self._control,), (self._no_weights,) = made["control"], made["no weights"]
        words = len(self.frontier)
        self._traffic = Traffic(
            vertices=n,
            edges=len(partitions[0].in_edges.indices),
            value=program.value.itemsize,
            message=program.message.itemsize,
            edge=4 + (0 if self._out[0].weights is None or not program.per_edge else self._out[0].weights.itemsize),
            row=2 * graph.offset.itemsize,
            bitmap=4 * words,
            has_signals=program.signal is not None,
        )

    def _sizes(self, pieces: list[int]) -> dict[str, list[tuple[int, Any, Any]]]:
        """The arrays of the run's state by what they are for: size, dtype, and what they hold at first, if anything.

        ``pieces`` are the pieces of long rows, by partition.
        """
        program, n, width = self._program, self._n, self._width
        words = 2 * -(-n // 64)
        inboxes = inbox_dtypes(program.message)
        starts = program.identity if program.message.is_tuple else (program.identity,)
        signals = () if program.signal is None else program.message.dtypes
        folded = [(1, dtype, start) for _, dtype, start in program.aggregates]
        return {
            "values": [(n, dtype, None) for dtype in program.value.dtypes],
            "bitmaps": [(words, np.uint32, None), (words, np.uint32, 0)],
            "inbox": [(n, dtype, start) for start, dtype in zip(starts, inboxes, strict=True)],
            "signals": [(n, dtype, None) for dtype in signals],
            **{f"pieces{k}": [(max(1, count), dtype, None) for dtype in inboxes] for k, count in enumerate(pieces)},
            "aggregates": folded,
            "totals": folded,
            "counts": [(max(1, self._tiles) * FIGURES, np.int64, None)],
            "partials": [((self._tiles + 1) * WARPS, dtype, None) for _, dtype, _ in program.aggregates],
            "control": [(ROW + BATCH * width, np.int64, 0)],
            "no weights": [(1, np.float32, 0)],
        }

    def initialise(self) -> Plan:
        """Superstep 0: ``init`` and the first frontier."""
        if self._n == 0:
            return Plan(0, 0)
        arguments = (*self._degrees, self.aggregates, self._totals, self.values)
        rest = (self.frontier, self._counts, self._partials, self._control)
        self._launch(self._program.init, self._tiles * BLOCK, *arguments, *rest)
        return self._read_steps()[0].plan

    def execute(self, direction: str, superstep: int, plan: Plan, _totals: tuple[Any, ...], most: int) -> list[Step]:
        """Run a superstep in which ``plan``'s vertices send, and up to ``most`` while pushing a small frontier."""
        if self._n == 0:
            return [Step(Plan(0, 0), 0, self.fold())]
        if direction == "pull":
            self._pull(superstep - 1, plan)
            self._apply(superstep, 0, dense=True, edge_limit=int(NO_LIMIT))
            return self._read_steps()
        count = min(most, BATCH) if plan.active_edges <= _BATCH_EDGES else 1
        for k in range(count):
            self._push(superstep - 1 + k, k)
            self._apply(superstep + k, k, dense=self._always, edge_limit=self._push_limit)
        return self._read_steps()

    def _push(self, superstep: int, row: int) -> None:
        """Sparse side: active sources send along their out-edges into the inboxes."""
        for side in self._out:
            edges = (side.begins, side.ends, side.piece_rows, side.piece_begins, side.piece_ends, side.indices)
            warps = -(-len(self.frontier) // WORDS_PER_WARP) + len(side.piece_rows)
            self._launch(
                self._program.push,
                warps * WARP,
                *(*edges, self._weights(side), *self._degrees, superstep, row, self.aggregates, self.values),
                *(self.frontier, self._inbox[0], self._touched, self._control),
            )

    def _pull(self, superstep: int, plan: Plan) -> None:
        """Dense side: every vertex combines the messages of its active in-neighbours."""
        program = self._program
        sources = (*self._degrees, superstep, self.aggregates, self.values, self.frontier)
        if program.signal is not None:
            self._launch(program.signal, self._n, *sources, self._signals)
        for side, pieces in zip(self._in, self._pieces, strict=True):
            edges = (side.rows, side.begins, side.ends, side.piece_begins, side.piece_ends, side.indices)
            given: tuple[Any, ...] = (self._signals,)
            if program.signal is None:
                given = (self._weights(side), *sources, plan.active_vertices == self._n)
            warps = -(-side.count // WARP) + len(side.piece_rows)
            accumulate = len(self._in) > 1
            if side.count:
                self._launch(program.pull, warps * WARP, *edges, *given, accumulate, self._inbox, pieces)
            if len(side.hubs):
                self._launch(program.slot, len(side.hubs), side.hubs, side.firsts, pieces, self._inbox)

    def _launch(self, kernel: Any, size: int, *arguments: Any) -> None:
        with explaining_compilation(self._device.name):
            self._device.launch(kernel, size, *arguments)

    def _apply(self, superstep: int, row: int, *, dense: bool, edge_limit: int) -> None:
        """Deliver: vertices with messages apply them; the figures go to that row of ``control``."""
        self._launch(
            self._program.apply,
            self._tiles * BLOCK,
            *(dense, superstep, row, edge_limit, *self._degrees, self.aggregates, self._totals, self._inbox),
            *(self._touched, self.values, self.frontier, self._counts, self._partials, self._control),
        )

    def _weights(self, side: DeviceSide) -> Any:
        """The weights of the edges, or an array of their dtype that is not read."""
        return self._no_weights if side.weights is None or not self._program.per_edge else side.weights

    def _read_steps(self) -> list[Step]:
        """The rows that the device has written since it was last asked: the one readback."""
        control = self._device.download(self._control)
        rows = control[ROW:].reshape(-1, self._width)[: control[ROWS]]
        steps = []
        for row in rows:
            active_vertices, active_edges, applied = row[:FIGURES].tolist()
            totals = tuple(
                _of_bits(bits, dtype)
                for bits, (_, dtype, _) in zip(row[FIGURES:], self._program.aggregates, strict=True)
            )
            steps.append(Step(Plan(active_vertices, active_edges), applied, totals))
        return steps

    def fold(self) -> tuple[Any, ...]:
        """The aggregates before the first superstep: their identities."""
        return tuple(dtype.type(start) for _, dtype, start in self._program.aggregates)

    def snapshot(self) -> dict[str, Array]:
        """The state between two supersteps, by name, copied to the host; the inboxes are empty then."""
        fields = {f"value{k}": self._device.download(array) for k, array in enumerate(self.values)}
        seen = {f"aggregate{k}": self._device.download(array) for k, array in enumerate(self.aggregates)}
        return {**fields, "frontier": self._device.download(self.frontier).view(np.uint64), **seen}

    def restore(self, arrays: dict[str, Array]) -> None:
        """Take the state of a :meth:`snapshot` and the totals beside it, in place of :meth:`initialise`."""
        upload = self._device.upload
        fields = range(len(self.values))
        # What the copies take the place of is given back first.
        self.values, self.frontier = (), None
        self.values = tuple(upload(arrays[f"value{k}"]) for k in fields)
        self.aggregates = tuple(upload(arrays[f"aggregate{k}"]) for k in range(len(self.aggregates)))
        self._totals = tuple(upload(arrays[f"total{k}"]) for k in range(len(self.aggregates)))
        # No kernel checks that a bit of the frontier is a vertex.
        self.frontier = upload((arrays["frontier"] & full_bitmap(self._n)).view(np.uint32))

    def bytes_moved(self, direction: str, sent: Plan) -> int:
        """Bytes that a superstep moves by model."""
        return self._traffic.bytes_moved(direction, sent.active_vertices, sent.active_edges)


def _array(device: Device, size: int, dtype: Any, start: Any) -> Any:
    return device.empty(size, dtype) if start is None else device.full(size, start, dtype)


def _of_bits(bits: Any, dtype: np.dtype[Any]) -> Any:
    """An aggregate from the 64 bits that the device wrote."""
    return dtype.type(bits.view(np.float64)) if dtype.kind == "f" else bits.astype(dtype)

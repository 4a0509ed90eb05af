"""The state of a vertex program's run: what the states on the CPU and on CUDA have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.graphs.partitions import Partition, full_bitmap, pack_bits
from gpu_pregel.host.programs.compiler import CompiledProgram
from gpu_pregel.host.programs.traffic import Traffic
from gpu_pregel.host.traverse.exchange import LOCAL, Exchange, PartitionState, Signals, VertexArrays
from gpu_pregel.kernels.programs.functions import parameter_arrays

Array = np.ndarray[Any, Any]


class Activity(NamedTuple):
    """Numbers of active vertices and of their stored out-edges."""

    active_vertices: int
    active_edges: int


class SuperstepFigures(NamedTuple):
    """The outcome of a superstep: the new activity, the number of vertices that applied, and the aggregates."""

    activity: Activity
    applied: int
    totals: tuple[Any, ...]


class Posted(NamedTuple):
    """Messages from outside the graph's edges: at most one for each vertex, on the host.

    Attributes
    ----------
    vertices : int64[k]
        In ascending order.
    messages : tuple of arrays[k]
        One array per field.
    """

    vertices: Array
    messages: tuple[Array, ...]


class Beginning(NamedTuple):
    """What a superstep starts from, in host memory, so that it can be run again by another state."""

    values: tuple[Array, ...]
    frontier: Array
    aggregates: tuple[Array, ...]
    posted: Posted | None
    excluded: Array | None
    given: tuple[bool, bool]
    parameters: tuple[Any, ...]
    next_parameters: tuple[Any, ...] | None
    seed: int


class ProgramState(ABC):
    """Values, frontier and messages of a run on one device, and the phases of a superstep.

    Parameters
    ----------
    program : CompiledProgram
    device : Device
    partitions : sequence of Partition
    num_vertices : int
    offset_size : int
        Bytes of an edge position on the device.
    word : dtype
        Of a word of the bitmaps on the device.
    always : bool
        Whether every vertex applies in every superstep.
    exchange : Exchange, optional

    Attributes
    ----------
    vertices : VertexArrays
        The arrays of all vertices, on the device.
    own_signals : sequence of Signals
        The same arrays, as the partitions of this device read them: one item for each partition.
    partitions : list of PartitionState
        Views of these arrays and the edges, by partition.
    context_arrays : tuple of arrays
        On the device: the aggregates that senders see, of length 1, the arrays of the parameters and those that
        functions have captured.
    """

    vertices: VertexArrays
    own_signals: Sequence[Signals]
    partitions: Sequence[PartitionState]
    context_arrays: tuple[Any, ...]

    def __init__(
        self,
        program: CompiledProgram,
        device: Device,
        partitions: Sequence[Partition],
        *,
        num_vertices: int,
        offset_size: int,
        word: Any,
        always: bool,
        exchange: Exchange = LOCAL,
    ) -> None:
        self._program, self._device, self._always, self._exchange = program, device, always, exchange
        self._n, self._word = num_vertices, np.dtype(word)
        self._given = (False, False)
        """Whether superstep 0 takes the values, and the frontier, as they are."""
        self.posted: Posted | None = None
        """Messages that the next superstep delivers besides those along edges."""
        self.excluded: Array | None = None
        """The vertices, int64, to which nothing is applied, as :meth:`exclude` says."""
        self._sent_with: tuple[Any, ...] = ()
        """The parameters that senders see."""
        self._next_parameters: tuple[Any, ...] | None = None
        """Those that the next superstep sees, if they differ."""
        self._seed = 0
        self._captured: tuple[Any, ...] | None = None
        """The arrays that the program's functions use by name, on the device once there are parameters."""
        self._applying: Array | None = None
        """The bitmap of the others."""
        edges = partitions[0].out_edges
        weight = edges.weights.itemsize if edges.weights is not None and program.per_edge else 0
        self._traffic = Traffic(
            vertices=num_vertices,
            edges=len(partitions[0].in_edges.indices),
            value=program.value.itemsize,
            message=program.message.itemsize,
            edge=edges.indices.itemsize + weight,
            row=2 * offset_size,
            bitmap=full_bitmap(num_vertices).nbytes,
            has_signals=program.signal is not None,
        )

    @abstractmethod
    def initialise(self) -> Activity:
        """Run superstep 0: ``init`` and the first frontier, unless :meth:`start_from` gave them."""

    @abstractmethod
    def execute(
        self, direction: str, superstep: int, activity: Activity, totals: tuple[Any, ...], limit: int
    ) -> list[SuperstepFigures]:
        """Run one superstep, or up to ``limit``, in which the active vertices send and their receivers apply.

        ``totals`` are the aggregates of the superstep before.
        """

    @abstractmethod
    def deliver(self, rows: Array, mirrors: tuple[Any, ...], owner: PartitionState | None = None) -> None:
        """Combine a mirror for each vertex of ``rows`` into the inbox of ``owner``, or into that of all vertices."""

    # Single vertices, for agents beside the program.

    def exclude(self, vertices: Array) -> None:
        """Apply nothing to some vertices, int64, from superstep 1 on: what is sent to them along edges is dropped."""
        flags = np.ones(self._n, bool)
        flags[vertices] = False
        self.excluded, self._applying = vertices, pack_bits(flags)

    def woken(self) -> Array:
        """Return the vertices, int64, that woke agents in the last superstep, in ascending order."""
        woken: Array = self.vertices.woken
        words = np.flatnonzero(woken)
        bits: Array = np.unpackbits(woken[words].astype("<u8").view(np.uint8), bitorder="little")
        rows, places = np.nonzero(bits.reshape(-1, 64))
        found: Array = words[rows] * 64 + places
        return found

    def gather(self, vertices: Array) -> tuple[Array, ...]:
        """Return the values of some vertices on the host: one array per field."""
        return tuple(self._read(array, vertices) for array in self.values)

    def scatter(self, vertices: Array, columns: Sequence[Array]) -> None:
        """Set the values of some vertices, each of which occurs once, from one array per field."""
        for array, column in zip(self.values, columns, strict=True):
            self._write(array, vertices, column)

    def is_active(self, vertices: Array) -> Array:
        """Return which of some vertices are in the frontier."""
        size = 8 * self._word.itemsize
        words = self._read(self.frontier, vertices // size)
        found: Array = (words >> (vertices % size).astype(self._word)) & self._word.type(1)
        return found.astype(bool)

    def activate(self, vertices: Array, flags: Array) -> None:
        """Add some vertices, each of which occurs once, to the frontier, or remove them where the flag is false."""
        size = 8 * self._word.itemsize
        words, rows = np.unique(vertices // size, return_inverse=True)
        bits = self._word.type(1) << (vertices % size).astype(self._word)
        frontier = self._read(self.frontier, words)
        np.bitwise_or.at(frontier, rows[flags], bits[flags])
        np.bitwise_and.at(frontier, rows[~flags], ~bits[~flags])
        self._write(self.frontier, words, frontier)

    def _read(self, array: Any, places: Array) -> Array:
        """Return the elements of an array of the state at some places, as a copy on the host."""
        found: Array = array[places]
        return found

    def _write(self, array: Any, places: Array, values: Array) -> None:
        """Set the elements of an array of the state at some places, which differ."""
        array[places] = values

    def take_posted(self) -> Posted | None:
        """Return the posted messages, which the superstep that is running delivers."""
        posted, self.posted = self.posted, None
        return posted

    @property
    def values(self) -> tuple[Any, ...]:
        """The values of all vertices, on the device: one array per field."""
        return self.vertices.values

    @property
    def frontier(self) -> Any:
        """The bitmap of the active vertices, on the device."""
        return self.vertices.frontier

    def attach(self, values: Sequence[Any] | None, frontier: Array | None) -> None:
        """Use these values, and this frontier of the host, instead of the state's own.

        Host arrays are copied to the device; on the CPU they are used as they are.
        """
        upload = self._device.upload
        # The old arrays are freed before their successors are allocated.
        if values is not None:
            self._use(self.vertices._replace(values=()))
            uploaded = tuple(upload(array) if isinstance(array, np.ndarray) else array for array in values)
            self._use(self.vertices._replace(values=uploaded))
        if frontier is not None:
            self._use(self.vertices._replace(frontier=None))
            self._use(self.vertices._replace(frontier=upload(frontier.view(self._word))))

    def start_from(self, values: Sequence[Any] | None, frontier: Array | None) -> None:
        """Make :meth:`initialise` use these values instead of ``init``, and this frontier, as :meth:`attach` does."""
        self.attach(values, frontier)
        self._given = (values is not None, frontier is not None)

    def _use(self, vertices: VertexArrays) -> None:
        """Use these arrays; the partitions get views of them."""
        self.vertices = vertices
        signals = Signals(vertices.out_degrees, vertices.in_degrees, vertices.values, vertices.frontier)
        self.own_signals = (signals,) * len(self.partitions)
        for part in self.partitions:
            part.use(vertices, 8 * self._word.itemsize)

    @property
    def aggregate_names(self) -> tuple[str, ...]:
        """The names of the aggregates."""
        return tuple(name for name, *_ in self._program.aggregates)

    @property
    def initial_totals(self) -> tuple[Any, ...]:
        """The aggregates before the first superstep: their identities."""
        return tuple(dtype.type(start) for _, dtype, start in self._program.aggregates)

    @property
    def aggregates(self) -> tuple[Any, ...]:
        """The aggregates that senders see, on the device, as arrays[1]."""
        return self.context_arrays[: len(self._program.aggregates)]

    def set_parameters(self, values: tuple[Any, ...], seed: int = 0) -> None:
        """Set the values of the program's parameters, which are scalars of the declared dtypes, and the seed."""
        self._sent_with, self._next_parameters, self._seed = values, None, seed
        self.context_arrays = (*self.aggregates, *self._upload_parameters(values))

    @property
    def has_master(self) -> bool:
        """Whether the program's ``master`` may change parameters, so that snapshots have them."""
        return self._program.declaration.master is not None

    @property
    def parameter_dtypes(self) -> list[np.dtype[Any]]:
        """The dtypes of the parameters."""
        return [value.dtype for value in self._sent_with]

    def change_parameters(self, values: tuple[Any, ...]) -> None:
        """Set the parameters that the next superstep sees; messages that active vertices are yet to send do not."""
        if values != self._sent_with:
            self._next_parameters = values

    def _upload_parameters(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return arrays on the device with these values of parameters, followed by the captured ones."""
        parameters = self._program.parameters
        if self._captured is None:
            self._captured = tuple(self._device.upload(array) for array in self._program.captured)
        # Kernels of programs that draw take the seed as a last parameter.
        whole = (*values, np.int64(self._seed)) if len(values) < len(parameters) else values
        return (*(self._device.upload(array) for array in parameter_arrays(parameters, whole)), *self._captured)

    def snapshot(self) -> dict[str, Array]:
        """Return the state between two supersteps, by name, as host arrays; the inboxes are empty then.

        On the CPU the arrays are those of the state, not copies.
        """
        download = self._device.download
        fields = {f"value{k}": download(array) for k, array in enumerate(self.values)}
        seen = {f"aggregate{k}": download(array) for k, array in enumerate(self.aggregates)}
        if self.has_master:
            seen |= {f"parameter{k}": np.array([value]) for k, value in enumerate(self._sent_with)}
        return {**fields, "frontier": download(self.frontier).view(np.uint64), **seen}

    def restore(self, arrays: Mapping[str, Array]) -> None:
        """Restore the state from a :meth:`snapshot`, instead of :meth:`initialise`."""
        # Kernels do not check that a bit of the frontier is a vertex.
        frontier = arrays["frontier"] & full_bitmap(self._n)
        self.attach([np.array(arrays[f"value{k}"]) for k in range(len(self.values))], frontier)
        if self.has_master:
            self.set_parameters(tuple(arrays[f"parameter{k}"][0] for k in range(len(self._sent_with))), self._seed)
        self.context_arrays = self._restored_aggregates("aggregate", arrays)

    def beginning(self, read: Callable[[Any], Array]) -> Beginning:
        """Return what the next superstep starts from; ``read`` returns a copy of an array of this state on the host."""
        return Beginning(
            values=tuple(map(read, self.values)),
            frontier=read(self.frontier).view(np.uint64),
            aggregates=tuple(map(read, self.aggregates)),
            posted=self.posted,
            excluded=self.excluded,
            given=self._given,
            parameters=self._sent_with,
            next_parameters=self._next_parameters,
            seed=self._seed,
        )

    def begin_from(self, beginning: Beginning) -> None:
        """Start from copies of those arrays, on a device whose arrays are in host memory."""
        self.set_parameters(beginning.parameters, beginning.seed)
        self._next_parameters, self._given = beginning.next_parameters, beginning.given
        self.attach([array.copy() for array in beginning.values], beginning.frontier.copy())
        count = len(beginning.aggregates)
        self.context_arrays = (*(array.copy() for array in beginning.aggregates), *self.context_arrays[count:])
        self.posted = beginning.posted
        if beginning.excluded is not None:
            self.exclude(beginning.excluded)

    def _restored_aggregates(self, name: str, arrays: Mapping[str, Array]) -> tuple[Any, ...]:
        """Return the aggregates of a snapshot, followed by the parameters."""
        count = len(self._program.aggregates)
        restored = (self._device.upload(np.array(arrays[f"{name}{k}"])) for k in range(count))
        return (*restored, *self.context_arrays[count:])

    def bytes_moved(self, direction: str, sent: Activity) -> int:
        """Return the bytes that a superstep moves by the model of :class:`Traffic`."""
        return self._traffic.bytes_moved(direction, sent.active_vertices, sent.active_edges)

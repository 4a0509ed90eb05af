"""The exchange: transfers data between the partitions of a graph, for vertex programs and for operators.

A superstep of a program uses it at three points. Before a push, each partition receives the *signals* of the active
sources of its out-edges. After a pull, each partition sends *mirrors* to the masters of the destinations of its
in-edges: one combined message per vertex and partition. After the vertices have applied their messages, the *figures*
of all partitions are gathered. An operator uses it for arrays of *masters*: those that its functions read, and the
bitmaps of frontiers; its sums are figures. Partitions share no other data.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np

from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.graphs.partitions import Partition

Array = np.ndarray[Any, Any]


class VertexArrays(NamedTuple):
    """The arrays of a range of vertices, indexed by the position in the range.

    Attributes
    ----------
    out_degrees, in_degrees : array[n]
    values : tuple of arrays[n]
        One array per field.
    frontier : array of words
        A bitmap of the active vertices.
    inbox : tuple of arrays[n]
        The combined message of each vertex; the combiner's identity if the vertex has no message.
    touched : array of words
        A bitmap of the vertices that have a message; not kept if all vertices apply.
    woken : array of words
        A bitmap of the vertices that woke agents in the last superstep; ``touched`` if the program has no ``wake``.
    """

    out_degrees: Any
    in_degrees: Any
    values: tuple[Any, ...]
    frontier: Any
    inbox: tuple[Any, ...]
    touched: Any
    woken: Any

    def cut(self, first: int, last: int, word_bits: int) -> VertexArrays:
        """Return views of the vertices from ``first``, the first of a word, to ``last - 1``."""
        words = slice(first // word_bits, -(-last // word_bits))
        return VertexArrays(
            self.out_degrees[first:last],
            self.in_degrees[first:last],
            tuple(array[first:last] for array in self.values),
            None if self.frontier is None else self.frontier[words],
            tuple(array[first:last] for array in self.inbox),
            self.touched[words],
            self.woken[words],
        )


class PartitionState:
    """The state of one partition of a run.

    Attributes
    ----------
    partition : Partition
        The range of vertices and the edges.
    vertices : VertexArrays
        The arrays of that range: views of the device's arrays.
    mirrors : tuple of arrays
        After a pull, the combined message for each vertex of ``partition.in_edges.rows``, one array per field, and as
        the last array a bitmap of the positions that have a message, in words.
    """

    vertices: VertexArrays

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.mirrors: tuple[Any, ...] = ()

    def use(self, vertices: VertexArrays, word_bits: int) -> None:
        """Take views of the arrays of all vertices."""
        partition = self.partition
        self.vertices = vertices if partition.is_whole else vertices.cut(partition.first, partition.last, word_bits)


class Signals(NamedTuple):
    """The state of the sources of a partition's out-edges, from which the partition computes their messages.

    Attributes
    ----------
    out_degrees, in_degrees : array
    values : tuple of arrays
    frontier : array of words
        A bitmap of the active sources.
    by_row : bool
        How the arrays are indexed. False: by vertex, and ``frontier`` by word, as the arrays of the whole graph are.
        True: by the row of the source in ``Partition.out_edges``, and ``frontier`` by the position of the word in
        ``Partition.sources``, so that the length of the arrays depends on the partition and not on the graph. CUDA
        kernels require False.
    """

    out_degrees: Any
    in_degrees: Any
    values: tuple[Any, ...]
    frontier: Any
    by_row: bool = False


class PartitionedState(Protocol):
    """The part of a run's state that an exchange may use; see :class:`gpu_pregel.host.programs.state.ProgramState`."""

    @property
    def vertices(self) -> VertexArrays:
        """The arrays of all vertices whose master is on this device."""

    @property
    def own_signals(self) -> Sequence[Signals]:
        """The same arrays as signals, once for each partition."""

    @property
    def partitions(self) -> Sequence[PartitionState]:
        """The partitions of this device, in ascending order of vertices."""

    def deliver(self, rows: Any, mirrors: tuple[Any, ...], owner: PartitionState | None = None) -> None:
        """Combine a mirror for each vertex of ``rows`` into the inbox of ``owner``, or into that of all vertices."""


class Exchange(Protocol):
    """Transfers signals, mirrors and figures between the partitions of a run.

    Every process that has partitions of a run calls the same methods in the same order, once per superstep: it may
    block in each of them until the others have arrived. The results must not depend on timing, so messages and figures
    are combined in the order of the partitions. As every process gets the same figures, all of them choose the same
    direction and end after the same superstep; neither the policy nor the master depends on the exchange.

    Attributes
    ----------
    shares_memory : bool
        Whether a partition can write to the inbox of every other. If so, a device may combine its mirrors into the
        inboxes as it computes them, and :meth:`send_mirrors` is not called; and operators pass the users' arrays to all
        partitions, without :meth:`gather_masters`.
    """

    @property
    def shares_memory(self) -> bool: ...  # noqa: D102

    def send_signals(self, state: PartitionedState) -> Sequence[Signals]:
        """Return the signals for each of the state's partitions, after all masters have set their frontiers.

        Only the state of active vertices must be current; a partition reads nothing else. The arrays are valid until
        the next call.
        """

    def send_mirrors(self, state: PartitionedState) -> None:
        """Deliver each partition's mirrors to the masters of the vertices, in the order of the sending partitions.

        The mirrors of a partition belong to the vertices ``Partition.in_edges.rows``. The inboxes hold the identity.
        """

    def gather_figures(self, figures: list[Array]) -> list[Array]:
        """Return the figures of every partition of the run, in their order, given those of this process's own.

        Figures are small arrays on the host: counts, which the caller adds, and partial aggregates, which it folds.
        """

    def gather_masters(self, device: Device, arrays: Sequence[Any], bounds: Sequence[int]) -> Sequence[Any]:
        """Return, for each of this process's partitions, an array with the elements of all masters.

        Parameters
        ----------
        device : Device
            The device of the arrays.
        arrays : sequence of arrays
            One for each of the partitions, all of one length and dtype. Of the array of partition ``k``, only the
            elements from ``bounds[k]`` to ``bounds[k + 1] - 1``, its masters, are read.
        bounds : sequence of int

        Returns
        -------
        sequence of arrays
            New ones; the partitions may have one in common if they share memory.
        """


class LocalExchange:
    """The exchange between partitions of one device, which copies nothing but the bitmaps of frontiers.

    Signals are read in place, from the arrays of the whole device, and mirrors are combined into the inbox.
    """

    shares_memory = True

    def send_signals(self, state: PartitionedState) -> Sequence[Signals]:
        """Return the arrays of all vertices for every partition."""
        return state.own_signals

    def send_mirrors(self, state: PartitionedState) -> None:
        """Combine the mirrors into the inbox of all vertices."""
        for part in state.partitions:
            state.deliver(part.partition.in_edges.rows, part.mirrors)

    def gather_figures(self, figures: list[Array]) -> list[Array]:
        """Return the figures: this device has all partitions of the run."""
        return figures

    def gather_masters(self, device: Device, arrays: Sequence[Any], bounds: Sequence[int]) -> Sequence[Any]:
        """Return one array for all partitions."""
        gathered = device.empty(len(arrays[0]), arrays[0].dtype)
        for array, (first, last) in zip(arrays, pairwise(bounds), strict=True):
            device.move(gathered[first:last], array[first:last])
        return [gathered] * len(arrays)


LOCAL = LocalExchange()

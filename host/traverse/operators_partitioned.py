"""The operators over several partitions: each runs on a partition's own edges, and the exchange does the rest.

The owner of v calls the functions for v: of ``process_edges`` v is the destination, as in Gemini, and of
``reduce_rows`` and ``count_labels`` the vertex whose row is read. Partitions that share memory are passed the users'
arrays. All others get arrays of their own, with the state of all vertices at the beginning of the call, and of what
they write there only the elements that they own are taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from gpu_pregel.errors import ArgumentError, ProgramError
from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.graphs.csr import CSR
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.traverse.bodies import Bodies
from gpu_pregel.host.traverse.exchange import LOCAL, Exchange
from gpu_pregel.host.traverse.functions import line_of
from gpu_pregel.host.traverse.labels import LabelBodies
from gpu_pregel.host.traverse.operator_contract import DeviceOperators
from gpu_pregel.host.traverse.pairs import PairBodies
from gpu_pregel.host.traverse.residency import ResidentEdges
from gpu_pregel.host.traverse.rows import RowBodies

Array = np.ndarray[Any, Any]


class PartitionedSet:
    """A set of vertices, as each partition knows it: masters and mirrors.

    Attributes
    ----------
    bitmaps : sequence of arrays or None
        One for each partition, in the form of its operators; None if the set has all vertices.
    count : int
    edges : int
        The sum of their out-degrees.
    """

    def __init__(self, bitmaps: Sequence[Any] | None, count: int) -> None:
        self.bitmaps, self.count, self.edges = bitmaps, count, 0
        self.sets: dict[tuple[int, bool, bool], Any] = {}
        """The same vertices as sets of the operators of a partition, by source or not, and of its masters or not."""


class PartitionedOperators:
    """Runs operators on each partition of a graph in turn, all on one device.

    Attributes
    ----------
    exchange : Exchange
    """

    def __init__(
        self, graph: Graph, device: Device, edges: ResidentEdges, make: Callable[[Graph], DeviceOperators]
    ) -> None:
        self._graph, self._device, self._edges, self._make = graph, device, edges, make
        self._numbers, self._bounds = range(edges.partitions), edges.bounds
        self._operators: dict[tuple[int, bool], DeviceOperators] = {}
        self._on_all_edges: DeviceOperators | None = None
        self.exchange: Exchange = LOCAL
        self.pushes_to_all = self._of(0).pushes_to_all
        self._bits = self._of(0).bits

    def _of(self, number: int, by_source: bool = False) -> DeviceOperators:
        """Return the operators on one of a partition's blocks of edges."""
        key = number, by_source
        if key not in self._operators:
            self._operators[key] = self._make(self._edges.block(number, by_source=by_source))
        return self._operators[key]

    def arrays_of(self, csr: CSR) -> CSR:
        """Return the arrays of the CSR or CSC of the whole graph in the device's memory."""
        if self._device.is_host:
            return csr
        copy = self._graph._on(self._device).copy
        return CSR(copy(csr.indptr), copy(csr.indices), None if csr.weights is None else copy(csr.weights))

    def is_of_graph(self, array: Any) -> bool:
        """Whether a device array belongs to the graph."""
        return not self._device.is_host and self._graph._on(self._device).has(array)

    def everything(self) -> PartitionedSet:
        """Return the set of all vertices."""
        return self._measured(PartitionedSet(None, self._graph.num_vertices))

    def chosen(self, flags: Array) -> PartitionedSet:
        """Return the set of the vertices with true ``flags``, bool[n]."""
        everywhere = self._of(0).chosen(flags)
        bitmaps = [self._of(0).bitmap(everywhere)] * len(self._numbers)
        return self._measured(PartitionedSet(self._gather(bitmaps), int(flags.sum())))

    def _measured(self, active: PartitionedSet) -> PartitionedSet:
        """Return the set after adding the edges of its vertices: each partition counts those that it has."""
        active.edges = int(self._total([self._known(active, k, False).edges for k in self._numbers]))
        return active

    def _gather(self, bitmaps: Sequence[Any]) -> Sequence[Any]:
        """Return the bitmap of all masters, for each partition; each has the words of its own."""
        return self.exchange.gather_masters(self._device, bitmaps, self._word_bounds(len(bitmaps[0])))

    def _word_bounds(self, length: int) -> list[int]:
        return [*(bound // self._bits for bound in self._bounds[:-1]), length]

    def _known(self, active: PartitionedSet, number: int, by_source: bool) -> Any:
        """Return the whole set, as one of a partition's operators."""
        return self._as_set(active, (number, by_source, False))

    def _owned(self, active: PartitionedSet, number: int, by_source: bool) -> Any:
        """Return the vertices of the set that a partition owns, as a set of its operators."""
        return self._as_set(active, (number, by_source, True))

    def _as_set(self, active: PartitionedSet, key: tuple[int, bool, bool]) -> Any:
        if key not in active.sets:
            number, by_source, is_own = key
            operators = self._of(number, by_source)
            first, last = self._bounds[number : number + 2]
            if active.bitmaps is not None:
                words = self._masters(number, active.bitmaps[number]) if is_own else active.bitmaps[number]
                active.sets[key] = operators.from_bitmap(words, active.count)
            elif is_own:
                vertices = np.arange(self._graph.num_vertices)
                active.sets[key] = operators.chosen((first <= vertices) & (vertices < last))
            else:
                active.sets[key] = operators.everything()
        return active.sets[key]

    def _masters(self, number: int, words: Any) -> Any:
        """Return a bitmap with the words of a partition's masters, and otherwise zeros."""
        begin, end = self._word_bounds(len(words))[number : number + 2]
        own = self._device.zeros(len(words), words.dtype)
        self._device.move(own[begin:end], words[begin:end])
        return own

    def flags(self, active: PartitionedSet) -> Array:
        """Return bool[n]: whether each vertex is in the set."""
        return self._of(0).flags(self._known(active, 0, False))

    def listed(self, active: PartitionedSet) -> Any:
        """Return the numbers of a set's vertices in ascending order."""
        return self._of(0).listed(self._known(active, 0, False))

    def union(self, one: PartitionedSet, other: PartitionedSet) -> PartitionedSet:
        """Return the set of the vertices of both."""
        if one.bitmaps is None or other.bitmaps is None:
            return self.everything()
        return self._collected(
            [self._of(k).union(self._owned(one, k, False), self._owned(other, k, False)) for k in self._numbers], False
        )

    def degree_sum(self, active: PartitionedSet, csr: CSR) -> int:
        """Return the sum of the degrees of a set's vertices."""
        if csr is self._graph._csr:
            return active.edges
        blocks = [self._edges.block(k, by_source=False) for k in self._numbers]
        sums = [self._of(k).degree_sum(self._known(active, k, False), blocks[k].csc) for k in self._numbers]
        return int(self._total(sums))

    def process_vertices(
        self, bodies: Bodies, active: PartitionedSet, arrays: tuple[Any, ...], returns: str | None
    ) -> Any:
        """Call the body for the vertices of each partition."""

        def run(number: int, given: tuple[Any, ...]) -> Any:
            return self._of(number).process_vertices(bodies, self._owned(active, number, False), given, returns)

        return self._run(run, arrays, returns, ("the body", bodies.body), by_source=False)

    def process_edges(
        self,
        bodies: Bodies,
        active: PartitionedSet,
        arrays: tuple[Any, ...],
        returns: str | None,
        *,
        transpose: bool,
        push: bool,
    ) -> Any:
        """Call the body for the edges to the vertices of each partition; the senders are any."""

        def run(number: int, given: tuple[Any, ...]) -> Any:
            operators, known = self._of(number, transpose), self._known(active, number, transpose)
            return operators.process_edges(bodies, known, given, returns, transpose=transpose, push=push)

        return self._run(run, arrays, returns, ("the body", bodies.body), by_source=transpose)

    def reduce_rows(
        self, bodies: RowBodies, active: PartitionedSet, arrays: tuple[Any, ...], returns: str | None
    ) -> Any:
        """Reduce the rows of each partition's vertices, whose edges are all its own."""
        transpose = bodies.transpose or not self._graph.is_directed
        bodies = bodies._replace(transpose=transpose)

        def run(number: int, given: tuple[Any, ...]) -> Any:
            operators, own = self._of(number, not transpose), self._owned(active, number, not transpose)
            return operators.reduce_rows(bodies, own, given, returns)

        return self._run(run, arrays, returns, ("finish", bodies.finish), by_source=not transpose)

    def count_labels(
        self, bodies: LabelBodies, active: PartitionedSet, arrays: tuple[Any, ...], returns: str | None
    ) -> Any:
        """Count labels in the rows of each partition's vertices, whose edges are all its own."""
        transpose = bodies.transpose or not self._graph.is_directed
        bodies = bodies._replace(transpose=transpose)

        def run(number: int, given: tuple[Any, ...]) -> Any:
            operators, own = self._of(number, not transpose), self._owned(active, number, not transpose)
            return operators.count_labels(bodies, own, given, returns)

        return self._run(run, arrays, returns, ("finish", bodies.finish), by_source=not transpose)

    def edges(self, active: PartitionedSet) -> tuple[Any, Any]:
        """Return the ends of the edges of a set's vertices."""
        whole = self._whole("frontier.edges")
        bitmaps = active.bitmaps
        return whole.edges(whole.everything() if bitmaps is None else whole.from_bitmap(bitmaps[0], active.count))

    def intersect_rows(
        self, bodies: PairBodies, pairs: tuple[Any, Any], arrays: tuple[Any, ...], returns: str | None
    ) -> Any:
        """Intersect the rows of pairs, whose two vertices may have different owners."""
        return self._whole("intersect_rows").intersect_rows(bodies, pairs, arrays, returns)

    def _whole(self, what: str) -> DeviceOperators:
        """Return the operators on all edges of the graph, which are in one memory."""
        if not self.exchange.shares_memory:
            raise ArgumentError(f"{what} reads rows of several partitions, which share no memory: use partitions=1")
        if self._on_all_edges is None:
            self._on_all_edges = self._make(self._graph)
        return self._on_all_edges

    def _run(
        self,
        run: Callable[[int, tuple[Any, ...]], Any],
        arrays: tuple[Any, ...],
        returns: str | None,
        writer: tuple[str, Any],
        *,
        by_source: bool,
    ) -> Any:
        """Run an operator on each partition, with arrays of its own, and gather what the functions wrote and return."""
        given = self._lend(arrays)
        results = [run(number, given[number]) for number in self._numbers]
        if not self.exchange.shares_memory:
            self._take_back(arrays, given, writer)
        if returns == "frontier":
            return self._collected(results, by_source)
        return self._total(results) if returns == "sum" else None

    def _collected(self, results: Sequence[Any], by_source: bool) -> PartitionedSet:
        """Return the set of the vertices in the results of all partitions, each of which has some of its own."""
        bitmaps = [self._of(k, by_source).bitmap(result) for k, result in enumerate(results)]
        count = self._total([result.count for result in results])
        return self._measured(PartitionedSet(self._gather(bitmaps), int(count)))

    def _total(self, numbers: Sequence[int | float]) -> int | float:
        """Return the sum of a number of each partition, in their order."""
        figures = self.exchange.gather_figures([np.array([number]) for number in numbers])
        total: int | float = np.concatenate(figures).sum().item()
        return total

    def _lend(self, arrays: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """Return the arrays for each partition; those that nobody can write to are the users' own."""
        if self.exchange.shares_memory:
            return [arrays] * len(self._numbers)
        lent: dict[int, Sequence[Any]] = {}
        for array in arrays:
            if id(array) not in lent:
                lent[id(array)] = self._copies(array)
        return [tuple(lent[id(array)][number] for array in arrays) for number in self._numbers]

    def _copies(self, array: Any) -> Sequence[Any]:
        if not self._is_writable(array):
            return [array] * len(self._numbers)
        if self._is_of_vertices(array):
            return self.exchange.gather_masters(self._device, [array] * len(self._numbers), self._bounds)
        copies = [self._device.empty(len(array), array.dtype) for _ in self._numbers]
        for copy in copies:
            self._device.move(copy, array)
        return copies

    def _is_writable(self, array: Any) -> bool:
        if isinstance(array, np.ndarray):
            return array.ndim == 1 and array.flags.writeable
        return hasattr(array, "dtype") and not isinstance(array, np.generic) and not self.is_of_graph(array)

    def _is_of_vertices(self, array: Any) -> bool:
        return bool(len(array) == self._graph.num_vertices)

    def _take_back(self, arrays: tuple[Any, ...], given: list[tuple[Any, ...]], writer: tuple[str, Any]) -> None:
        """Copy what each partition wrote to its own elements into the users' arrays.

        Raises
        ------
        ProgramError
            A partition wrote to an element that it does not own. The arrays are as they were before the call.
        """
        written = [k for k, array in enumerate(arrays) if self._is_writable(array)]
        for k in written:
            for number in self._numbers:
                self._check_writes(k, arrays[k], given[number][k], number, writer)
        for k in written:
            if self._is_of_vertices(arrays[k]):
                for lent, (first, last) in zip(given, pairwise(self._bounds), strict=True):
                    self._device.move(arrays[k][first:last], lent[k][first:last])

    def _check_writes(self, k: int, array: Any, copy: Any, number: int, writer: tuple[str, Any]) -> None:
        before, after = (np.ascontiguousarray(self._device.download(one)) for one in (array, copy))
        changed = (before.view(np.uint8) != after.view(np.uint8)).reshape(len(before), -1).any(axis=1)
        first, last = self._bounds[number : number + 2]
        if self._is_of_vertices(array):
            changed[first:last] = False
        if not changed.any():
            return
        element, (role, function) = int(changed.argmax()), writer
        raise ProgramError(
            f"{role} ({line_of(function)}) writes to arrays[{k}][{element}] for a vertex of partition {number}, the "
            f"vertices {first:,} to {last - 1:,}: where partitions share no memory, it may write at array[v] only, in "
            "arrays of n elements; return numbers that are to be added, with returns='sum', or use partitions=1"
        )

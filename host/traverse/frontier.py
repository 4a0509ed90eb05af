"""Sets of active vertices, for operators and for the start of a run."""

from __future__ import annotations

from contextlib import suppress
from time import perf_counter
from typing import Any

import numpy as np

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, GraphError
from gpu_pregel.host.arguments import check_flag, check_integer
from gpu_pregel.host.devices import DeviceName, get_device
from gpu_pregel.host.devices.cpu import CpuDevice
from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.devices.python import PythonDevice
from gpu_pregel.host.devices.threads import thread_count
from gpu_pregel.host.graphs.csr import CSR
from gpu_pregel.host.graphs.edge_arrays import as_vector
from gpu_pregel.host.graphs.graph import Graph, GraphLike, as_graph
from gpu_pregel.host.graphs.partitions import pack_bits
from gpu_pregel.host.graphs.vertex_values import by_vertex_number
from gpu_pregel.host.superstep.progress import WITHOUT_TOTAL, ProgressBar
from gpu_pregel.host.superstep.trace import stats_of
from gpu_pregel.host.traverse.bodies import DTYPES, NUMBERS, kind_of
from gpu_pregel.host.traverse.operator_contract import DeviceOperators, Operators, VertexSet
from gpu_pregel.host.traverse.residency import ResidentEdges
from gpu_pregel.kernels.library.compile_clock import compile_seconds

Array = np.ndarray[Any, Any]

GPU_FROM = 1_000_000
"""Stored edges from which on programs and operators are faster on a GPU; ``benchmarks/NOTES.md`` derives it."""


class OperatorRun:
    """What a frontier shares with those derived from it: the graph, the device, and the trace of their supersteps."""

    def __init__(self, graph: Graph, device: Device, reason: str, partitions: int, *, shown: bool) -> None:
        self.graph, self.device, self.reason, self.partitions = graph, device, reason, partitions
        self.operators = _operators(graph, device, partitions)
        self._rows: list[dict[str, Any]] = []
        self._bar = ProgressBar("superstep", bar_format=WITHOUT_TOTAL, shown=shown)
        self._shown = shown

    def start(self) -> tuple[float, float]:
        """Return the time, and the time spent compiling so far."""
        return perf_counter(), compile_seconds()

    def record(
        self, phase: str, direction: str, active: VertexSet, started: tuple[float, float], rule: str = "only"
    ) -> None:
        """Add a row to the trace for a superstep that has ended."""
        compiled = compile_seconds() - started[1]
        self._rows.append(
            {
                "phase": phase,
                "direction": direction,
                "rule": rule,
                "active_vertices": active.count,
                "active_edges": active.edges,
                "seconds": max(0.0, perf_counter() - started[0] - compiled),
                "compile_seconds": compiled,
            }
        )
        if self._shown:
            self._bar.update(len(self._rows), note=f"{direction}, {active.count:,} active")

    def trace(self) -> tuple[dict[str, Any], ...]:
        """Return one row per superstep."""
        self._bar.close()
        return tuple(self._rows)


def _operators(graph: Graph, device: Device, partitions: int) -> Operators:
    edges = ResidentEdges(graph, partitions, threads=device.threads or thread_count(None))
    if partitions == 1:
        return _on_device(edges.block(0, by_source=False), device)
    from gpu_pregel.host.traverse.operators_partitioned import PartitionedOperators

    return PartitionedOperators(graph, device, edges, lambda block: _on_device(block, device))


def _on_device(graph: Graph, device: Device) -> DeviceOperators:
    if isinstance(device, PythonDevice):
        from gpu_pregel.host.traverse.operators_python import PythonOperators

        return PythonOperators(graph)
    if isinstance(device, CpuDevice):
        from gpu_pregel.host.traverse.operators_cpu import CpuOperators

        return CpuOperators(graph, device)
    from gpu_pregel.host.traverse.operators_cuda import CudaOperators

    operators: DeviceOperators = CudaOperators(graph, device)
    return operators


class Frontier:
    """A set of active vertices of a graph, in the memory of a device: a bitmap and, where few are active, a queue.

    Frontiers do not change: :func:`process_vertices` and :func:`process_edges` return new ones.

    Parameters
    ----------
    graph : Graph, NetworkX graph or SciPy sparse matrix
    vertices : array_like of int, or of bool [n], optional
        Vertex numbers, as ``graph.vertices(ids)`` finds them, or whether each vertex is in the frontier. Default: all
        vertices.
    device : {"auto", "cpu", "cuda", "cuda:N", "emulated", "emulated:SEED", "python"}
        "auto" is a GPU if there is one and the graph has at least a million stored edges, or arrays in its memory.
    threads : int, optional
        Number of CPU threads. Default: the processors available to this process.
    progress : bool, default False
        Show the number of supersteps on stderr.
    partitions : int, default 1
        Number of ranges of vertices, each with its edges, over which operators run one after the other; at most one for
        each 64 vertices. Results are the same, but for the rounding of sums of floats. They need a copy of the edges.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> frontier = gp.Frontier(gp.grid(3), [4, 0])
    >>> len(frontier), frontier.vertices().tolist(), 4 in frontier
    (2, [0, 4], True)
    """

    def __init__(
        self,
        graph: GraphLike,
        vertices: Any = None,
        *,
        device: DeviceName = "auto",
        threads: int | None = None,
        progress: bool = False,
        partitions: int = 1,
    ) -> None:
        graph = as_graph(graph)
        check_flag("progress", progress)
        check_integer("partitions", partitions, 1, 1 << 16)
        flags = None if vertices is None else vertex_flags(graph, "vertices", vertices)
        device, reason = graph._choose_device("work by operators", GPU_FROM, device, threads)
        self._run = OperatorRun(graph, get_device(device, threads=threads), reason, partitions, shown=progress)
        operators = self._run.operators
        self._active = operators.everything() if flags is None else operators.chosen(flags)

    def _next(self, active: VertexSet) -> Frontier:
        """Return the frontier of another set of vertices, derived from this one."""
        frontier = object.__new__(Frontier)
        frontier._run, frontier._active = self._run, active
        return frontier

    @property
    def graph(self) -> Graph:
        """The graph."""
        return self._run.graph

    @property
    def device(self) -> Device:
        """The device on which operators run."""
        return self._run.device

    def everything(self) -> Frontier:
        """Return the frontier of all vertices, with the same device and trace."""
        return self._next(self._run.operators.everything())

    def chosen(self, vertices: Any) -> Frontier:
        """Return the frontier of other vertices, given as in the constructor, with the same device and trace."""
        flags = vertex_flags(self.graph, "vertices", vertices)
        return self._next(self._run.operators.chosen(flags))

    def full(self, value: Any, dtype: Any, size: int | None = None) -> Any:
        """Return an array in device memory filled with ``value``: n elements, unless a ``size`` is given."""
        size = self.graph.num_vertices if size is None else check_integer("size", size, 0)
        filling = _filling(value, dtype)
        require_elements(self.device, size, dtype)
        return self.device.full(size, filling, dtype)

    def upload(self, array: Array) -> Any:
        """Return a copy of a host array in the memory of the device; bodies must take its dtype."""
        kind_of("array", array)
        return np.array(array) if self.device.is_host else self.device.upload(np.ascontiguousarray(array))

    def download(self, array: Any) -> Array:
        """Return an array of the device in host memory."""
        return self.device.download(array)

    def csr(self) -> CSR:
        """Return ``(indptr, indices, weights)`` of the out-edges in device memory, as arrays for bodies."""
        return self._run.operators.arrays_of(self.graph._csr)

    def csc(self) -> CSR:
        """Return ``(indptr, indices, weights)`` of the in-edges in device memory, as arrays for bodies."""
        return self._run.operators.arrays_of(self.graph.csc)

    def edges(self) -> tuple[Any, Any]:
        """Return the ends of the out-edges of the frontier's vertices in device memory, as two arrays of uint32.

        The edges are in the order of the CSR. In an undirected graph each edge is listed once: if both ends are in the
        frontier, from the lower number to the higher one. Self-loops and repeated edges are listed as they are stored.
        """
        return self._run.operators.edges(self._active)

    def flags(self) -> Array:
        """Return bool[n] in host memory: whether each vertex is in the frontier."""
        return self._run.operators.flags(self._active)

    def vertices(self) -> Array:
        """Return the numbers of the vertices in the frontier, in ascending order, as int64[len] in host memory."""
        return np.flatnonzero(self.flags())

    def trace(self) -> tuple[dict[str, Any], ...]:
        """Return a row per superstep of this frontier and all that derive from the same one."""
        return self._run.trace()

    def stats(self) -> dict[str, Any]:
        """Return the device, why it was chosen, the number of threads, and the seconds of running and of compiling."""
        return stats_of(self.device, self._run.reason, self._run.trace())

    def __or__(self, other: Frontier) -> Frontier:
        """Return the frontier of the vertices of both, which derive from the same frontier."""
        if not isinstance(other, Frontier):
            return NotImplemented
        if other._run is not self._run:
            own, others = self._run.partitions, other._run.partitions
            counts = "" if own == others else f", and have {own} and {others} partitions"
            raise ArgumentError(
                f"the frontiers do not derive from the same one{counts}: use frontier.chosen(other.vertices())"
            )
        if not self or not other:
            return self if self else other
        return self._next(self._run.operators.union(self._active, other._active))

    def __len__(self) -> int:
        return self._active.count

    def __contains__(self, vertex: object) -> bool:
        if isinstance(vertex, bool) or not isinstance(vertex, (int, np.integer)):
            raise ArgumentTypeError(
                f"a frontier contains vertex numbers, not {vertex!r:.80}; graph.vertex(id) finds the number of an id"
            )
        return bool(0 <= vertex < self.graph.num_vertices and self.flags()[vertex])

    def __repr__(self) -> str:
        return f"<Frontier: {len(self):,} of {self.graph.num_vertices:,} vertices>"


def require_elements(device: Device, size: int, dtype: Any) -> None:
    """Raise ``NotEnoughMemoryError`` unless an array of ``size`` elements fits."""
    device.require(size * np.dtype(dtype).itemsize, f"an array of {size:,} elements")


def _filling(value: Any, dtype: Any) -> np.generic:
    """Return ``value`` as a number of a dtype, or raise an error if that changes it."""
    try:
        kind = np.dtype(dtype)
    except TypeError:
        kind = None
    if dtype is None or kind not in DTYPES:
        raise ArgumentTypeError(f"dtype must be of {NUMBERS}, such as 'int64', not {dtype!r:.80}")
    if not isinstance(value, (int, float, complex, np.number, np.bool_)):
        raise ArgumentTypeError(f"value must be a number, not {value!r:.80}")
    with np.errstate(all="ignore"), suppress(OverflowError, TypeError, ValueError):
        number: np.generic = kind.type(value)
        is_rounded = kind.kind in "fc" and (np.isfinite(number) or not np.isfinite(value))
        if is_rounded or number.item() == value:
            return number
    raise ArgumentError(f"value is {value!r:.80}, which {kind} cannot hold")


def frontier_words(graph: Graph, given: Any) -> Array:
    """Return the bitmap, which the caller may change, of the vertices given as ``frontier=`` of a run."""
    if not isinstance(given, Frontier):
        return pack_bits(vertex_flags(graph, "frontier", given))
    if given.graph is not graph:
        raise ArgumentError("frontier belongs to another graph: pass frontier.vertices(), its vertex numbers")
    return pack_bits(given.flags())


def vertex_flags(graph: Graph, name: str, vertices: Any) -> Array:
    """Return bool[n] from vertex numbers, or from whether each vertex is meant, those left out by a Series not."""
    n = graph.num_vertices
    if str(getattr(vertices, "dtype", "")) in ("bool", "boolean"):
        vertices = by_vertex_number(graph, name, vertices, default=False)
    chosen = as_vector(name, vertices)
    if chosen.dtype.kind == "b":
        if len(chosen) != n:
            raise GraphError(f"{name} has {len(chosen):,} flags, but the graph has {n:,} vertices")
        return chosen
    if chosen.size and chosen.dtype.kind not in "iu":
        raise ArgumentTypeError(f"{name} must be vertex numbers, not {chosen.dtype}; graph.vertices(ids) finds them")
    if chosen.size and (chosen.min() < 0 or chosen.max() >= n):
        wrong = chosen[(chosen < 0) | (chosen >= n)][0]
        raise GraphError(f"{name}: no vertex {wrong:,} in a graph of {n:,} vertices: use numbers below {n:,}")
    flags = np.zeros(n, bool)
    flags[chosen.astype(np.int64)] = True
    return flags

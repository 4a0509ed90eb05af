"""Shortest paths from one or several vertices along weighted edges.

On the CPU delta-stepping: Ulrich Meyer, Peter Sanders: Δ-stepping: a parallelizable shortest path algorithm, Journal
of Algorithms 49(1), 2003. Threads continue into later bins without waiting for each other, which extends the fusion of
bins of Yunming Zhang et al.: Optimizing ordered graph algorithms with GraphIt, CGO 2020. Other devices read edges fast,
but each superstep takes them some microseconds: they shorten all paths at once (Bellman-Ford), as a vertex program, or
with ``delta=`` near ones first: Andrew Davidson, Sean Baxter, Michael Garland, John Owens: Work-Efficient Parallel GPU
Methods for Single-Source Shortest Paths, IPDPS 2014.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpu_pregel.algorithms._arguments import check_positive, check_weights_nonnegative
from gpu_pregel.algorithms._devices import chooses_device
from gpu_pregel.algorithms._path_relaxation import shorten_all, shorten_near
from gpu_pregel.algorithms._paths import UNREACHED, PathResult, find_predecessors, mask_unreached, source_numbers
from gpu_pregel.algorithms.bfs import bfs
from gpu_pregel.errors import GraphError
from gpu_pregel.host.devices import DeviceName, get_device
from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.graphs.edge_arrays import to_host
from gpu_pregel.host.graphs.graph import Graph, GraphLike, as_graph
from gpu_pregel.host.superstep.phases import Phases
from gpu_pregel.host.traverse.frontier import Frontier

Array = np.ndarray[Any, Any]

_LEAST_BINS = 256
"""The mean weight spans at most this number of bins."""
_WIDEST = 1e300
"""A bin for all distances below."""
_MOST_BINS = 1 << 52
"""Numbers of bins are exact as float64."""
_POOL_SHARE = 4
"""The pool of the bins has room for one entry per ``_POOL_SHARE`` edges, besides one per vertex."""
_SLOT_EDGES = 1 << 15
"""Edges that a slot should relax before it waits for the others."""
_ROUND_EDGES = 1 << 20
"""The same for a single slot, which waits for nothing but Ctrl-C."""
_SERIAL_EDGES = 1 << 15
"""Graphs with fewer edges are searched by one thread."""


@dataclass(frozen=True, eq=False, repr=False)
class Distances(PathResult):
    """The length of a shortest path to each vertex.

    Attributes
    ----------
    sources : int64[k]
        The numbers of the vertices where paths begin, in ascending order.
    delta : float
        The width of a bin; infinity if there is only one, and 1 if the graph has no weights.
    distances : float32, float64 or int64 [n]
        The sum of the weights on a shortest path from the nearest source, in device memory. Sums of float weights have
        their dtype, and infinity for vertices that cannot be reached. Those of integers, and numbers of edges if the
        graph has no weights, are exact int64, and 2**63 - 1, the largest one, for vertices that cannot be reached; in
        tables, files and ``to_dict`` these have no value (null, None).
    """

    delta: float
    distances: Any

    value_name = "distance"

    @property
    def _device_values(self) -> Any:
        return self.distances

    @cached_property
    def reached(self) -> Array:
        """Whether each vertex can be reached; bool[n]."""
        distances = self._values
        found: Array = distances < (np.inf if distances.dtype.kind == "f" else UNREACHED)
        return found

    @cached_property
    def predecessors(self) -> Array:
        """The vertex before each one on a shortest path; int64[n]: itself for a source, -1 if there is no path.

        It is the smallest vertex that leads to the distance from a smaller one. Where only edges of weight 0 (or too
        small to change a sum) lead to it, it is the smallest vertex that is itself reached by fewer of them. Computed
        on first use, by the threads of the CPU.
        """
        if self.graph.weights is None:
            ids = self.graph.to_ids(self.sources)
            return to_host(bfs(self.graph, ids, device="cpu").parents).astype(np.int64)
        return find_predecessors(self.graph, self.sources, self._values)

    @property
    def _predecessors(self) -> Array:
        return self.predecessors

    def _to_ids(self, values: Array) -> Array:
        """Return distances, of which integers are masked where there is no path."""
        return values if values.dtype.kind == "f" else mask_unreached(values, UNREACHED)

    def _columns(self) -> dict[str, Array]:
        return {**super()._columns(), "predecessor": self._predecessor_ids()}

    def summary(self) -> dict[str, Any]:
        """Return the number of vertices reached and the largest distance among them."""
        return {"reached": int(np.count_nonzero(self.reached)), "largest": self._values[self.reached].max().item()}

    def describe(self) -> str:
        """Return a one-line summary."""
        found = self.summary()
        return f"{found['reached']:,} of {len(self):,} vertices reached, at distances up to {found['largest']:,}"

    def __repr__(self) -> str:
        return f"<Distances: {self.describe()}>"


@chooses_device
def sssp(
    graph: GraphLike,
    source: Any,
    *,
    delta: float | None = None,
    device: DeviceName = "auto",
    threads: int | None = None,
    progress: bool = False,
) -> Distances:
    """Find the length of a shortest path from a source, or from the nearest of several, to each vertex.

    Parameters
    ----------
    graph : Graph, NetworkX graph or SciPy sparse matrix
        Edges of a directed graph are followed in their direction. Weights must not be negative; without weights, every
        edge counts 1. An edge of infinite weight leads nowhere.
    source : id, or list, set or array of ids
    delta : float, optional
        Vertices whose distances differ by less are processed together: the time depends on it, the result does not.
        Infinity: all vertices are. Default: on the CPU from the mean weight and the degrees; on other devices infinity.
    device : {"auto", "cpu", "cuda", "cuda:N", "emulated", "emulated:SEED", "python"}
    threads : int, optional
        Number of CPU threads. Default: the processors available to this process.
    progress : bool, default False
        Show a progress bar on stderr.

    Returns
    -------
    Distances
        With ``distances``, ``predecessors``, ``reached`` and ``path(target)``. Vertices that cannot be reached are at
        infinity or, if distances are integers, 2**63 - 1, and have no value in tables and ``to_dict`` then. Every run,
        device and number of threads gives the same.

    Raises
    ------
    GraphError
        A weight is negative or NaN, or integer weights are so large that a path could be longer than 2**63 - 2.
    ArgumentError
        No vertex has the id ``source``, or ``delta`` is not a number above 0.
    ArgumentTypeError
        ``graph`` is not a graph, or an argument has the wrong type.
    DeviceError
        The device is unknown or cannot be used.

    References
    ----------
    Ulrich Meyer, Peter Sanders: Δ-stepping: a parallelizable shortest path algorithm, Journal of Algorithms 49(1),
    2003.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> graph = gp.Graph.from_edgelist(["a", "a", "b"], ["b", "c", "c"], [1.5, 4.0, 2.0])
    >>> found = gp.sssp(graph, "a")
    >>> found.to_dict(), found.path("c")
    ({'a': 0.0, 'b': 1.5, 'c': 3.5}, ['a', 'b', 'c'])
    """
    graph = as_graph(graph)
    sources = source_numbers(graph, source)
    width = delta if delta is None or delta == math.inf else check_positive("delta", delta)
    check_weights_nonnegative(graph, "sssp")
    target = get_device(device, threads=threads)
    if graph.weights is None:
        ids = graph.to_ids(sources)
        hops = bfs(graph, ids, device=device, threads=threads, progress=progress)
        distances = hops.to_numpy().astype(np.int64)
        distances[distances < 0] = UNREACHED
        return Distances(graph, hops.stats, hops.trace, sources, delta=1.0, distances=distances)
    limit = _longest_path(graph)
    if target.name == "cpu":
        width = width or _default_delta(graph)
        phases = Phases(target, shown=progress)
        distances = _CpuSearch(graph, target, phases, min(width, _WIDEST), limit).run(sources)
        return Distances(graph, phases.stats(), phases.trace(), sources, delta=width, distances=distances)
    if width is None or width == math.inf:
        found = shorten_all(graph, sources, device, progress)
        stats = {key: found.stats[key] for key in ("device", "threads", "seconds", "compile_seconds")}
        trace = tuple({"phase": "shorten paths", **row} for row in found.trace)
        return Distances(graph, stats, trace, sources, delta=math.inf, distances=found.values)
    near = Frontier(graph, sources, device=device, threads=threads, progress=progress)
    distances = shorten_near(near, width)
    return Distances(graph, near.stats(), near.trace(), sources, delta=width, distances=distances)


def _weight_facts(graph: Graph) -> tuple[float, float]:
    """Return the largest and the mean weight, of those that are finite."""

    def derive() -> tuple[float, float]:
        weights = graph.weights
        assert weights is not None
        if weights.dtype.kind == "f" and len(weights) and not np.isfinite(weights.max()):
            weights = weights[np.isfinite(weights)]
        if not len(weights):
            return 0.0, 0.0
        largest = float(weights.max())
        with np.errstate(over="ignore"):
            mean = float(weights.mean(dtype=np.float64))
        return largest, mean if np.isfinite(mean) else largest

    return graph._fact("largest and mean weight", derive)


def _longest_path(graph: Graph) -> float:
    """Return a limit for all sums of weights, or raise ``GraphError`` if that of integers is beyond int64.

    The last edge of a sum may lead back to a vertex of its path, so that it has as many edges as there are vertices.
    """
    n, weights = graph.num_vertices, graph.weights
    if weights is not None and weights.dtype.kind in "iu":
        # Exact, where the float among the facts is rounded; and read once for all searches.
        largest = graph._fact("largest integer weight", lambda: int(weights.max(initial=0)))
        if largest * n >= UNREACHED:
            raise GraphError(
                f"sssp adds integer weights as int64, and {n:,} of them, up to {largest:,}, may exceed it: build the "
                f"graph with float64 weights"
            )
    return _weight_facts(graph)[0] * n


def _default_delta(graph: Graph) -> float:
    """Return a delta that gives the frontier about twice the mean weight per edge of a vertex at the end of an edge.

    Few edges per vertex, as in a grid, keep few vertices of a bin improving each other; hubs would do so often.
    """

    def derive() -> float:
        degrees = graph.out_degrees
        return float(np.dot(degrees, degrees.astype(np.float64))) / max(1, graph.num_stored_edges)

    mean = _weight_facts(graph)[1]
    delta = max(2 * mean / max(1.0, graph._fact("degree at the end of an edge", derive)), mean / _LEAST_BINS)
    is_integer = graph.weights is not None and graph.weights.dtype.kind in "iu"
    return max(delta, 1.0) if is_integer else delta or 1.0


class _CpuSearch:
    """Delta-stepping on the CPU with one slot per thread."""

    def __init__(self, graph: Graph, target: Device, phases: Phases, delta: float, limit: float) -> None:
        self._graph, self._target, self._phases = graph, target, phases
        self._kernels: Any = target.kernels("sssp")
        n, m = graph.num_vertices, graph.num_stored_edges
        weights = graph.weights
        assert weights is not None
        if weights.dtype.kind == "f":
            self._word = np.dtype(f"u{weights.dtype.itemsize}")
            self._unreached = np.array([np.inf], weights.dtype).view(self._word)[0]
        else:
            self._word = np.dtype(np.uint32 if limit < np.iinfo(np.uint32).max else np.int64)
            self._unreached = self._word.type(np.iinfo(self._word).max)
        self._words = target.empty(n, self._word)
        longest = min(limit, np.finfo(np.float64).max)
        self._inverse = 1 / max(delta, longest / _MOST_BINS, np.finfo(np.float64).tiny)
        self._slots = slots = 1 if m < _SERIAL_EDGES else target.threads or 1
        kernels = self._kernels
        blocks = -(-(n + m // _POOL_SHARE) // (kernels.BLOCK - 1)) + slots * (kernels.BINS + 2 * kernels.FRESH_BLOCKS)
        self._pool = target.empty(blocks * kernels.BLOCK, np.uint32)
        self._shared = target.empty(blocks, np.int64)
        self._bins = target.zeros(slots * kernels.SLOT_LENGTH, np.int64)
        self._common = target.zeros(kernels.COMMON_LENGTH, np.int64)

    def run(self, sources: Array) -> Array:
        """Return the distances."""
        graph, kernels, common = self._graph, self._kernels, self._common
        self._phases.run("fill", kernels.fill, len(self._words), self._unreached, self._words)
        self._words[sources] = 0
        self._refill(0.0)
        base, width, relaxed = 0.0, 1, 0
        wanted = _SLOT_EDGES * self._slots if self._slots > 1 else _ROUND_EDGES
        most = 2 * _SLOT_EDGES if self._slots > 1 else graph.num_stored_edges
        while True:
            self._phases.run("share", kernels.share, 1, self._pool, self._shared, self._bins, common)
            current = int(common[kernels.CURRENT])
            if current == kernels.BINS:
                end, base = base + kernels.BINS, self._least_position(base + kernels.BINS)
                if base == np.inf:
                    return self._result()
                self._run_slots("move bins", kernels.move_bins, graph.weights, self._inverse, end, base)
            else:
                limit = min(kernels.BINS, current + width)
                arguments = (*graph.to_csr(), self._inverse, base, limit, most, not graph.is_directed)
                self._relax(*arguments)
                edges = self._edges()
                if edges - relaxed < wanted:
                    width = min(2 * width, kernels.BINS)
                elif edges - relaxed > 2 * wanted:
                    width = max(1, width // 2)
                relaxed = edges
            if common[kernels.FULL]:
                base += current % kernels.BINS
                self._refill(base)
                relaxed = 0

    def _relax(self, *arguments: Any) -> None:
        pools = (self._words, self._pool, self._shared, self._bins, self._common)
        kernel = self._kernels.relax
        self._phases.run("relax", kernel, self._slots, *arguments, *pools, chunk=1)

    def _run_slots(self, name: str, kernel: Any, *arguments: Any) -> None:
        """Run a kernel over the slots that fills their bins."""
        pools = (self._words, self._pool, self._bins, self._common)
        self._phases.run(name, kernel, self._slots, *arguments, *pools, chunk=1)

    def _edges(self) -> int:
        """Return the number of edges relaxed by all slots."""
        return int(self._bins[self._kernels.EDGES :: self._kernels.SLOT_LENGTH].sum())

    def _least_position(self, end: float) -> float:
        """Return the bin of the first vertex beyond the bins, which end at position ``end``; infinity for none."""
        least = self._target.empty(self._slots, np.float64)
        arguments = (self._graph.weights, self._inverse, end, self._words, self._pool, self._bins, least)
        self._phases.run("find least", self._kernels.find_least, self._slots, *arguments, chunk=1)
        return float(np.floor(least.min()))

    def _refill(self, base: float) -> None:
        """Empty the bins, and insert every vertex from bin ``base`` up: at the start, or if the pool is full."""
        kernels = self._kernels
        self._bins[:] = 0
        self._common[:] = 0
        self._common[kernels.NEXT_BLOCK] = kernels.FRESH_BLOCKS
        self._bins[kernels.FRESH :: kernels.SLOT_LENGTH] = self._bins[kernels.FRESH_END :: kernels.SLOT_LENGTH] = 0
        self._run_slots("fill bins", kernels.refill, self._graph.weights, self._inverse, base, self._unreached)

    def _result(self) -> Array:
        """Return the distances as floats or int64."""
        weights = self._graph.weights
        assert weights is not None
        distances: Array = self._words
        if weights.dtype.kind == "f":
            distances = distances.view(weights.dtype)
        if self._word != np.uint32 or weights.dtype.kind == "f":
            return distances
        distances = self._target.empty(len(self._words), np.int64)
        arguments = (self._words, self._unreached, distances)
        self._phases.run("widen", self._kernels.widen, len(self._words), *arguments)
        return distances

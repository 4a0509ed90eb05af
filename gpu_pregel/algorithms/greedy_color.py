"""Greedy colouring: each vertex gets the smallest colour that no neighbour before it in an order has.

Mark Jones, Paul Plassmann: A parallel graph coloring heuristic, SIAM Journal on Scientific Computing 14(3), 1993. The
orders are those of William Hasenplaugh, Tim Kaler, Tao Schardl, Charles Leiserson: Ordering heuristics for parallel
graph coloring, SPAA 2014. The colours are those of the sequential algorithm in this order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpu_pregel.algorithms._driver import AlgorithmRun, documented
from gpu_pregel.algorithms._random_order import check_seed, keys_on_device, random_keys
from gpu_pregel.host.arguments import check_choice
from gpu_pregel.host.devices import DeviceName
from gpu_pregel.host.graphs.graph import Graph, GraphLike
from gpu_pregel.host.graphs.results import VertexResult
from gpu_pregel.host.superstep.advance import Advance
from gpu_pregel.host.traverse.arrays import ranks as ranks_of
from gpu_pregel.host.traverse.frontier import Frontier
from gpu_pregel.host.traverse.items import items
from gpu_pregel.host.traverse.operators import process_vertices, reduce_rows
from gpu_pregel.kernels.library import atomics

Array = np.ndarray[Any, Any]

_ORDERS = ("log_degree", "degree", "random")
_BY_LOGARITHM, _BY_DEGREE = 0, 1
"""Places in ``_ORDERS``."""
_BLOCK_BITS = 6
"""Ties are broken by the random key of a block of 64 vertices, then by number: rows read in turn are close."""
_LAST = (1 << _BLOCK_BITS) - 1
_LARGEST = (1 << 32) - 1
"""A larger size than any degree."""
_PARTS = 64
"""Parts of the counting sort that threads claim."""
_SERIAL_EDGES = 1 << 14
_FIRST, _CHUNK = 1 << 12, 64
"""The first vertices have long rows and depend on each other: threads claim them one by one, the others in chunks."""
_WINDOW = 62
"""Number of colours at a time for which a message of the operators has a bit."""


@dataclass(frozen=True, eq=False, repr=False)
class Coloring(VertexResult):
    """A colouring of a graph: no two neighbours have the same colour.

    Attributes
    ----------
    colors : uint32[n]
        The colour of each vertex, from 0, in host memory.
    order : str
    seed : int
    """

    colors: Array
    order: str
    seed: int

    value_name = "color"

    @property
    def _values(self) -> Array:
        return self.colors

    @cached_property
    def count(self) -> int:
        """Number of colours."""
        return int(self.colors.max()) + 1 if len(self.colors) else 0

    def sizes(self) -> Array:
        """Return the number of vertices of each colour; int64[count]."""
        return np.bincount(self.colors, minlength=self.count)

    def summary(self) -> dict[str, Any]:
        """Return the number of colours."""
        return {"colors": self.count}

    def describe(self) -> str:
        """Return a one-line summary."""
        return f"{self.count:,} colours for {len(self.colors):,} vertices"

    def __repr__(self) -> str:
        return f"<Coloring: {self.count:,} colours of {len(self.colors):,} vertices>"


@documented
def greedy_color(
    graph: GraphLike,
    *,
    order: str = "log_degree",
    seed: int = 0,
    device: DeviceName = "auto",
    threads: int | None = None,
    progress: bool = False,
) -> Coloring:
    """Colour the vertices of an undirected graph so that no two neighbours have the same colour; ignores self-loops.

    Parameters
    ----------
    {graph}
    order : {"log_degree", "degree", "random"}
        The order in which the greedy algorithm colours the vertices: by descending degree, by the number of binary
        digits of the degree, which lets more vertices be coloured at the same time, or at random.
    seed : int, default 0
        The seed of the random order of blocks of 64 vertices that breaks ties.
    {options}

    Returns
    -------
    Coloring
        With ``colors``, ``count`` and ``sizes()``. Every run, device and number of threads gives the same
        colours for the same order and seed. There are at most as many colours as the largest degree plus one.

    Raises
    ------
    ArgumentError
        ``order`` is not one of these, or ``seed`` is negative or has more than 64 bits.
    GraphError
        The graph is directed.
    {errors}

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> coloring = gp.greedy_color(gp.Graph.from_edgelist([0, 0, 0, 1], [1, 2, 3, 2]))
    >>> coloring.count, coloring[0], coloring[3] in (1, 2), coloring.sizes().sum().item()
    (3, 0, True, 4)
    """
    run = AlgorithmRun("greedy_color", graph, device, threads, progress)
    order = check_choice("order", order, _ORDERS)
    seed = check_seed(seed)
    colors = run.execute(order, seed)
    return Coloring(run.graph, run.stats(), run.trace(), colors=colors, order=order, seed=seed)


def _block_order(n: int, seed: int) -> Array:
    """Return the blocks of vertices in a random order."""
    return np.argsort(random_keys(-(-n >> _BLOCK_BITS), seed)).astype(np.uint32)


def _vertex_order(graph: Graph, order: str, seed: int) -> Array:
    """Return the vertices in an order; uint32[n]."""
    blocks = _block_order(graph.num_vertices, seed).astype(np.int64)
    vertices = ((blocks[:, None] << _BLOCK_BITS) + np.arange(1 << _BLOCK_BITS)).ravel()
    vertices = vertices[vertices < graph.num_vertices]
    degrees = graph.out_degrees[vertices]
    if order == "log_degree":
        degrees = np.frexp(degrees)[1]
    ranks = np.zeros(len(vertices)) if order == "random" else -degrees
    return vertices[np.argsort(ranks, kind="stable")].astype(np.uint32)


def color(run: AlgorithmRun, order: str, seed: int) -> Array:
    """On the CPU, return the colours, found by kernels."""
    graph, target, phases = run.graph, run.device, run.phases
    kernels = target.kernels("coloring")
    n = graph.num_vertices
    if order == "log_degree":
        vertices, states, widest = _sorted_by_class(run, seed)
    else:
        with phases.measure("sort by degree" if order == "degree" else "order"):
            vertices, states = _vertex_order(graph, order, seed), target.empty(n, np.uint64)
            states[vertices] = np.arange(n, dtype=np.uint64) << np.uint64(32)
        widest = int(graph.out_degrees.max(initial=0))
    rows = graph.indptr, graph.indices, vertices
    first = n if graph.num_stored_edges <= _SERIAL_EDGES else min(n, _FIRST)
    rest = states, widest, target.threads
    phases.run("color first", kernels.color, first, *rows, 0, *rest, chunk=1 if first < n else n)
    phases.run("color", kernels.color, n - first, *rows, first, *rest, chunk=_CHUNK)
    # The colour from 1 is in the lower half of a state.
    colors: Array = (states & np.uint64(kernels.MAX_COLOR)).astype(np.uint32) - np.uint32(1)
    return colors


def _sorted_by_class(run: AlgorithmRun, seed: int) -> tuple[Array, Array, int]:
    """Return the vertices by class of degree, their states, and a bound of the degrees: a counting sort."""
    graph, target, phases = run.graph, run.device, run.phases
    kernels, n = target.kernels("coloring"), graph.num_vertices
    with phases.measure("order blocks"):
        blocks = _block_order(n, seed)
    parts = min(len(blocks), _PARTS)
    counts = target.zeros(parts * kernels.CLASSES, np.int64).reshape(parts, kernels.CLASSES)
    phases.run("count classes", kernels.count_classes, parts, graph.indptr, blocks, counts, chunk=1)
    ends = np.cumsum(counts.T.ravel()).reshape(kernels.CLASSES, parts).T
    positions = np.ascontiguousarray(ends - counts)
    vertices, states = target.empty(n, np.uint32), target.empty(n, np.uint64)
    sizes = graph.indptr, blocks, positions, vertices, states
    phases.run("sort by class", kernels.sort_by_class, parts, *sizes, chunk=1)
    largest = int(counts.any(axis=0).argmax())
    return vertices, states, min(n, 1 << (kernels.CLASSES - 1 - largest))


def color_by_operators(run: AlgorithmRun, order: str, seed: int) -> Array:
    """On the other devices, return the colours."""
    graph, n, active = run.graph, run.graph.num_vertices, run.frontier()
    colors = active.full(0, np.uint32)
    arrays = _ranks(active, order, seed), colors, active.full(1, np.int64)
    # In each round, the first vertex in the order that has no colour gets one, or looks among the next colours.
    rounds = n * (1 + int(graph.out_degrees.max(initial=0)) // _WINDOW)
    advance = Advance("coloring vertices", active.device, rounds)
    while active:
        active = reduce_rows(_colors_before, "or", active, arrays, finish=_color)
        advance.take()
    return active.download(colors) - np.uint32(1)


def _ranks(everyone: Frontier, order: str, seed: int) -> Any:
    """Return different numbers, uint64[n], in whose order the vertices are, in device memory."""
    graph, device = everyone.graph, everyone.device
    blocks = keys_on_device(items(-(-graph.num_vertices >> _BLOCK_BITS), device), seed)
    # The position of each block in the order of their keys.
    positions = ranks_of(blocks)
    ranks = everyone.full(0, np.uint64)
    given = (graph._csr_on(device, 0)[0], positions, _ORDERS.index(order), ranks)
    process_vertices(_rank, everyone, given, returns=None)
    return ranks


def _rank(v: Any, indptr: Any, positions: Any, order: Any, ranks: Any) -> None:
    """Rank v by descending degree, by that of its binary digits, or by none; then by its block, then by number."""
    degree = np.int64(indptr[v + 1]) - np.int64(indptr[v])
    size = np.int64(0)
    if order == _BY_DEGREE:
        size = degree
    elif order == _BY_LOGARITHM:
        while degree > 0:
            size += 1
            degree //= 2
    place = positions[v >> _BLOCK_BITS] << _BLOCK_BITS | v & _LAST
    ranks[v] = np.uint64(_LARGEST - size) << np.uint64(32) | np.uint64(place)


def _colors_before(v: Any, u: Any, weight: Any, ranks: Any, colors: Any, lowest: Any) -> int:
    """Return the colour of a neighbour before v as a bit, if v looks at it, and all bits if it has no colour yet."""
    if ranks[u] >= ranks[v]:
        return 0
    color = int(atomics.load(colors, u))
    if color == 0:
        return -1
    place = color - lowest[v]
    return 1 << place if 0 <= place < _WINDOW else 0


def _color(v: Any, taken: Any, ranks: Any, colors: Any, lowest: Any) -> bool:
    """Give v the smallest colour from 1 that no neighbour before it has; return whether it has none yet."""
    if taken == -1:
        return True
    for bit in range(_WINDOW):
        if (taken >> bit) & 1 == 0:
            atomics.store(colors, v, lowest[v] + bit)
            return False
    lowest[v] += _WINDOW
    return True

"""How triangles are counted: by packed rows or in the CSR on the CPU, by tables of forward rows on CUDA.

Vertices of high degree are dealt with last (Thomas Schank, Dorothea Wagner: Finding, Counting and Listing All Triangles
in Large Graphs, WEA 2005): a triangle is found once, in the row of the vertex whose rank is largest, and rows of
neighbours of smaller rank are short even at hubs. They are packed into words of a bitmap, which are intersected by
``popcount``. On CUDA the order is the reverse one, and the device derives the rows; see ``triangles_cuda``. Operators
intersect the rows of the CSR where there are no kernels.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpu_pregel.algorithms._degree_order import count_groups, place_vertices
from gpu_pregel.algorithms._driver import AlgorithmRun
from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.graphs.device_sort import scan
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.traverse.frontier import Frontier
from gpu_pregel.host.traverse.operators import intersect_rows
from gpu_pregel.kernels.library import atomics

Array = np.ndarray[Any, Any]

_SAMPLES = 1024
_SKEW = 2
"""Packing pays if the mean degree of the ends of edges is this many times the mean degree of vertices."""
_RANKS_AT_ONCE = 64
"""Ranks that a thread claims at a time: rows of hubs take long."""
_PACKED_BYTES = 12
_WORD_BITS, _SMALL_BYTES = 32, 1 << 12


def count_links(run: AlgorithmRun) -> Array:
    """Count the edges among the neighbours of each vertex, int64[n], without self-loops and repeated edges.

    Neighbours are the other ends of edges in either direction. In a directed graph, opposite edges count as two.
    """
    graph, target = run.graph, run.device
    if graph.is_directed or _is_skewed(graph):
        return _count_packed(run)
    links = target.zeros(graph.num_vertices, np.int64)
    rows = graph.indptr, graph.indices
    run.phases.run("count", target.kernels("triangles").count_plain, graph.num_vertices, *rows, links)
    return np.asarray(links)


def count_links_by_operators(graph: Graph, frontier: Frontier) -> Any:
    """Count the same on any device, for the frontier of all vertices of ``neighborhoods(graph)``."""
    links = frontier.full(0, np.int64)
    edges = Frontier(without_repetitions(graph), device=frontier.device.name).edges()
    intersect_rows(_add_link, frontier, [links], pairs=edges, returns=None)
    return links


def _add_link(i: int, u: int, v: int, w: int, weight_u: float, weight_v: float, links: Array) -> None:
    """Count the edge from u to v at their common neighbour w."""
    atomics.add(links, w, 1)


def without_repetitions(graph: Graph) -> Graph:
    """Return the graph without self-loops and repeated edges; it is kept, unless there are none."""

    def derive() -> Graph | None:
        simple = graph.simplify(combine="min")
        return None if simple is graph else simple

    return graph._fact("without repetitions", derive) or graph


def neighborhoods(graph: Graph) -> Graph:
    """Return the undirected graph without self-loops and repeated edges, in which rows are sets of neighbours."""
    simple = without_repetitions(graph)
    return simple._fact("neighborhoods", lambda: simple.to_undirected(combine="min")) if simple.is_directed else simple


def both_directions(graph: Graph) -> tuple[Any, Any, Any, Any]:
    """Return ``indptr`` and ``indices`` of the CSR, and those of the CSC or None if the graph is undirected."""
    back = (graph.csc.indptr, graph.csc.indices) if graph.is_directed else (None, None)
    return graph.indptr, graph.indices, *back


class _Pieces(NamedTuple):
    """The pieces of long rows on CUDA: their vertices, their numbers in the rows of these, and how many there are."""

    vertices: Any
    numbers: Any
    total: int


def count_forward(run: AlgorithmRun) -> Any:
    """Count the same on CUDA, in an undirected graph."""
    graph, target, phases = run.graph, run.device, run.phases
    n, kernels = graph.num_vertices, target.kernels("triangles")
    rows = graph._csr_on(target, _forward_bytes(graph))
    counts = target.zeros(n, np.int64)
    if graph.num_stored_edges:
        with phases.measure("direct edges") as bar:
            forward = _derive_forward(rows, target)
            pieces = _list_pieces(rows, forward, target, bar.tick)
        with phases.measure("count") as bar:
            target.launch(kernels.count_long, pieces.total, *rows, *forward, pieces.vertices, pieces.numbers, counts)
            target.launch(kernels.count_short, n, *rows, *forward, counts, tick=bar.tick)
    return counts


def _derive_forward(rows: tuple[Any, Any], target: Device) -> tuple[Any, Any]:
    """Return ``begins`` and ``heads``: ``heads[begins[u]:begins[u + 1]]`` are the edges that lead forward from u."""
    kernels, (indptr, indices) = target.kernels("forward_rows"), rows
    n, m = indptr.size - 1, indices.size
    bits, sizes = (target.empty(m // _WORD_BITS + 1, np.uint32) for _ in range(2))
    target.launch(kernels.mark_forward, m + 1, indptr, indices, bits, sizes)
    positions = scan(target, sizes)
    # Each edge is stored twice, and leads forward once.
    begins, heads = target.empty(n + 1, indptr.dtype), target.empty(m // 2, np.uint32)
    target.launch(kernels.keep_forward, m, indices, bits, positions, heads)
    target.launch(kernels.write_begins, n + 1, indptr, bits, positions, begins)
    return begins, heads


def _list_pieces(rows: tuple[Any, Any], forward: tuple[Any, Any], target: Device, tick: Any) -> _Pieces:
    """List the pieces of long rows; this waits for the device, to know their number."""
    kernels, (indptr, indices) = target.kernels("triangles"), rows
    vertices, numbers = (target.empty(_most_pieces(indices.size, kernels), np.uint32) for _ in range(2))
    control = target.zeros(1, np.uint64)
    arrays = (indptr, forward[0], vertices, numbers, control)
    target.launch(kernels.list_pieces, indptr.size - 1, *arrays, tick=tick)
    return _Pieces(vertices, numbers, int(target.download(control)[kernels.PIECES]))


def _most_pieces(m: int, kernels: Any) -> int:
    """Return the largest number of pieces: some are full, and each row has at most one that is not."""
    return int(m // kernels.PIECE * 2 + m // 2 // kernels.WARP_ENTRIES + 1)


def _forward_bytes(graph: Graph) -> int:
    """Return the memory for the counts, the forward rows, their marks and positions, and the pieces in bytes."""
    return 16 * (graph.num_vertices + 1) + 3 * graph.num_stored_edges + _SMALL_BYTES


def _is_skewed(graph: Graph) -> bool:
    """Whether packed rows are shorter: a sample of edges shows hubs, or many neighbours per word."""
    n, m = graph.num_vertices, graph.num_stored_edges
    if m == 0:
        return False
    ends = graph.indices[np.linspace(0, m - 1, _SAMPLES).astype(np.int64)].astype(np.int64)
    degree = float(np.mean(graph.indptr[ends + 1] - graph.indptr[ends]))
    return degree > _SKEW * m / n or degree > n / 32


def _count_packed(run: AlgorithmRun) -> Array:
    graph, target, phases = run.graph, run.device, run.phases
    n, threads = graph.num_vertices, target.threads or 1
    kernels = target.kernels("packed_rows")
    rows = both_directions(graph)
    degrees = graph.indptr + graph.csc.indptr if graph.is_directed else graph.indptr
    groups = count_groups(degrees, graph.indptr, phases)
    order, ranks, _ = place_vertices(degrees, graph.indptr, *groups, phases)
    # An undirected edge is packed once, and so is a directed one.
    entries = graph.num_stored_edges if graph.is_directed else graph.num_stored_edges // 2 + 1
    target.require(entries * _PACKED_BYTES + n * 28, "counting triangles")
    # A thread leaves the rest of a block unused if a row does not fit: space is reserved for it, but not touched.
    space = 2 * entries + threads * kernels.BLOCK
    starts, lengths = target.empty(n, np.int64), target.empty(n, np.uint32)
    places, words = target.empty(space, np.uint32), target.empty(space, np.uint64)
    mutual = target.empty(space, np.uint64) if graph.is_directed else None
    packed = (starts, lengths, places, words, mutual)
    phases.run("pack", kernels.pack_rows, n, *rows, ranks, order, target.zeros(8, np.int64), *packed, chunk=256)
    longest = 64 * int(lengths.max(initial=1))
    hubs = np.zeros((threads, min(n, kernels.HUBS) & ~63), np.int64)
    shared = target.zeros(n, np.int64)
    counters = (longest, target.zeros(8, np.int64), hubs, shared)
    phases.run("count", kernels.count_packed, n, *packed, *counters, chunk=_RANKS_AT_ONCE)
    links: Array = target.empty(n, np.int64)
    phases.run("gather", kernels.gather_counts, n, ranks, hubs, shared, links)
    return links

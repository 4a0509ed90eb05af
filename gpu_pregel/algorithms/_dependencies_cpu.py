"""Betweenness on the CPU: the dependencies of sources on all vertices, by Brandes's algorithm.

Few sources are searched one after the other, and the threads share their levels; many are divided into blocks, each
of which a thread searches. Both add the dependencies in an order that does not depend on the number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.algorithms._degree_order import order_by_out_degree
from gpu_pregel.algorithms._driver import AlgorithmRun
from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.superstep.phases import Phases
from gpu_pregel.kernels.algorithms import betweenness_cpu as large
from gpu_pregel.kernels.algorithms import path_counts_cpu as small
from gpu_pregel.kernels.algorithms import weighted_paths_cpu as weighted_kernels

Array = np.ndarray[Any, Any]

_SMALL_EDGES, _SMALL_LEVEL = 1 << 14, 1 << 12
"""Levels of at most this many edges, on the way back of this many vertices, take one thread less time than all."""
_CHUNK, _WORDS = 1 << 8, 1 << 8
"""Vertices of a level, and words of a bitmap, that a thread claims at a time."""
_MIN_RENUMBERED = 4
"""Sources for which it pays to renumber the vertices by degree."""
_MIN_BLOCKS, _MAX_BLOCKS = 8, 64
_AT_A_TIME = 16
"""Sources of each block that are searched in one launch: Ctrl-C is handled when a thread has finished a block."""
_BLOCK_MEMORY = 1 << 28
"""Bytes for the arrays of all blocks."""


def sum_dependencies(
    run: AlgorithmRun, graph: Graph, sources: Array, *, weighted: bool, extra: float, with_edges: bool
) -> tuple[Array, Array]:
    """Return the sum of the dependencies of the sources on each vertex and, if ``with_edges``, on each stored edge."""
    add = _add_weighted_dependencies if weighted else _add_dependencies
    return add(graph, sources, run.device, run.phases, extra=extra, with_edges=with_edges)


def _add_dependencies(
    graph: Graph, sources: Array, target: Device, phases: Phases, *, extra: float, with_edges: bool
) -> tuple[Array, Array]:
    n, m = graph.num_vertices, graph.num_stored_edges
    size = 49 * n + (8 * m if with_edges else 0)
    blocks = min(_MAX_BLOCKS, len(sources), _BLOCK_MEMORY // max(1, size))
    if blocks >= _MIN_BLOCKS:
        target.require(blocks * size, "betweenness centrality of blocks of sources")
        return _search_blocks(graph, sources, blocks, target, phases, extra, with_edges=with_edges)
    target.require(size, "betweenness centrality")
    worth = len(sources) >= _MIN_RENUMBERED and not graph.is_directed and not with_edges
    ordered = order_by_out_degree(graph, phases, target) if worth else None
    if ordered is None:
        search = _Search(graph._csr[:2], graph.csc[:2], target, phases, extra, with_edges=with_edges)
        for source in sources.tolist():
            search.run(source)
        return search.scores, search.edges
    search = _Search(ordered[1:], ordered[1:], target, phases, extra, with_edges=False)
    numbers = np.empty(n, np.int64)
    numbers[ordered.order] = np.arange(n)
    for source in numbers[sources].tolist():
        search.run(source)
    return search.scores[numbers], search.edges


def _search_blocks(
    graph: Graph, sources: Array, blocks: int, target: Device, phases: Phases, extra: float, *, with_edges: bool
) -> tuple[Array, Array]:
    n = graph.num_vertices
    paths, ratios, sums, scores = (np.zeros((blocks, n)) for _ in range(4))
    edges = np.zeros((blocks, graph.num_stored_edges if with_edges else 0))
    arrays = (
        np.zeros((blocks, (n + 63) // 64), np.uint64),
        np.empty((blocks, n), np.uint32),
        np.empty((blocks, n + 2), np.int64),
        np.empty((blocks, small.STATE), np.int64),
        *(paths, np.zeros((blocks, n), np.int32), ratios, sums, extra, scores, edges),
    )
    _launch_parts(small.search_blocks, (*graph._csr[:2], *graph.csc[:2]), sources, blocks, arrays, target, phases)
    return scores.sum(axis=0), edges.sum(axis=0)


def _launch_parts(
    kernel: Any, rows: Any, sources: Array, blocks: int, arrays: Any, target: Device, phases: Phases
) -> None:
    """Search from all sources, some of each block at a time."""
    with phases.measure("search all sources") as bar:
        for begin in range(0, len(sources), blocks * _AT_A_TIME):
            part = sources[begin : begin + blocks * _AT_A_TIME]
            target.launch(kernel, blocks, *rows, part, blocks, *arrays, chunk=1)
            bar.update(begin + len(part), len(sources))


def _add_weighted_dependencies(
    graph: Graph, sources: Array, target: Device, phases: Phases, *, extra: float, with_edges: bool
) -> tuple[Array, Array]:
    """Take the weights of the edges as their lengths, and search always by blocks of sources."""
    n, m = graph.num_vertices, graph.num_stored_edges
    size = 44 * n + (8 * m if with_edges else 0)
    blocks = max(1, min(_MAX_BLOCKS, len(sources), _BLOCK_MEMORY // max(1, size)))
    target.require(blocks * size, "betweenness centrality of blocks of sources")
    out, back = ((rows.indptr, rows.indices, np.asarray(rows.weights, np.float64)) for rows in (graph._csr, graph.csc))
    paths, dependencies, scores = (np.zeros((blocks, n)) for _ in range(3))
    edges = np.zeros((blocks, m if with_edges else 0))
    arrays = (
        *(np.empty((blocks, n), np.uint32) for _ in range(2)),
        np.full((blocks, n), np.inf),
        np.empty((blocks, n), np.int32),
        np.full((blocks, n), -1, np.int64),
        *(paths, dependencies, extra, scores, edges),
    )
    _launch_parts(weighted_kernels.search_blocks, (out, back), sources, blocks, arrays, target, phases)
    return scores.sum(axis=0), edges.sum(axis=0)


class _Search:
    """Searches from one source after the other; all arrays are described in ``path_counts_cpu``."""

    def __init__(self, out: Any, back: Any, target: Device, phases: Phases, extra: float, *, with_edges: bool) -> None:
        n = len(out[0]) - 1
        self._launch, self._phases, self._extra = target.launch, phases, extra
        self._out, self._in = out, back
        self._words = (n + 63) // 64
        self._seen, self._found = (np.zeros(self._words, np.uint64) for _ in range(2))
        self._queue, self._levels = np.empty(n, np.uint32), np.empty(n + 2, np.int64)
        self._state = np.zeros(small.STATE, np.int64)
        self._paths, self._ratios, self.scores = (np.zeros(n) for _ in range(3))
        self._sums, self._scales = np.empty(n), np.zeros(n, np.int32)
        self.edges = np.zeros(len(out[1]) if with_edges else 0)

    def run(self, source: int) -> None:
        """Search from a source and go back."""
        with self._phases.measure("search"):
            self._search(source)
        with self._phases.measure("return"):
            self._return()
        n = len(self._paths)
        self._phases.run("forget", large.forget, n, self._seen, self._paths, self._ratios, chunk=1 << 14)

    def _search(self, source: int) -> None:
        """Find the levels and count the paths."""
        queue, levels, state = self._queue, self._levels, self._state
        here = (self._seen, queue, levels, state, self._paths, self._scales)
        self._launch(small.begin_search, 1, self._out[0], self._in[1], source, *here)
        while True:
            self._launch(small.search_levels, 1, *self._out, *self._in, _SMALL_EDGES, *here, self._sums)
            depth = int(state[small.DEPTH])
            if state[small.IN_EDGES]:
                self._count(depth)
            elif levels[depth] == levels[depth + 1]:
                return
            else:
                self._advance(depth)

    def _advance(self, depth: int) -> None:
        """Find the level after a large one, by pulling if that reads fewer edges."""
        state, levels = self._state, self._levels
        pulls = 2 * state[small.OUT_EDGES] > state[small.UNSEEN]
        if pulls:
            found = (self._seen, self._found, self._paths, self._scales, self._sums)
            self._launch(large.pull, self._words, *self._in, bool(state[small.WIDE]), *found, chunk=_WORDS)
        else:
            begin, size = int(levels[depth]), int(levels[depth + 1] - levels[depth])
            self._launch(large.discover, size, *self._out, self._queue, begin, self._seen, self._found, chunk=_CHUNK)
        state[small.OUT_EDGES] = 0
        degrees = (self._out[0], self._in[0])
        self._launch(large.collect, self._words, *degrees, self._seen, self._found, self._queue, state, chunk=_WORDS)
        levels[depth + 2] = state[small.TAIL]
        state[small.DEPTH] = depth + 1
        state[small.UNSEEN] -= state[small.IN_EDGES]
        self._count(depth + 1, counted=bool(pulls))

    def _count(self, depth: int, *, counted: bool = False) -> None:
        """Settle the numbers of paths to a level; first compute them unless they have been ``counted``."""
        begin, size = int(self._levels[depth]), int(self._levels[depth + 1] - self._levels[depth])
        queue, state = self._queue, self._state
        if not counted:
            arrays = (queue, begin, self._paths, self._scales, self._sums)
            self._launch(large.count_paths, size, *self._in, bool(state[small.WIDE]), *arrays, chunk=_CHUNK)
        self._launch(large.settle_paths, size, queue, begin, self._paths, self._sums, state, chunk=4 * _CHUNK)
        if state[small.OVERFLOW] and not state[small.WIDE]:
            self._launch(large.widen_paths, int(state[small.TAIL]), queue, self._paths, self._scales)
            state[small.WIDE] = 1
        state[small.IN_EDGES] = 0

    def _return(self) -> None:
        """Go back from the last level to the source."""
        queue, levels, state = self._queue, self._levels, self._state
        dependencies = (self._ratios, self._sums)
        arrays = (self._paths, self._scales, *dependencies)
        results = (self._extra, self.scores)
        while True:
            self._launch(
                small.return_levels, 1, *self._out, _SMALL_LEVEL, queue, levels, state, *arrays, *results, self.edges
            )
            depth = int(state[small.DEPTH])
            if depth == 0:
                return
            begin, size = int(levels[depth]), int(levels[depth + 1] - levels[depth])
            wide = bool(state[small.WIDE])
            self._launch(large.depend, size, *self._out, wide, queue, begin, *arrays, self.edges, chunk=_CHUNK)
            settled = (self._paths, *dependencies, *results)
            self._launch(large.settle_ratios, size, queue, begin, *settled, chunk=4 * _CHUNK)
            state[small.DEPTH] = depth - 1

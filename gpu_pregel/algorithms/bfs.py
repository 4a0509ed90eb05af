"""Breadth-first search from one or several vertices.

Scott Beamer, Krste Asanović, David Patterson: Direction-Optimizing Breadth-First Search, SC 2012. While the frontier
has few edges, its vertices look for vertices not yet reached; when it has many, those look for one of the frontier.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_pregel.algorithms._driver import AlgorithmRun, documented
from gpu_pregel.algorithms._paths import PathResult, mask_unreached, source_numbers
from gpu_pregel.host.arguments import check_integer
from gpu_pregel.host.devices import DeviceName
from gpu_pregel.host.graphs.edge_arrays import to_host
from gpu_pregel.host.graphs.graph import GraphLike
from gpu_pregel.host.programs.program import VertexProgram

Array = np.ndarray[Any, Any]

_MAX_HOPS = (1 << 31) - 1
_ALPHA = 15
"""Pull if the frontier has more than 1 / ``_ALPHA`` of the edges not yet scanned, as in the paper."""
_SERIAL_EDGES = 1 << 14
"""Minimum number of edges worth starting other threads for."""
_SLOT_VERTICES = 1 << 8
"""Minimum number of vertices per thread of a frontier that is divided."""
_LEVEL_VERTICES = 4
"""Vertices of a frontier per level that slots go on alone. Near their borders, they reach vertices too late."""
_SLOT_EDGES = 1 << 17
"""Edges that a slot should scan before it waits for the others."""
_SLOT_SPACE = 1 << 20
_WORD_BITS = 64
_PUSH_EDGES = (1 << 10, 1 << 14)
_PULL_WORDS = (16, 256)
_CHUNKS_PER_THREAD = 8


@dataclass(frozen=True, eq=False, repr=False)
class Hops(PathResult):
    """The number of edges on a shortest path to each vertex.

    Attributes
    ----------
    sources : int64[k]
        The numbers of the vertices where the search began, in ascending order.
    max_hops : int or None
        The limit of the search.
    hops : int32[n]
        The number of edges from the nearest source, -1 for vertices that were not reached; in device memory. In tables,
        files and ``to_dict`` these have no value (null, None).
    parents : int32[n]
        The vertex before each one on a shortest path: the smallest one of the level before, itself for a source, -1 for
        vertices that were not reached; in device memory. int64 if the graph has 2**31 vertices or more.
    """

    max_hops: int | None
    hops: Any
    parents: Any

    value_name = "hops"

    @property
    def _device_values(self) -> Any:
        return self.hops

    @property
    def _predecessors(self) -> Array:
        return to_host(self.parents)

    def _to_ids(self, values: Array) -> Array:
        """Return numbers of edges, masked where there is no path."""
        return mask_unreached(values, -1)

    def _columns(self) -> dict[str, Array]:
        return {**super()._columns(), "parent": self._predecessor_ids()}

    def summary(self) -> dict[str, Any]:
        """Return the number of vertices reached and the largest number of hops."""
        hops = self._values
        return {"reached": int(np.count_nonzero(hops >= 0)), "max_hops": int(hops.max(initial=-1))}

    def describe(self) -> str:
        """Return a one-line summary."""
        found = self.summary()
        return f"{found['reached']:,} of {len(self):,} vertices reached in up to {found['max_hops']:,} hops"

    def __repr__(self) -> str:
        return f"<Hops: {self.describe()}>"


@documented
def bfs(
    graph: GraphLike,
    source: Any,
    *,
    max_hops: int | None = None,
    device: DeviceName = "auto",
    threads: int | None = None,
    progress: bool = False,
) -> Hops:
    """Find the number of edges on a shortest path from a source, or from the nearest of several, to each vertex.

    Parameters
    ----------
    {graph}
        Edges of a directed graph are followed in their direction; weights are ignored. The first search of a directed
        graph may have to derive its in-edges, which the graph keeps.
    source : id, or list, set or array of ids
    max_hops : int, optional
        Vertices with more hops count as not reached. Default: no limit.
    {options}

    Returns
    -------
    Hops
        With ``hops``, ``parents`` and ``path(target)``. Every run, device and number of threads gives the same.

    Raises
    ------
    ArgumentError
        No vertex has the id ``source``, or ``max_hops`` is negative.
    {errors}

    References
    ----------
    Scott Beamer, Krste Asanović, David Patterson: Direction-Optimizing Breadth-First Search, SC 2012.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> graph = gp.Graph.from_edgelist(["ann", "bob", "cid", "x"], ["bob", "cid", "dan", "y"])
    >>> found = gp.bfs(graph, "bob")
    >>> found.to_dict()
    {'ann': 1, 'bob': 0, 'cid': 1, 'dan': 2, 'x': None, 'y': None}
    >>> found.path("dan")
    ['bob', 'cid', 'dan']
    """
    run = AlgorithmRun("bfs", graph, device, threads, progress)
    sources = source_numbers(run.graph, source)
    limit = _MAX_HOPS if max_hops is None else check_integer("max_hops", max_hops, 0, _MAX_HOPS)
    hops, parents = run.execute(sources, limit)
    return Hops(run.graph, run.stats(), run.trace(), sources=sources, max_hops=max_hops, hops=hops, parents=parents)


@functools.cache
def _levels(dtype: type[np.signedinteger[Any]]) -> VertexProgram:
    """Return the program of a search from one source; ``dtype`` is that of the parents.

    A vertex takes one message: the first that reaches it, from the smallest vertex of the level before its own.
    """
    return VertexProgram(
        value={"hops": np.int32, "parents": dtype},
        parameters={"source": np.int64},
        init=lambda ctx: (0, ctx.vertex) if ctx.vertex == ctx.parameters.source else (-1, -1),
        initially_active=lambda ctx: ctx.vertex == ctx.parameters.source,
        message=lambda value, ctx: ctx.vertex,  # noqa: ARG005
        message_type=dtype,
        combine="min",
        ascending=True,
        receives=lambda value, ctx: value.hops < 0,  # noqa: ARG005
        apply=lambda value, incoming, ctx: (ctx.superstep, incoming),  # noqa: ARG005
    )


def search_by_program(run: AlgorithmRun, sources: Array, limit: int) -> Any:
    """On the other devices, find hops and parents level by level."""
    n = run.graph.num_vertices
    dtype = np.int32 if n <= _MAX_HOPS else np.int64
    start: dict[str, Any] = {"parameters": {"source": int(sources[0])}}
    if len(sources) > 1:
        hops, parents = np.full(n, -1, np.int32), np.full(n, -1, dtype)
        hops[sources], parents[sources] = 0, sources
        start.update(initial=(hops, parents), frontier=sources)
    limits: dict[str, Any] = {"max_supersteps": limit + 1, "on_limit": "return"}
    return run.program(_levels(dtype), phase="search levels", **start, **limits).values


def search_by_queue(run: AlgorithmRun, sources: Array, limit: int) -> tuple[Array, Array]:
    """On the CPU, find hops and parents by kernels that share a queue."""
    return _QueueSearch(run).run(sources, limit)


class _QueueSearch:
    """A search by kernels: levels with few edges in one thread, others by a push or a pull of all threads."""

    def __init__(self, run: AlgorithmRun) -> None:
        self._graph, self._target, self._phases = run.graph, run.device, run.phases
        target, self._kernels = self._target, self._target.kernels("bfs")
        n = run.graph.num_vertices
        self._words = -(-n // _WORD_BITS)
        self._hops, self._parents = target.empty(n, np.int32), target.empty(n, np.uint32)
        self._queue = target.empty(n, np.uint32)
        self._state = target.zeros(self._kernels.STATE_LENGTH, np.int64)
        self._slots = target.threads or 1
        self._without_parents = 0
        """The first level whose parents have been left out; 0 if none has."""

    def run(self, sources: Array, limit: int) -> tuple[Array, Array]:
        """Return the hops and the parents."""
        graph, kernels, state = self._graph, self._kernels, self._state
        n, m = graph.num_vertices, graph.num_stored_edges
        rows, found = (graph.indptr, graph.indices), (self._hops, self._parents)
        self._phases.run("reset", kernels.reset, n, *found)
        self._hops[sources], self._parents[sources] = 0, sources
        self._queue[: len(sources)] = sources
        state[kernels.END] = len(sources)
        while True:
            wide = n + 1 if self._slots == 1 or graph.is_directed else _SLOT_VERTICES * self._slots
            arguments = (*rows, _SERIAL_EDGES, wide, limit, *found, self._queue, state)
            self._phases.run("search levels", kernels.search_levels, 1, *arguments)
            level, begin, end, edges, scanned = state[: kernels.SCANNED + 1].tolist()
            if begin == end or level == limit:
                break
            frontier = self._queue[begin:end]
            if edges * _ALPHA > m - scanned and edges > self._words:
                self._pull_levels(level, limit)
            elif edges <= _SERIAL_EDGES and wide <= end - begin <= _SLOT_SPACE // 4:
                self._search_slots(level, frontier.copy(), limit)
            else:
                self._find_parents()
                self._push(level + 1, frontier)
        self._find_parents()
        parents = self._parents.view(np.int32) if n <= _MAX_HOPS else _widen(self._parents)
        return self._hops, parents

    def _search_slots(self, level: int, frontier: Array, limit: int) -> None:
        """Search as long as the frontier can be divided, but is not as large as pulls need; leave out the parents."""
        graph, kernels, state, slots = self._graph, self._kernels, self._state, self._slots
        n, m = graph.num_vertices, graph.num_stored_edges
        queues = self._target.empty(slots * _SLOT_SPACE, np.uint32)
        stops = self._target.zeros(slots * kernels.STOP_LENGTH, np.int64)
        by_slot = stops.reshape(slots, -1)
        rows = (graph.indptr, graph.indices)
        self._without_parents = self._without_parents or level + 1
        state[kernels.BEGIN] = state[kernels.END] = 0
        while _SLOT_VERTICES * slots <= len(frontier) <= _SLOT_SPACE // 4 and level < limit:
            levels = min(len(frontier) // _LEVEL_VERTICES, _SLOT_EDGES * slots * n // (len(frontier) * m) + 1)
            last = min(limit, level + levels)
            arguments = (*rows, level, last, frontier, self._hops, queues, stops)
            self._phases.run("search slots", kernels.search_slots, slots, *arguments, chunk=1)
            state[kernels.SCANNED] += by_slot[:, 3].sum()
            level = int(by_slot[:, 2].min())
            if level < last:
                self._phases.run("truncate", kernels.truncate, n, level, self._hops, self._queue, state)
                break
            frontier = np.concatenate([queues[begin:end] for begin, end in by_slot[:, :2].tolist()])
        else:
            frontier = frontier[self._hops[frontier] == level]
            self._queue[: len(frontier)] = frontier
            state[kernels.END] = len(frontier)
        state[kernels.LEVEL] = level

    def _find_parents(self) -> None:
        """Set the parents that were left out; the graph is undirected."""
        graph, kernels = self._graph, self._kernels
        if self._without_parents:
            levels = (self._without_parents, int(self._state[kernels.LEVEL]))
            arguments = (graph.indptr, graph.indices, *levels, self._hops, self._parents)
            self._phases.run("find parents", kernels.find_parents, graph.num_vertices, *arguments)
            self._without_parents = 0

    def _push(self, level: int, frontier: Array) -> None:
        """Reach one level from the frontier, the last part of the queue."""
        graph, kernels, state = self._graph, self._kernels, self._state
        ends = self._target.empty(len(frontier), np.int64)
        self._phases.run("count edges", kernels.count_edges, len(frontier), graph.indptr, frontier, ends)
        np.cumsum(ends, out=ends)
        edges = int(ends[-1])
        state[kernels.LEVEL], state[kernels.BEGIN] = level, state[kernels.END]
        state[kernels.SCANNED] += edges
        arguments = (graph.indptr, graph.indices, level, frontier, ends, self._hops, self._parents, self._queue, state)
        self._phases.run("push", kernels.push, edges, *arguments, chunk=self._chunk(edges, _PUSH_EDGES))

    def _pull_levels(self, level: int, limit: int) -> None:
        """Reach level after level until the frontier has few edges again, and make it the whole queue."""
        graph, kernels, state, words = self._graph, self._kernels, self._state, self._words
        n, m = graph.num_vertices, graph.num_stored_edges
        edges = graph.csc
        visited, active, reached = (self._target.empty(words, np.uint64) for _ in range(3))
        chunk = self._chunk(words, _PULL_WORDS)
        self._phases.run("make bitmaps", kernels.make_bitmaps, words, level, self._hops, visited, active, chunk=chunk)
        arrays = (self._hops, self._parents, visited)
        while True:
            level += 1
            figures = np.zeros(2, np.int64)
            rows = (edges.indptr, edges.indices, level, active)
            self._phases.run("pull", kernels.pull, words, *rows, *arrays, reached, figures, chunk=chunk)
            active, reached = reached, active
            found, left = figures.tolist()
            if left == 0 or found == 0 or level == limit or found * m < n * (words / 4 + left):
                break
        state[kernels.LEVEL], state[kernels.BEGIN], state[kernels.END] = level, 0, 0
        state[kernels.SCANNED] = m - left * m // n
        if left > 0 and found > 0:
            self._phases.run("collect", kernels.collect, words, active, self._queue, state, chunk=chunk)

    def _chunk(self, size: int, limits: tuple[int, int]) -> int:
        share = -(-size // (_CHUNKS_PER_THREAD * (self._target.threads or 1)))
        return max(limits[0], min(limits[1], share))


def _widen(parents: Array) -> Array:
    """Return uint32 parents as int64, with -1 for none."""
    wide: Array = parents.astype(np.int64)
    wide[parents == np.iinfo(np.uint32).max] = -1
    return wide

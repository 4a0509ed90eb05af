"""Strongly connected components: the largest sets of vertices of which each reaches every other.

Lisa Fleischer, Bruce Hendrickson, Ali Pinar: On identifying strongly connected components in parallel, IPDPS 2000
workshops. The steps are those of George Slota, Sivasankaran Rajamanickam, Kamesh Madduri: BFS and coloring-based
parallel algorithms for strongly connected components and related problems (Multistep), IPDPS 2014. The serial search is
by Robert Tarjan: Depth-first search and linear graph algorithms, SIAM Journal on Computing 1(2), 1972.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_pregel.algorithms._driver import AlgorithmRun, documented
from gpu_pregel.algorithms.connected_components import Components
from gpu_pregel.host.devices import DeviceName
from gpu_pregel.host.graphs.graph import Graph, GraphLike
from gpu_pregel.host.superstep.advance import Advance
from gpu_pregel.host.traverse.arrays import arange
from gpu_pregel.host.traverse.operators import process_edges, process_vertices
from gpu_pregel.kernels.library import atomics

Array = np.ndarray[Any, Any]

_SERIAL_EDGES = 1 << 15
"""On graphs of at most this many edges, the serial search takes less time than the parallel steps."""
_NARROW = 1 << 10
"""A level of at most this many vertices is processed on one thread, which goes on with the next one."""
_MANY, _EDGE_SHARE = 32, 20
"""Pull if the new vertices are more than the first fraction of all, or have more than the second one of the edges."""
_TRIMS = 2
_NONE = -1


@dataclass(frozen=True, eq=False, repr=False)
class StrongComponents(Components):
    """The strongly connected components of a graph; see :class:`Components` for what it offers.

    Attributes
    ----------
    labels : uint32[n]
        The smallest vertex of each vertex's component, in device memory; ``to_numpy()`` copies it to the host.
    """

    def condensation(self) -> Graph:
        """Return the graph of the components, which has no cycle: its ids are those of their smallest vertices.

        It has one edge from a component to another if the graph has any, and no weights.

        Examples
        --------
        >>> import gpu_pregel as gp
        >>> graph = gp.Graph.from_edgelist([0, 1, 1, 2, 3], [1, 0, 2, 3, 2], directed=True)
        >>> condensed = gp.strongly_connected_components(graph).condensation()
        >>> condensed.ids.tolist(), condensed.to_pandas().values.tolist()
        ([0, 2], [[0, 2]])
        """
        ranks = self.relabel().astype(np.int64)
        sources = np.repeat(ranks, self.graph.out_degrees)
        targets = ranks[self.graph.indices]
        between = sources != targets
        built = Graph.from_edgelist(
            sources[between], targets[between], num_vertices=self.count, directed=True, combine="first"
        )
        if self.graph.ids is None and self.count == self.graph.num_vertices:
            return built
        return Graph(built.to_csr(), directed=True, ids=self.graph.to_ids(np.flatnonzero(self._roots)))

    def __repr__(self) -> str:
        return f"<StrongComponents: {self.count:,} of {len(self.labels):,} vertices>"


@documented
def strongly_connected_components(
    graph: GraphLike, *, device: DeviceName = "auto", threads: int | None = None, progress: bool = False
) -> StrongComponents:
    """Find the strongly connected components of a graph; the connected components if it is undirected.

    Parameters
    ----------
    {graph}
    {options}

    Returns
    -------
    StrongComponents
        With ``labels``, ``count``, ``sizes()``, ``relabel()`` and ``condensation()``. Every run, device and number of
        threads gives the same labels.

    Raises
    ------
    {errors}

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> graph = gp.Graph.from_edgelist([0, 1, 2, 2], [1, 2, 1, 3], directed=True)
    >>> gp.strongly_connected_components(graph).labels.tolist()
    [0, 1, 1, 3]
    """
    run = AlgorithmRun("strongly_connected_components", graph, device, threads, progress)
    labels = run.execute()
    return StrongComponents(run.graph, run.stats(), run.trace(), labels=labels)


def search_around_pivot(run: AlgorithmRun) -> Array:
    """On the CPU, find the largest component by two searches and trim the rest, then search depth-first."""
    graph, target = run.graph, run.device
    kernels, n = target.kernels("strong_components"), graph.num_vertices
    labels: Array = target.empty(n, np.uint32)
    if graph.num_stored_edges <= _SERIAL_EDGES:
        states, rest = target.zeros(n, np.uint8), np.arange(n, dtype=np.uint32)
    else:
        states, rest = _around_pivot(run, labels)
    low = target.zeros(n, np.uint32)
    run.phases.run("search", kernels.search, 1, graph.indptr, graph.indices, rest, states, labels, low)
    return labels


def _around_pivot(run: AlgorithmRun, labels: Array) -> tuple[Array, Array]:
    """Label the component of a vertex of large degree and trim the rest; return the states and the vertices left."""
    graph, target, phases = run.graph, run.device, run.phases
    kernels, n, csc = target.kernels("strong_components"), graph.num_vertices, graph.csc
    out_edges, in_edges = (graph.indptr, graph.indices), (csc.indptr, csc.indices)
    states, queues = target.empty(n, np.uint8), target.empty(2 * n, np.uint32).reshape(2, n)
    pivot, tail = target.zeros(1, np.int64), target.zeros(1, np.int64)
    phases.run("initialise", kernels.initialise, n, graph.indptr, csc.indptr, states, labels, pivot)
    if not pivot[0]:
        return states, queues[0, :0]
    start = int(pivot[0]) & 0xFFFFFFFF
    states[start], queues[:, 0] = kernels.PIVOT, start
    ends = np.array([[0, 1], [0, 1]])
    while (ends[:, 0] < ends[:, 1]).any():
        rows = *out_edges, *in_edges, _NARROW
        phases.run("push narrow", kernels.push_narrow, 2, *rows, states, queues, ends, chunk=1)
        for queue, end, bit, edges, reverse in (
            (queues[0], ends[0], kernels.FORWARD, out_edges, in_edges),
            (queues[1], ends[1], kernels.BACKWARD, in_edges, out_edges),
        ):
            while end[1] - end[0] > _NARROW:
                level, tail[0] = queue[end[0] : end[1]], end[1]
                if _is_dense(graph, edges[0], level):
                    phases.run("pull", kernels.pull, n, *reverse, bit, states, queue, tail)
                else:
                    chunk = max(16, min(256, len(level) // 64))
                    phases.run("push", kernels.push, len(level), *edges, bit, level, states, queue, tail, chunk=chunk)
                end[:] = end[1], tail[0]
    smallest, rest = int((states == kernels.PIVOT).argmax()), queues[0]
    for _ in range(_TRIMS):
        tail[0] = 0
        phases.run("trim", kernels.trim, n, *out_edges, *in_edges, smallest, states, labels, rest, tail)
        if not tail[0]:
            break
    return states, rest[: int(tail[0])]


def _is_dense(graph: Graph, indptr: Array, new: Array) -> bool:
    """Return whether to pull rather than to push from new vertices."""
    if len(new) > graph.num_vertices // _MANY:
        return True
    return int((indptr[new + 1] - indptr[new]).sum()) > graph.num_stored_edges // _EDGE_SHARE


def color_by_operators(run: AlgorithmRun) -> Array:
    """On the other devices, repeat: trim, and propagate the smallest number forwards.

    The vertices that it reaches backwards are a component.
    """
    n, live = run.graph.num_vertices, run.frontier()
    indptr, indices, _ = live.csr()
    in_indptr, in_indices, _ = live.csc()
    labels = live.full(_NONE, np.int64)
    colors = arange(live)
    rows = indptr, indices, in_indptr, in_indices, labels, colors
    # Each round finds at least the component of the smallest vertex that is left.
    components = Advance("finding components", live.device, n + 1)
    while live:
        before = n + 1
        while len(live) < before:
            before = len(live)
            live = process_vertices(_has_both, live, rows, returns="frontier")
        components.shrink(len(live))
        passes, members = (Advance(work, live.device, len(live)) for work in ("passing colors on", "adding vertices"))
        front = live
        while front:
            passes.take()
            front = process_edges(_lower, front, (colors, labels), receives=_is_live)
        front = process_vertices(_is_root, live, (colors, labels), returns="frontier")
        while front:
            members.take(len(front))
            front = process_edges(_join, front, (colors, labels), receives=_is_live, transpose=True)
    return live.download(labels).astype(np.uint32)


def _has_both(v: Any, indptr: Any, indices: Any, in_indptr: Any, in_indices: Any, labels: Any, colors: Any) -> bool:
    """Return whether v has a live neighbour on both sides, and give it its own colour; otherwise it is a component."""
    if atomics.load(labels, v) >= 0:
        return False
    after = False
    for e in range(indptr[v], indptr[v + 1]):
        if indices[e] != v and atomics.load(labels, indices[e]) < 0:
            after = True
            break
    before = False
    for e in range(in_indptr[v], in_indptr[v + 1]):
        if in_indices[e] != v and atomics.load(labels, in_indices[e]) < 0:
            before = True
            break
    if after and before:
        colors[v] = v
    else:
        atomics.store(labels, v, v)
    return after and before


def _lower(u: Any, v: Any, weight: Any, colors: Any, labels: Any) -> Any:
    """Pass the colour of u on to v if it is smaller."""
    color = atomics.load(colors, u)
    return atomics.min(colors, v, color) > color


def _is_live(v: Any, colors: Any, labels: Any) -> Any:
    return atomics.load(labels, v) < 0


def _is_root(v: Any, colors: Any, labels: Any) -> bool:
    """Return whether v has its own colour: it is the smallest vertex of its component."""
    if colors[v] == v:
        atomics.store(labels, v, v)
        return True
    return False


def _join(u: Any, v: Any, weight: Any, colors: Any, labels: Any) -> Any:
    """Add v, which reaches u, to the component of u if both have its colour."""
    return colors[u] == colors[v] and atomics.compare_and_swap(labels, v, _NONE, colors[v])

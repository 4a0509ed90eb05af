"""Topological order and levels of a directed acyclic graph.

Arthur B. Kahn: Topological sorting of large networks, Communications of the ACM 5(11), 1962.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_pregel.algorithms._driver import AlgorithmRun, documented
from gpu_pregel.errors import CycleError
from gpu_pregel.host.devices import DeviceName
from gpu_pregel.host.graphs.graph import Graph, GraphLike
from gpu_pregel.host.graphs.results import VertexResult
from gpu_pregel.host.superstep.advance import Advance
from gpu_pregel.host.traverse.arrays import argsort
from gpu_pregel.host.traverse.operators import process_edges, process_vertices
from gpu_pregel.kernels.library import atomics

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False, repr=False)
class TopologicalOrder(VertexResult):
    """An order of the vertices in which every edge leads from an earlier to a later one.

    Attributes
    ----------
    levels : int64[n]
        The number of edges of the longest path to each vertex.
    order : int64[n]
        The vertex numbers, by level and within a level ascending.
    """

    levels: Array
    order: Array

    value_name = "level"

    @property
    def _values(self) -> Array:
        return self.levels

    @property
    def depth(self) -> int:
        """The number of levels."""
        return int(self.levels.max(initial=-1)) + 1

    def ids(self) -> Array:
        """Return the user's ids in topological order, [n]."""
        return self.graph.to_ids(self.order)

    def summary(self) -> dict[str, Any]:
        """Return the number of levels and the largest number of vertices on one."""
        return {"levels": self.depth, "widest": int(np.bincount(self.levels, minlength=1).max())}

    def describe(self) -> str:
        """Return a one-line summary."""
        return f"{self.depth:,} levels, the widest of {self.summary()['widest']:,} vertices"


@documented
def topological_order(
    graph: GraphLike, *, device: DeviceName = "auto", threads: int | None = None, progress: bool = False
) -> TopologicalOrder:
    """Order the vertices of a directed acyclic graph so that every edge leads from an earlier to a later one.

    Parameters
    ----------
    {graph}
    {options}

    Returns
    -------
    TopologicalOrder
        Vertices are ordered by level, the number of edges of the longest path to them, then by number. Every run and
        device gives the same order.

    Raises
    ------
    CycleError
        The graph has a cycle, which is the error's ``cycle``.
    GraphError
        The graph is undirected.
    {errors}

    Notes
    -----
    On the CPU one thread sorts.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> tasks = gp.Graph.from_edgelist(["buy", "cook", "buy"], ["cook", "eat", "eat"], directed=True)
    >>> found = gp.topological_order(tasks)
    >>> found.ids().tolist(), found.to_dict()
    (['buy', 'cook', 'eat'], {'buy': 0, 'cook': 1, 'eat': 2})
    """
    run = AlgorithmRun("topological_order", graph, device, threads, progress)
    waiting, levels, order = run.execute()
    if levels.min(initial=0) < 0:
        raise CycleError(run.graph.to_ids(_find_cycle(run.graph, waiting)).tolist())
    return TopologicalOrder(run.graph, run.stats(), run.trace(), levels=levels, order=order)


def sort(run: AlgorithmRun) -> tuple[Array, Array, Array]:
    """On the CPU, return the number of in-edges left of each vertex, the levels and the order, by one thread."""
    n = run.graph.num_vertices
    waiting, levels, order = np.zeros((3, n), np.int64)
    sort_topologically = run.device.kernels("orders").sort_topologically
    rows = run.graph.indptr, run.graph.indices
    run.phases.run("sort", sort_topologically, min(n, 1), *rows, waiting, levels, order)
    return waiting, levels, order


def _count(u: int, v: int, weight: float, waiting: Any) -> None:
    atomics.add(waiting, v, 1)


def _start(v: int, waiting: Any, levels: Any) -> bool:
    """Return whether v has no in-edges, and thus is on the first level."""
    if waiting[v] > 0:
        return False
    levels[v] = 0
    return True


def _remove(u: int, v: int, weight: float, waiting: Any, levels: Any, level: int) -> bool:
    """Remove an edge; true for the last one into v, whose level is known then."""
    if atomics.add(waiting, v, -1) != 1:
        return False
    atomics.store(levels, v, level)
    return True


def remove_edges(run: AlgorithmRun) -> tuple[Array, Array, Array]:
    """On the other devices, remove the edges of vertices without in-edges, level by level."""
    graph, frontier = run.graph, run.frontier()
    waiting, found = frontier.full(0, np.int64), frontier.full(-1, np.int64)
    process_edges(_count, frontier, [waiting], returns=None)
    frontier = process_vertices(_start, frontier, [waiting, found], returns="frontier")
    level = 0
    removed = Advance("ordering vertices", run.device, graph.num_vertices)
    while frontier:
        removed.take(len(frontier))
        level += 1
        frontier = process_edges(_remove, frontier, [waiting, found, level])
    levels = frontier.download(found)
    return frontier.download(waiting), levels, frontier.download(argsort(found))


def _find_cycle(graph: Graph, waiting: Array) -> Array:
    """Return a cycle, from its smallest vertex: each vertex that still waits has a predecessor that waits, too."""
    csc = graph.csc
    v = int((waiting > 0).argmax())
    places: dict[int, int] = {}
    path: list[int] = []
    while v not in places:
        places[v] = len(path)
        path.append(v)
        row = csc.indices[csc.indptr[v] : csc.indptr[v + 1]]
        v = int(row[(waiting[row] > 0).argmax()])
    cycle = np.array(path[places[v] :][::-1], np.int64)
    return np.roll(cycle, -int(cycle.argmin()))

"""Topological order and levels of a directed acyclic graph.

Arthur B. Kahn: Topological sorting of large networks, Communications of the ACM 5(11), 1962.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_pregel.algorithms._arguments import check_directed
from gpu_pregel.algorithms._devices import chooses_device
from gpu_pregel.errors import CycleError
from gpu_pregel.host.devices import DeviceName, get_device
from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.graphs.graph import Graph, GraphLike, as_graph
from gpu_pregel.host.graphs.results import VertexResult
from gpu_pregel.host.superstep.advance import Advance
from gpu_pregel.host.superstep.phases import Phases
from gpu_pregel.host.traverse.arrays import argsort
from gpu_pregel.host.traverse.frontier import Frontier
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


@chooses_device
def topological_order(
    graph: GraphLike, *, device: DeviceName = "auto", threads: int | None = None, progress: bool = False
) -> TopologicalOrder:
    """Order the vertices of a directed acyclic graph so that every edge leads from an earlier to a later one.

    Parameters
    ----------
    graph : Graph, NetworkX graph or SciPy sparse matrix
    device : {"auto", "cpu", "cuda", "cuda:N", "emulated", "emulated:SEED", "python"}
    threads : int, optional
        Number of CPU threads. Default: the processors available to this process. The CPU uses one.
    progress : bool, default False
        Show a progress bar on stderr.

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
    ArgumentTypeError
        ``graph`` is not a graph, or an argument has the wrong type.
    DeviceError
        The device is unknown or cannot be used.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> tasks = gp.Graph.from_edgelist(["buy", "cook", "buy"], ["cook", "eat", "eat"], directed=True)
    >>> found = gp.topological_order(tasks)
    >>> found.ids().tolist(), found.to_dict()
    (['buy', 'cook', 'eat'], {'buy': 0, 'cook': 1, 'eat': 2})
    """
    graph = as_graph(graph)
    check_directed(graph, "topological_order")
    target = get_device(device, threads=threads)
    if target.name == "cpu":
        waiting, levels, order, stats, trace = _on_cpu(graph, target, progress)
    else:
        waiting, levels, order, stats, trace = _by_operators(graph, target, progress)
    if levels.min(initial=0) < 0:
        raise CycleError(graph.to_ids(_find_cycle(graph, waiting)).tolist())
    return TopologicalOrder(graph=graph, stats=stats, trace=trace, levels=levels, order=order)


def _on_cpu(graph: Graph, target: Device, progress: bool) -> tuple[Any, ...]:
    n = graph.num_vertices
    waiting, levels, order = np.zeros((3, n), np.int64)
    phases = Phases(target, shown=progress)
    sort = target.kernels("orders").sort_topologically
    phases.run("sort", sort, min(n, 1), graph.indptr, graph.indices, waiting, levels, order)
    return waiting, levels, order, phases.stats(), phases.trace()


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


def _by_operators(graph: Graph, target: Device, progress: bool) -> tuple[Any, ...]:
    frontier = Frontier(graph, device=target.name, progress=progress)
    waiting, found = frontier.full(0, np.int64), frontier.full(-1, np.int64)
    process_edges(_count, frontier, [waiting], returns=None)
    frontier = process_vertices(_start, frontier, [waiting, found], returns="frontier")
    level = 0
    removed = Advance("ordering vertices", target, graph.num_vertices)
    while frontier:
        removed.take(len(frontier))
        level += 1
        frontier = process_edges(_remove, frontier, [waiting, found, level])
    levels = frontier.download(found)
    return frontier.download(waiting), levels, frontier.download(argsort(found)), frontier.stats(), frontier.trace()


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

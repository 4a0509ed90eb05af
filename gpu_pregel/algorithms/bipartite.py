"""Whether a graph is bipartite: its two sides, or an odd cycle.

A component is bipartite if its vertices, each split in one copy per side, form two components: the components of this
double cover are found as in :func:`gpu_pregel.connected_components`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_pregel.algorithms.connected_components import connected_components
from gpu_pregel.errors import GraphError
from gpu_pregel.host.devices import DeviceName
from gpu_pregel.host.devices.cpu import CpuDevice
from gpu_pregel.host.graphs.csr import CSR
from gpu_pregel.host.graphs.graph import Graph, GraphLike, as_graph
from gpu_pregel.host.graphs.results import VertexResult

Array = np.ndarray[Any, Any]

_MOST_VERTICES = (1 << 31) - 1


@dataclass(frozen=True, repr=False)
class Bipartition(VertexResult):
    """The sides of a bipartite graph, or an odd cycle.

    Attributes
    ----------
    sides : int8[n]
        0 or 1; 0 for the first vertex of each component. In a component that is not bipartite, -1.
    cycle : int64[k] or None
        The vertex numbers of an odd cycle, in order, along edges in either direction; None if the graph is bipartite.
    """

    sides: Array
    cycle: Array | None

    value_name = "side"

    @property
    def _values(self) -> Array:
        return self.sides

    def __bool__(self) -> bool:
        """Return whether the graph is bipartite."""
        return self.cycle is None

    def odd_cycle(self) -> list[Any] | None:
        """Return the user's ids of the vertices of an odd cycle, or None if the graph is bipartite."""
        return None if self.cycle is None else self.graph.to_ids(self.cycle).tolist()

    def summary(self) -> dict[str, Any]:
        """Return whether the graph is bipartite, and the sizes of the sides or the length of the odd cycle."""
        if self.cycle is not None:
            return {"bipartite": False, "odd_cycle": len(self.cycle)}
        return {"bipartite": True, "sides": np.bincount(self.sides, minlength=2).tolist()}

    def describe(self) -> str:
        """Return a one-line summary."""
        if self.cycle is not None:
            return f"not bipartite: a cycle of {len(self.cycle):,} vertices"
        first, second = self.summary()["sides"]
        return f"bipartite, {first:,} and {second:,} vertices"


def bipartite(
    graph: GraphLike, *, device: DeviceName = "auto", threads: int | None = None, progress: bool = False
) -> Bipartition:
    """Divide the vertices into two sides so that every edge joins both, or find an odd cycle.

    Parameters
    ----------
    graph : Graph, NetworkX graph or SciPy sparse matrix
        Directions are ignored.
    device : {"auto", "cpu", "cuda", "cuda:N", "emulated", "emulated:SEED"}
    threads : int, optional
        Number of CPU threads. Default: the processors available to this process.
    progress : bool, default False
        Show a progress bar on stderr.

    Returns
    -------
    Bipartition
        True if the graph is bipartite. Every run, device and number of threads gives the same sides and cycle.

    Raises
    ------
    GraphError
        The graph has 2^31 vertices or more.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> square = gp.bipartite(gp.Graph.from_edgelist([0, 1, 2, 3], [1, 2, 3, 0]))
    >>> bool(square), square.to_dict()
    (True, {0: 0, 1: 1, 2: 0, 3: 1})
    >>> gp.bipartite(gp.Graph.from_edgelist(["a", "b", "c"], ["b", "c", "a"])).odd_cycle()
    ['a', 'b', 'c']
    """
    graph = as_graph(graph)
    n = graph.num_vertices
    if n > _MOST_VERTICES:
        raise GraphError(f"bipartite needs a graph of at most {_MOST_VERTICES:,} vertices, not {n:,}: split it first")
    found = connected_components(_double_cover(graph), device=device, threads=threads, progress=progress)
    labels = found.to_numpy()
    zero, one = labels[:n], labels[n:]
    sides = np.where(zero == one, -1, zero > one).astype(np.int8)
    cycle = _odd_cycle(graph, int(zero[sides < 0].min())) if (sides < 0).any() else None
    return Bipartition(graph=graph, stats=found.stats, trace=found.trace, sides=sides, cycle=cycle)


def _double_cover(graph: Graph) -> Graph:
    """Return the graph with a copy of each vertex on either side, v and n + v, and of each edge both ways across."""
    n, m = graph.num_vertices, graph.num_edges
    indptr = np.concatenate([graph.indptr, graph.indptr[1:] + m])
    indices = np.concatenate([graph.indices + np.uint32(n), graph.indices])
    return Graph(CSR(indptr, indices, None), directed=graph.is_directed)


def _odd_cycle(graph: Graph, root: int) -> Array:
    """Return an odd cycle of the component of ``root``: an edge between equal distances, and the paths to its ends."""
    parents, edge = np.full(graph.num_vertices, -1), np.full(2, -1)
    out, back = graph.to_csr(), graph.csc
    cpu = CpuDevice(1)
    search = cpu.kernels("orders").search_odd_edge
    cpu.launch(search, 1, out.indptr, out.indices, back.indptr, back.indices, root, parents, edge)
    paths = []
    u, v = edge.tolist()
    while u != v:
        paths.append((u, v))
        u, v = int(parents[u]), int(parents[v])
    return np.array([u, *(u for u, _ in reversed(paths)), *(v for _, v in paths)], np.int64)

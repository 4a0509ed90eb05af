"""Whether a graph is bipartite: its two sides, or an odd cycle.

A search from the first vertex of each component puts vertices at even and at odd distances on different sides. A
component is bipartite if no edge joins vertices of one side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_pregel.algorithms._driver import AlgorithmRun, documented, host_device
from gpu_pregel.algorithms._searches import Searches
from gpu_pregel.host.devices import DeviceName
from gpu_pregel.host.graphs.graph import Graph, GraphLike
from gpu_pregel.host.graphs.results import VertexResult
from gpu_pregel.host.traverse.operators import process_edges

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False, repr=False)
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


@documented
def bipartite(
    graph: GraphLike, *, device: DeviceName = "auto", threads: int | None = None, progress: bool = False
) -> Bipartition:
    """Divide the vertices into two sides so that every edge joins both, or find an odd cycle.

    Parameters
    ----------
    {graph}
        Directions are ignored.
    {options}

    Returns
    -------
    Bipartition
        True if the graph is bipartite. Every run, device and number of threads gives the same sides and cycle.

    Raises
    ------
    {errors}

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> square = gp.bipartite(gp.Graph.from_edgelist([0, 1, 2, 3], [1, 2, 3, 0]))
    >>> bool(square), square.to_dict()
    (True, {0: 0, 1: 1, 2: 0, 3: 1})
    >>> gp.bipartite(gp.Graph.from_edgelist(["a", "b", "c"], ["b", "c", "a"])).odd_cycle()
    ['a', 'b', 'c']
    """
    run = AlgorithmRun("bipartite", graph, device, threads, progress)
    graph = run.graph
    plain = graph.to_undirected(combine="min") if graph.is_directed else graph
    searches: Searches = run.execute(plain)
    labels = searches.components()
    starts = np.flatnonzero((labels == np.arange(len(labels))) & (plain.out_degrees > 0))
    hops = searches.hops(starts) if len(starts) else np.zeros(len(labels), np.int32)
    sides = np.where(hops < 0, 0, hops & 1)
    everyone = searches.everyone
    found = process_edges(_is_inside, everyone, [everyone.upload(sides)])
    is_odd = np.zeros(len(labels), bool)
    is_odd[labels[found.vertices()]] = True
    return Bipartition(
        *(graph, run.stats(), run.trace()),
        sides=np.where(is_odd[labels], -1, sides).astype(np.int8),
        cycle=_odd_cycle(plain, int(is_odd.argmax())) if is_odd.any() else None,
    )


def _is_inside(u: int, v: int, weight: float, sides: Any) -> bool:
    """Whether an edge joins vertices of one side."""
    return bool(sides[u] == sides[v])


def _odd_cycle(graph: Graph, root: int) -> Array:
    """Return an odd cycle of the component of ``root``: an edge between equal distances, and the paths to its ends."""
    parents, edge = np.full(graph.num_vertices, -1), np.full(2, -1)
    host = host_device(1)
    host.launch(host.kernels("orders").search_odd_edge, 1, graph.indptr, graph.indices, root, parents, edge)
    paths = []
    u, v = edge.tolist()
    while u != v:
        paths.append((u, v))
        u, v = int(parents[u]), int(parents[v])
    return np.array([u, *(u for u, _ in reversed(paths)), *(v for _, v in paths)], np.int64)

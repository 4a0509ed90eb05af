"""The neighbourhood of vertices: what they reach over at most k edges, by breadth-first search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_pregel.algorithms._arguments import vertex_numbers
from gpu_pregel.algorithms._driver import AlgorithmRun, documented
from gpu_pregel.algorithms._paths import mask_unreached
from gpu_pregel.algorithms._searches import Searches
from gpu_pregel.host.arguments import check_integer
from gpu_pregel.host.devices import DeviceName
from gpu_pregel.host.graphs.graph import Graph, GraphLike
from gpu_pregel.host.graphs.results import VertexResult

Array = np.ndarray[Any, Any]

_MOST = (1 << 31) - 1


@dataclass(frozen=True, eq=False, repr=False)
class Neighborhood(VertexResult):
    """The vertices within k hops of some sources.

    Attributes
    ----------
    hops : int32[n]
        The number of edges from the nearest source; -1 beyond ``k``, where tables, files and ``to_dict`` have no value.
    sources : int64[s]
        The vertex numbers of the sources.
    k : int
    """

    hops: Array
    sources: Array
    k: int

    value_name = "hops"

    @property
    def _values(self) -> Array:
        return self.hops

    def _to_ids(self, values: Array) -> Array:
        """Return numbers of edges, masked beyond ``k``."""
        return mask_unreached(values, -1)

    @property
    def vertices(self) -> Array:
        """The vertex numbers within k hops, the sources included, ascending; int64."""
        return np.flatnonzero(self.hops >= 0)

    def ids(self) -> Array:
        """Return the user's ids of ``vertices``."""
        return self.graph.to_ids(self.vertices)

    def subgraph(self) -> Graph:
        """Return the graph of these vertices and all edges among them."""
        return self.graph._induced(self.vertices)

    def summary(self) -> dict[str, Any]:
        """Return the number of vertices within k hops, and how many are at each distance."""
        sizes = np.bincount(self.hops[self.hops >= 0], minlength=1)
        return {"vertices": int(sizes.sum()), "by_distance": sizes.tolist()}

    def describe(self) -> str:
        """Return a one-line summary."""
        return f"{self.summary()['vertices']:,} of {len(self):,} vertices within {self.k:,} hops"


@documented
def k_hop(
    graph: GraphLike,
    sources: Any,
    k: int,
    *,
    device: DeviceName = "auto",
    threads: int | None = None,
    progress: bool = False,
) -> Neighborhood:
    """Find the vertices that some sources reach over at most ``k`` edges.

    Parameters
    ----------
    {graph}
        In a directed graph, edges are followed forwards; pass ``graph.transpose()`` for the opposite.
    sources : collection of ids
    k : int
        The largest number of edges; 0 gives the sources themselves.
    {options}

    Returns
    -------
    Neighborhood
        With ``hops``, ``vertices``, ``ids()`` and ``subgraph()``.

    Raises
    ------
    ArgumentError
        A source is not in the graph, or ``k`` is negative.
    {errors}

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> path = gp.Graph.from_edgelist(["a", "b", "c", "d"], ["b", "c", "d", "e"])
    >>> near = gp.k_hop(path, ["b"], 2)
    >>> near.ids().tolist(), near["d"], near.subgraph()
    (['a', 'b', 'c', 'd'], 2, <Graph: 4 vertices, 6 stored edges, undirected>)
    """
    run = AlgorithmRun("k_hop", graph, device, threads, progress)
    numbers = vertex_numbers(run.graph, "sources", sources)
    k = check_integer("k", k, 0, _MOST)
    searches: Searches = run.execute()
    hops = searches.hops(numbers, limit=k)
    return Neighborhood(run.graph, run.stats(), run.trace(), hops=hops, sources=numbers, k=k)

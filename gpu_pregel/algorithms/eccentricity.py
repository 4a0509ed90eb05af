"""Eccentricity: the largest distance from a vertex.

Frank Takes, Walter Kosters: Computing the Eccentricity Distribution of Large Graphs, Algorithms 6(1), 2013. In an
undirected graph, the distances from a few vertices bound the eccentricities of all others; where the bounds differ,
bit-parallel searches find them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_pregel.algorithms._driver import AlgorithmRun, documented
from gpu_pregel.algorithms._searches import FARTHEST, Searches
from gpu_pregel.host.devices import DeviceName
from gpu_pregel.host.graphs.graph import Graph, GraphLike
from gpu_pregel.host.graphs.results import VertexResult

Array = np.ndarray[Any, Any]

_ROUNDS = 8
"""Rounds of two searches whose distances bound eccentricities."""
_SMALL = 4096
"""Vertices for which bounds do not pay."""


@dataclass(frozen=True, eq=False, repr=False)
class Eccentricities(VertexResult):
    """The largest distance from each vertex to one that it reaches.

    Attributes
    ----------
    eccentricities : int64[n]
        In edges; 0 for a vertex that reaches no other.
    """

    eccentricities: Array

    value_name = "eccentricity"

    @property
    def _values(self) -> Array:
        return self.eccentricities

    @property
    def diameter(self) -> int:
        """The largest eccentricity."""
        return int(self.eccentricities.max(initial=0))

    @property
    def radius(self) -> int:
        """The smallest eccentricity; 0 if some vertex reaches no other."""
        return int(self.eccentricities.min()) if len(self) else 0

    def center(self) -> list[Any]:
        """Return the ids of the vertices of the smallest eccentricity."""
        return self._ids_of(self.radius)

    def periphery(self) -> list[Any]:
        """Return the ids of the vertices of the largest eccentricity."""
        return self._ids_of(self.diameter)

    def _ids_of(self, value: int) -> list[Any]:
        ids: list[Any] = self.graph.to_ids(np.flatnonzero(self.eccentricities == value)).tolist()
        return ids

    def summary(self) -> dict[str, Any]:
        """Return the diameter and the radius."""
        return {"diameter": self.diameter, "radius": self.radius}

    def describe(self) -> str:
        """Return a one-line summary."""
        return f"diameter {self.diameter:,}, radius {self.radius:,}"


@documented
def eccentricity(
    graph: GraphLike, *, device: DeviceName = "auto", threads: int | None = None, progress: bool = False
) -> Eccentricities:
    """Find the largest distance from each vertex to one that it reaches, in edges.

    Vertices that a vertex does not reach are left out, while NetworkX rejects graphs that are not connected. Weights
    are ignored.

    Parameters
    ----------
    {graph}
    {options}

    Returns
    -------
    Eccentricities
        With ``diameter``, ``radius``, ``center()`` and ``periphery()``.

    Raises
    ------
    NotEnoughMemoryError
        Each thread needs 232 bytes per vertex.
    {errors}

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> path = gp.eccentricity(gp.Graph.from_edgelist(["a", "b"], ["b", "c"]))
    >>> path.to_dict(), path.center()
    ({'a': 2, 'b': 1, 'c': 2}, ['b'])
    """
    run = AlgorithmRun("eccentricity", graph, device, threads, progress)
    graph, searches = run.graph, run.execute()
    if graph.is_directed or graph.num_vertices <= _SMALL:
        # The distances from v are those to v along reversed edges.
        found = searches.run(transpose=True)[:, FARTHEST].copy()
    else:
        lower, upper = _bounds(graph, searches)
        rest = np.flatnonzero(lower < upper)
        found = lower
        if len(rest):
            found[rest] = searches.run(rest, by_source=True, counted=False)[:, FARTHEST]
    return Eccentricities(graph, run.stats(), run.trace(), eccentricities=found)


def _bounds(graph: Graph, searches: Searches) -> tuple[Array, Array]:
    """Return bounds of all eccentricities, from searches that start alternately where bounds are large and small."""
    n = graph.num_vertices
    lower, upper = np.zeros(n, np.int64), np.where(graph.out_degrees > 0, n, 0)
    for k in range(2 * _ROUNDS):
        open_ = np.flatnonzero(lower < upper)
        if len(open_) == 0:
            break
        # Of equal bounds, the vertex of the largest degree.
        bound = upper[open_] if k % 2 == 0 else -lower[open_]
        best = open_[bound == bound.max()]
        v = best[graph.out_degrees[best].argmax()]
        hops = searches.hops(np.array([v]))
        reached = hops >= 0
        distance = hops[reached]
        farthest = distance.max()
        lower[reached] = np.maximum(lower[reached], np.maximum(distance, farthest - distance))
        upper[reached] = np.minimum(upper[reached], farthest + distance)
        lower[v] = upper[v] = farthest
    return lower, upper

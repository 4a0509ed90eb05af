"""Diameter: the largest distance between two vertices that are connected, or bounds of it.

Pierluigi Crescenzi et al.: On computing the diameter of real-world undirected graphs (iFUB), Theoretical Computer
Science 514, 2013. All components are searched at once, from one vertex each, and vertices far from the centres in
bit-parallel batches; those that distances found before bound (Takes, Kosters, CIKM 2011) are skipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_pregel.algorithms._driver import AlgorithmRun, documented
from gpu_pregel.algorithms._searches import FARTHEST, Searches
from gpu_pregel.host.arguments import check_flag
from gpu_pregel.host.devices import DeviceName
from gpu_pregel.host.graphs.graph import Graph, GraphLike
from gpu_pregel.host.graphs.results import Result
from gpu_pregel.host.superstep.advance import Advance

Array = np.ndarray[Any, Any]

_SMALL = 1024
"""Vertices up to which searches from all of them take less time than iFUB."""
_BATCH = 1024
"""Vertices searched from before the bounds are compared again."""
_ALONE, _BEFORE_BATCHES = (10, 0), (4, 256)
"""Searches that bound the diameter at least, and as few vertices left that they end; a batch may follow, or not."""
_WORTH = 32
"""Vertices that a search must rule out if another one is to follow; a batch takes less time per vertex."""
_WORD = (1 << 32) - 1


@dataclass(frozen=True, eq=False, repr=False)
class Diameter(Result):
    """The diameter of a graph, or bounds of it.

    Attributes
    ----------
    bounds : int64[2]
        The largest distance that was found, in edges, and an upper bound of all distances; equal if it is exact.
    pair : int64[2]
        The numbers of two vertices, the first of which is ``bounds[0]`` edges from the second; empty if there is none.
    exact : bool
        Whether the bounds are equal.
    """

    bounds: Array
    pair: Array
    exact: bool

    @property
    def _values(self) -> Array:
        return self.bounds

    def _columns(self) -> dict[str, Array]:
        """One row with both bounds."""
        return {"lower": self.bounds[:1], "upper": self.bounds[1:]}

    @property
    def lower(self) -> int:
        """The largest distance that was found."""
        return int(self.bounds[0])

    @property
    def upper(self) -> int:
        """The largest distance that there may be."""
        return int(self.bounds[1])

    def ends(self) -> tuple[Any, ...]:
        """Return the ids of two vertices at the distance ``lower``, in the direction of the path; none without any."""
        return tuple(self.graph.to_ids(self.pair).tolist())

    def summary(self) -> dict[str, Any]:
        """Return both bounds."""
        return {"lower": self.lower, "upper": self.upper}

    def describe(self) -> str:
        """Return a one-line summary."""
        return f"diameter {self.lower:,}" if self.exact else f"diameter from {self.lower:,} to {self.upper:,}"


@documented
def diameter(
    graph: GraphLike,
    *,
    exact: bool = True,
    device: DeviceName = "auto",
    threads: int | None = None,
    progress: bool = False,
) -> Diameter:
    """Find the largest distance, in edges, of all pairs of vertices of which the first reaches the second.

    NetworkX rejects graphs that are not connected; here pairs that are not connected are left out. Weights are ignored.

    Parameters
    ----------
    {graph}
    exact : bool, default True
        Whether to search until both bounds are equal; otherwise a few searches bound the diameter. Exact diameters of
        directed graphs need searches from all vertices.
    {options}

    Returns
    -------
    Diameter
        With ``lower``, ``upper`` and ``ends()``.

    Raises
    ------
    NotEnoughMemoryError
        Each thread needs 232 bytes per vertex.
    {errors}

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> found = gp.diameter(gp.Graph.from_edgelist(["a", "b", "x"], ["b", "c", "y"]))
    >>> found.lower, found.upper, found.ends()
    (2, 2, ('a', 'c'))
    """
    run = AlgorithmRun("diameter", graph, device, threads, progress)
    check_flag("exact", exact)
    graph, search = run.graph, _Search(run.graph, run.execute())
    if graph.num_vertices == 0:
        search.upper = 0
    elif exact and (graph.is_directed or graph.num_vertices <= _SMALL):
        search.everything()
    elif graph.is_directed:
        search.bound_directed()
    else:
        search.bound(search.searches.components(), *(_BEFORE_BATCHES if exact else _ALONE))
        if exact:
            search.fringes()
    upper = max(search.upper, search.lower)
    bounds = np.array([search.lower, upper], np.int64)
    return Diameter(graph, run.stats(), run.trace(), bounds=bounds, pair=search.pair, exact=search.lower == upper)


class _Search:
    """The bounds found so far."""

    def __init__(self, graph: Graph, searches: Searches) -> None:
        self.graph, self.searches = graph, searches
        self.lower, self.upper = 0, max(graph.num_vertices - 1, 0)
        self.pair = np.zeros(2 * min(graph.num_vertices, 1), np.int64)

    def found(self, distance: int, source: int, target: int) -> None:
        """Raise the lower bound to the distance of two vertices, if it is larger."""
        if distance > self.lower:
            self.lower, self.pair = distance, np.array([source, target], np.int64)

    def everything(self) -> None:
        """Search from all vertices."""
        farthest = self.searches.run(transpose=True)[:, FARTHEST]
        self.sweep(int(farthest.argmax()))
        self.upper = self.lower

    def sweep(self, source: int, *, transpose: bool = False) -> Array:
        """Search from one vertex; return the distances."""
        hops = self.searches.hops(np.array([source]), transpose=transpose)
        other = int(hops.argmax())
        self.found(int(hops[other]), *((other, source) if transpose else (source, other)))
        return hops

    def bound_directed(self) -> None:
        """Search along both directions from the vertex of the most edges, and from the ends of the longest paths."""
        source = int((self.graph.out_degrees * self.graph.in_degrees).argmax())
        forward = self.sweep(source)
        backward = self.sweep(source, transpose=True)
        if min(forward.min(), backward.min()) >= 0:
            self.upper = min(self.upper, int(forward.max() + backward.max()))
        self.sweep(int(forward.argmax()), transpose=True)
        self.sweep(int(backward.argmax()))

    def bound(self, labels: Array, least: int, few: int) -> None:
        """Search from vertices of each component whose bounds are the largest and the smallest in turn.

        End after ``least`` of them if they rule out too little, and when at most ``few`` vertices are left whose bounds
        are above the largest distance found.
        """
        n = len(labels)
        self.order = np.argsort(labels, kind="stable")
        sizes = np.bincount(labels, minlength=n)
        self.sizes = sizes[sizes > 0]
        self.degrees = self.graph.out_degrees[self.order]
        self.lows = np.zeros(n, np.int64)
        self.highs = np.repeat(self.sizes - 1, self.sizes)
        self.levels = self.highs.copy()
        left = [n]
        while self.prune() and left[-1] > few and (len(left) <= least or left[-3] - left[-1] > 2 * _WORTH):
            bounds = self.highs if len(left) % 2 == 0 else n - self.lows
            # Of equal bounds, take the vertex of the largest degree.
            best = np.repeat(np.maximum.reduceat(bounds, self.firsts), self.sizes)
            self.search(self.largest(np.where(bounds == best, self.degrees + 1, 0)))
            left.append(int(np.count_nonzero(self.heights() > self.lower)))

    def prune(self) -> bool:
        """Drop components without larger distances than the lower bound; return whether any is left."""
        self.firsts = np.cumsum(self.sizes) - self.sizes
        kept = np.maximum.reduceat(self.highs, self.firsts) > self.lower
        if not kept.all():
            places = np.flatnonzero(np.repeat(kept, self.sizes))
            self.order, self.degrees, self.sizes = self.order[places], self.degrees[places], self.sizes[kept]
            self.lows, self.highs, self.levels = self.lows[places], self.highs[places], self.levels[places]
            self.firsts = np.cumsum(self.sizes) - self.sizes
        self.upper = min(self.upper, max(self.lower, int(self.heights().max(initial=0))))
        return self.upper > self.lower

    def heights(self) -> Array:
        """Return a bound, for each vertex, of its distances to vertices with bounds up to it."""
        # Two vertices up to this far from a centre are at most twice as far apart.
        return np.minimum(self.highs, 2 * self.levels)

    def search(self, places: Array) -> None:
        """Search from one vertex of each component, and bound the largest distances of all vertices."""
        hops = self.searches.hops(self.order[places])[self.order]
        others = self.largest(hops)
        k = int(hops[others].argmax())
        self.found(int(hops[others[k]]), int(self.order[places[k]]), int(self.order[others[k]]))
        farthest = np.repeat(hops[others], self.sizes)
        np.maximum(self.lows, np.maximum(hops, farthest - hops), out=self.lows)
        np.minimum(self.highs, farthest + hops, out=self.highs)
        self.highs[places] = hops[others]
        # Keep the distances from the most central source of each component.
        nearest = np.repeat(np.maximum.reduceat(self.levels, self.firsts), self.sizes)
        np.copyto(self.levels, hops, where=farthest < nearest)

    def largest(self, values: Array) -> Array:
        """Return the place in ``order`` of the largest value of each component; of several, the first."""
        keys = (values.astype(np.int64) << 32) | (_WORD - np.arange(len(values)))
        return _WORD - (np.maximum.reduceat(keys, self.firsts) & _WORD)

    def fringes(self) -> None:
        """Search from the vertices of the largest bounds until those of the others are not above the lower bound."""
        advance = Advance("searching from vertices", self.searches.target, self.graph.num_vertices + 1)
        while self.upper > self.lower:
            heights = self.heights()
            open_ = np.flatnonzero(heights > self.lower)
            advance.shrink(len(open_))
            batch = open_[np.argsort(-heights[open_], kind="stable")[:_BATCH]]
            self.highs[batch] = self.searches.run(self.order[batch], by_source=True, counted=False)[:, FARTHEST]
            top = int(batch[self.highs[batch].argmax()])
            if self.highs[top] > self.lower:
                self.sweep(int(self.order[top]))
            self.upper = max(self.lower, int(self.heights().max()))

"""Betweenness centrality: how many shortest paths go through each vertex, or along each edge.

Ulrik Brandes: A Faster Algorithm for Betweenness Centrality, Journal of Mathematical Sociology 25(2), 2001. Sampled
sources: Ulrik Brandes, Christian Pich: Centrality Estimation in Large Networks, International Journal of Bifurcation
and Chaos 17(7), 2007.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gpu_pregel.algorithms._arguments import vertex_numbers
from gpu_pregel.algorithms._driver import AlgorithmRun, documented
from gpu_pregel.errors import ArgumentError, GraphError
from gpu_pregel.host.arguments import check_flag, check_integer
from gpu_pregel.host.devices import DeviceName
from gpu_pregel.host.graphs.graph import Graph, GraphLike
from gpu_pregel.host.graphs.results import Result, VertexResult

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False, repr=False)
class BetweennessScores(VertexResult):
    """The betweenness centrality of each vertex.

    Attributes
    ----------
    scores : float64[n]
    sources : int64[k] or None
        The numbers of the vertices at which the paths start; None if they are all vertices.
    normalized, endpoints, weighted : bool
        The arguments.
    """

    scores: Array
    sources: Array | None
    normalized: bool
    endpoints: bool
    weighted: bool

    value_name: ClassVar[str] = "score"

    @property
    def _values(self) -> Array:
        return self.scores

    def summary(self) -> dict[str, Any]:
        """Return the number of sources and the vertex with the highest score."""
        highest = self._vertex_ids().tolist()[self.scores.argmax()] if len(self) else None
        return {"sources": len(self) if self.sources is None else len(self.sources), "highest": highest}

    def describe(self) -> str:
        """Return a one-line summary."""
        text = f"{len(self):,} vertices, shortest paths from {self.summary()['sources']:,} sources"
        if len(self) == 0:
            return text
        return f"{text}, the highest score {self.scores.max():.3g} at {self.summary()['highest']!r}"

    def __repr__(self) -> str:
        return f"<BetweennessScores: {len(self):,} vertices, {self.summary()['sources']:,} sources>"


@dataclass(frozen=True, eq=False, repr=False)
class EdgeBetweennessScores(Result):
    """The betweenness centrality of each edge; repeated edges count as one, and self-loops are left out.

    Attributes
    ----------
    scores : float64[k]
        The score of each edge.
    edge_sources, edge_targets : int64[k]
        The vertices of each edge, by number; in an undirected graph the smaller one first.
    sources : int64[k] or None
        The numbers of the vertices at which the paths start; None if they are all vertices.
    normalized, weighted : bool
        The arguments.
    """

    scores: Array
    edge_sources: Array
    edge_targets: Array
    sources: Array | None
    normalized: bool
    weighted: bool

    @property
    def _values(self) -> Array:
        return self.scores

    def __len__(self) -> int:
        """Return the number of edges."""
        return len(self.scores)

    def _columns(self) -> dict[str, Array]:
        to_ids = self.graph.to_ids
        return {"source": to_ids(self.edge_sources), "target": to_ids(self.edge_targets), "score": self.scores}

    def to_dict(self) -> dict[tuple[Any, Any], float]:
        """Return a dict from pairs of the user's ids to scores."""
        source, target, score = (column.tolist() for column in self._columns().values())
        return dict(zip(zip(source, target, strict=True), score, strict=True))

    def summary(self) -> dict[str, Any]:
        """Return the number of sources and the edge with the highest score."""
        highest = list(self.to_dict())[self.scores.argmax()] if len(self) else None
        count = self.graph.num_vertices if self.sources is None else len(self.sources)
        return {"sources": count, "highest": highest}

    def describe(self) -> str:
        """Return a one-line summary."""
        text = f"{len(self):,} edges, shortest paths from {self.summary()['sources']:,} sources"
        if len(self) == 0:
            return text
        return f"{text}, the highest score {self.scores.max():.3g} at {self.summary()['highest']!r}"

    def __repr__(self) -> str:
        return f"<EdgeBetweennessScores: {len(self):,} edges, {self.summary()['sources']:,} sources>"


@documented
def betweenness_centrality(
    graph: GraphLike,
    *,
    sources: Any = None,
    seed: int = 0,
    normalized: bool = True,
    endpoints: bool = False,
    weighted: bool = True,
    device: DeviceName = "auto",
    threads: int | None = None,
    progress: bool = False,
) -> BetweennessScores:
    """Compute the betweenness centrality of each vertex; the weights of edges, if any, are the lengths of paths.

    It is the sum over pairs of vertices of the share of shortest paths between them that pass through the vertex.
    Weights are used if the graph has them, unless ``weighted=False``.

    Repeated edges count as one, the shortest of them.

    Parameters
    ----------
    {graph}
    sources : int or array_like of ids, optional
        Use only the paths that start at these vertices, or at this number of random vertices, and scale the scores
        up, which estimates them. Default: all vertices.
    seed : int, default 0
        The seed of the random choice.
    normalized : bool, default True
        Divide by the number of pairs of vertices; otherwise scores are sums over pairs, which are unordered in an
        undirected graph.
    endpoints : bool, default False
        Count the ends of a path as on it.
    weighted : bool, default True
        Whether the weights of the edges, if the graph has any, are their lengths; otherwise each has length 1. An edge
        of infinite length is on no shortest path.
    {options}

    Returns
    -------
    BetweennessScores
        With ``scores``. Every run and number of threads gives the same scores to the bit; those of different devices
        differ in rounding.

    Raises
    ------
    ArgumentError
        No vertex has one of the ids in ``sources``, one is repeated, or their number is below 1 or above n.
    GraphError
        ``weighted``, and a weight is not above 0.
    {errors}

    Notes
    -----
    The cost is O(n + m) per source, with weights O(m log n) on the CPU. Lengths are added in float64: paths are equally
    short if their rounded lengths are equal, and one beyond the range of float64 is no path. The part of a shortest
    path up to each of its vertices is a shortest path too, even if rounding hides a detour. The scaling is that of
    NetworkX, except that a source's own score is 0 and not NaN where it is the only source. Numbers of paths may exceed
    the range of float64.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> path = gp.Graph.from_edgelist(["a", "b", "c"], ["b", "c", "d"])
    >>> gp.betweenness_centrality(path, normalized=False).scores.tolist()
    [0.0, 2.0, 2.0, 0.0]
    """
    run = AlgorithmRun("betweenness_centrality", graph, device, threads, progress)
    graph = run.graph
    normalized, endpoints = check_flag("normalized", normalized), check_flag("endpoints", endpoints)
    weighted = _check_lengths(graph, weighted, "betweenness_centrality")
    chosen = _chosen_sources(graph, sources, seed)
    extra = 1.0 if endpoints else 0.0
    totals, _ = run.execute(*_searched(graph, chosen), weighted=weighted, extra=extra, with_edges=False)
    n = graph.num_vertices
    scores = totals * _scale(n, chosen, normalized=normalized, directed=graph.is_directed, endpoints=endpoints)
    if chosen is not None and not endpoints and n > 2:
        # A source is no inner vertex of its own paths: the others' scores have one source less.
        k = len(chosen)
        scores[chosen] *= k / (k - 1) if k > 1 else 0.0
    return BetweennessScores(
        *(graph, run.stats(), run.trace()),
        scores=scores,
        sources=chosen,
        normalized=normalized,
        endpoints=endpoints,
        weighted=weighted,
    )


@documented
def edge_betweenness_centrality(
    graph: GraphLike,
    *,
    sources: Any = None,
    seed: int = 0,
    normalized: bool = True,
    weighted: bool = True,
    device: DeviceName = "auto",
    threads: int | None = None,
    progress: bool = False,
) -> EdgeBetweennessScores:
    """Compute the betweenness centrality of each edge; the weights of edges, if any, are the lengths of paths.

    It is the sum over pairs of vertices of the share of shortest paths between them that use the edge. Weights are used
    if the graph has them, unless ``weighted=False``.

    Repeated edges count as one, the shortest of them, while NetworkX divides the score between them; self-loops are
    left out.

    Parameters
    ----------
    {graph}
    sources : int or array_like of ids, optional
        Use only the paths that start at these vertices, or at this number of random vertices, and scale the scores
        up, which estimates them. Default: all vertices.
    seed : int, default 0
        The seed of the random choice.
    normalized : bool, default True
        Divide by the number of pairs of vertices; otherwise scores are sums over pairs, which are unordered in an
        undirected graph.
    weighted : bool, default True
        Whether the weights of the edges, if the graph has any, are their lengths; otherwise each has length 1. An edge
        of infinite length is on no shortest path.
    {options}

    Returns
    -------
    EdgeBetweennessScores
        With ``scores``, ``edge_sources`` and ``edge_targets``, and ``to_dict()`` by pairs of ids. Every run and number
        of threads gives the same scores to the bit; those of different devices differ in rounding.

    Raises
    ------
    ArgumentError
        No vertex has one of the ids in ``sources``, one is repeated, or their number is below 1 or above n.
    GraphError
        ``weighted``, and a weight is not above 0.
    {errors}

    Notes
    -----
    The cost is O(n + m) per source, with weights O(m log n) on the CPU. Lengths are added in float64: paths are equally
    short if their rounded lengths are equal, and one beyond the range of float64 is no path. The part of a shortest
    path up to each of its vertices is a shortest path too, even if rounding hides a detour.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> path = gp.Graph.from_edgelist(["a", "b", "c"], ["b", "c", "d"])
    >>> gp.edge_betweenness_centrality(path, normalized=False).to_dict()
    {('a', 'b'): 3.0, ('b', 'c'): 4.0, ('c', 'd'): 3.0}
    """
    run = AlgorithmRun("edge_betweenness_centrality", graph, device, threads, progress)
    graph = run.graph
    normalized = check_flag("normalized", normalized)
    weighted = _check_lengths(graph, weighted, "edge_betweenness_centrality")
    chosen = _chosen_sources(graph, sources, seed)
    simple, numbers = _searched(graph, chosen)
    _, totals = run.execute(simple, numbers, weighted=weighted, extra=0.0, with_edges=True)
    edge_sources = np.repeat(np.arange(simple.num_vertices), simple.out_degrees)
    edge_targets = simple.indices.astype(np.int64)
    kept = edge_sources != edge_targets
    if not graph.is_directed:
        # Sorted by their other end, the edges are in the order of their reverses.
        totals = totals + totals[np.argsort(edge_targets, kind="stable")]
        kept = edge_sources < edge_targets
    scale = _scale(graph.num_vertices, chosen, normalized=normalized, directed=graph.is_directed, endpoints=True)
    return EdgeBetweennessScores(
        *(graph, run.stats(), run.trace()),
        scores=totals[kept] * scale,
        edge_sources=edge_sources[kept],
        edge_targets=edge_targets[kept],
        sources=chosen,
        normalized=normalized,
        weighted=weighted,
    )


def _check_lengths(graph: Graph, weighted: Any, name: str) -> bool:
    """Return whether weights are used, or raise unless all of them are above 0 then."""
    weights = graph.weights
    if not check_flag("weighted", weighted) or weights is None:
        return False
    if not (weights > 0).all():
        e = int((~(weights > 0)).argmax())
        u = int(np.searchsorted(graph.indptr, e, "right")) - 1
        source, target = graph.to_ids(np.array([u, graph.indices[e]])).tolist()
        raise GraphError(
            f"{name} needs weights above 0, and the edge from {source!r} to {target!r} has "
            f"{weights[e]}: change them, or pass weighted=False"
        )
    return True


def _chosen_sources(graph: Graph, sources: Any, seed: Any) -> Array | None:
    """Return the numbers of the sources, ascending, or None for all vertices."""
    check_integer("seed", seed, 0)
    n = graph.num_vertices
    if sources is None:
        return None
    if isinstance(sources, (int, np.integer)):
        if n == 0:
            raise ArgumentError("sources must be None, as the graph has no vertices")
        count = check_integer("sources", sources, 1, n)
        chosen: Array = np.random.default_rng(seed).choice(n, count, replace=False)
    else:
        chosen = vertex_numbers(graph, "sources", sources)
        values, counts = np.unique(chosen, return_counts=True)
        if counts.max() > 1:
            repeated = graph.to_ids(values[counts > 1][:1]).tolist()[0]
            raise ArgumentError(f"sources has {repeated!r} more than once: give each id once")
    return None if len(chosen) == n else np.sort(chosen).astype(np.int64)


def _searched(graph: Graph, chosen: Array | None) -> tuple[Graph, Array]:
    """Return the graph without repeated edges, and the numbers of the sources."""
    simple = graph.simplify(combine="min") if graph.has_duplicates else graph
    return simple, np.arange(graph.num_vertices) if chosen is None else chosen


def _scale(n: int, chosen: Array | None, *, normalized: bool, directed: bool, endpoints: bool) -> float:
    """Return the factor of sums over ordered pairs of which the first vertex is one of the sources."""
    others = n if endpoints else n - 1
    if others < 2:
        return 1.0
    sources = others if chosen is None else len(chosen)
    return 1 / (sources * (others - 1)) if normalized else others / (sources * (1 if directed else 2))

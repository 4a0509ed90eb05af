"""Closeness and harmonic centrality: how near a vertex is to those that reach it.

Alex Bavelas: Communication patterns in task-oriented groups, Journal of the Acoustical Society of America 22(6), 1950;
the correction for vertices that not all others reach is from Stanley Wasserman, Katherine Faust: Social Network
Analysis, 1994; harmonic centrality from Paolo Boldi, Sebastiano Vigna: Axioms for Centrality, Internet Mathematics
10(3-4), 2014; estimates from samples from David Eppstein, Joseph Wang: Fast Approximation of Centrality, SODA 2001.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpu_pregel.algorithms._arguments import vertex_numbers
from gpu_pregel.algorithms._driver import AlgorithmRun, documented
from gpu_pregel.algorithms._searches import DISTANCES, INVERSES, REACHED, Searches, inverse_unit
from gpu_pregel.errors import ArgumentError
from gpu_pregel.host.arguments import check_flag, check_integer
from gpu_pregel.host.devices import DeviceName
from gpu_pregel.host.graphs.graph import GraphLike
from gpu_pregel.host.graphs.results import VertexResult

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False, repr=False)
class ClosenessScores(VertexResult):
    """The closeness or the harmonic centrality of each vertex.

    Attributes
    ----------
    scores : float64[n]
        NaN for vertices that are not among the ``sources``, if some were given.
    kind : {"closeness", "harmonic"}
    improved : bool
        Whether closeness is scaled by the share of the vertices that reach the vertex.
    sources : int64[k] or None
        The numbers of the vertices whose scores were asked for; None: all.
    samples : int64[k] or None
        The numbers of the vertices from which the scores were estimated; None: scores are exact.
    """

    scores: Array
    kind: str
    improved: bool
    sources: Array | None
    samples: Array | None

    value_name = "score"

    @property
    def _values(self) -> Array:
        return self.scores

    def summary(self) -> dict[str, Any]:
        """Return the largest score and the vertex that has it; of several, the first."""
        known = np.nan_to_num(self.scores, nan=-1.0)
        if len(known) == 0:
            return {"largest": 0.0, "vertex": None}
        v = int(known.argmax())
        return {"largest": float(known[v]), "vertex": self.graph.to_ids(np.array([v])).tolist()[0]}

    def describe(self) -> str:
        """Return a one-line summary."""
        largest = self.summary()
        estimated = "" if self.samples is None else f", estimated from {len(self.samples):,} vertices"
        return f"the largest {self.kind} score is {largest['largest']:.6g}, of vertex {largest['vertex']!r}{estimated}"


class _Totals(NamedTuple):
    """Of each vertex: how many others reach it, the sum of their distances, and the sum of the inverses; float64."""

    reached: Array
    distances: Array
    inverses: Array
    sources: Array | None
    samples: Array | None


@documented
def closeness_centrality(
    graph: GraphLike,
    *,
    sources: Any = None,
    samples: int | None = None,
    improved: bool = True,
    seed: int = 0,
    device: DeviceName = "auto",
    threads: int | None = None,
    progress: bool = False,
) -> ClosenessScores:
    """Find the closeness of vertices: the inverse of the mean distance from the vertices that reach them.

    As in NetworkX, distances are numbers of edges on paths towards the vertex; for the opposite direction, pass
    ``graph.transpose()``. Weights are ignored.

    Parameters
    ----------
    {graph}
    sources : collection of ids, optional
        Vertices whose closeness to find; default: all.
    samples : int, optional
        Estimate all scores from the distances of this many random vertices; as many as there are give exact scores.
        The distance of a sample to itself does not count, so that the only sample has the score 0.
    improved : bool, default True
        Multiply each score by the share of the other vertices that reach the vertex (Wasserman and Faust), so that
        vertices of small components do not score highest.
    seed : int, default 0
        Selects the samples.
    {options}

    Returns
    -------
    ClosenessScores
        Every run, device and number of threads gives the same scores. A vertex that no other reaches has 0.

    Raises
    ------
    ArgumentError
        A source is not in the graph, there are more samples than vertices, or both sources and samples are given.
    NotEnoughMemoryError
        Each thread needs 232 bytes per vertex.
    {errors}

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> path = gp.Graph.from_edgelist(["a", "b"], ["b", "c"])
    >>> gp.closeness_centrality(path)["b"]
    1.0
    """
    run = AlgorithmRun("closeness_centrality", graph, device, threads, progress)
    check_flag("improved", improved)
    found = _totals(run, sources, samples, seed)
    scores = np.zeros(len(found.reached))
    np.divide(found.reached, found.distances, out=scores, where=found.distances > 0)
    if improved:
        scores *= found.reached / max(1, run.graph.num_vertices - 1)
    return _result(run, found, scores, "closeness", improved)


@documented
def harmonic_centrality(
    graph: GraphLike,
    *,
    sources: Any = None,
    samples: int | None = None,
    seed: int = 0,
    device: DeviceName = "auto",
    threads: int | None = None,
    progress: bool = False,
) -> ClosenessScores:
    """Find the harmonic centrality of vertices: the sum of the inverse distances from all others.

    As in NetworkX, distances are numbers of edges on paths towards the vertex; for the opposite direction, pass
    ``graph.transpose()``. Weights are ignored. A vertex that does not reach it adds nothing.

    Parameters
    ----------
    {graph}
    sources : collection of ids, optional
        Vertices whose scores to find; default: all.
    samples : int, optional
        Estimate all scores from the distances of this many random vertices; as many as there are give exact scores.
        The distance of a sample to itself does not count, so that the only sample has the score 0.
    seed : int, default 0
        Selects the samples.
    {options}

    Returns
    -------
    ClosenessScores
        Inverses are rounded to multiples of 2^-62 times the power of two above n, so that every run, device and number
        of threads gives the same scores.

    Raises
    ------
    ArgumentError
        A source is not in the graph, there are more samples than vertices, or both sources and samples are given.
    NotEnoughMemoryError
        Each thread needs 232 bytes per vertex.
    {errors}

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> gp.harmonic_centrality(gp.Graph.from_edgelist(["a", "b"], ["b", "c"])).to_dict()
    {'a': 1.5, 'b': 2.0, 'c': 1.5}
    """
    run = AlgorithmRun("harmonic_centrality", graph, device, threads, progress)
    found = _totals(run, sources, samples, seed)
    return _result(run, found, found.inverses, "harmonic", False)


def _totals(run: AlgorithmRun, sources: Any, samples: int | None, seed: int) -> _Totals:
    """Check the arguments and search from the sources, from samples or from all vertices."""
    graph = run.graph
    n = graph.num_vertices
    if sources is not None and samples is not None:
        raise ArgumentError("pass sources or samples, not both: scores of given sources are exact")
    numbers = None if sources is None else vertex_numbers(graph, "sources", sources)
    chosen = None
    seed = check_integer("seed", seed, 0)
    if samples is not None:
        count = check_integer("samples", samples, 1)
        if count > n:
            raise ArgumentError(f"samples must be at most {n:,}, the number of vertices, not {count:,}")
        generator = np.random.default_rng(seed)
        chosen = np.sort(generator.choice(n, count, replace=False)).astype(np.int64)
    # The distances from all vertices to v are counted at v, the target.
    towards_all = numbers is None
    searches: Searches = run.execute()
    figures = searches.run(chosen) if towards_all else searches.run(numbers, transpose=True, by_source=True)
    scale = 1.0 if chosen is None else _scales(n, chosen)
    inverses = figures[:, INVERSES] / inverse_unit(n if chosen is None else len(chosen)) * scale
    return _Totals(figures[:, REACHED] * scale, figures[:, DISTANCES] * scale, inverses, numbers, chosen)


def _scales(n: int, samples: Array) -> Array:
    """Return for each vertex the number of others divided by that of those in the samples, or 0 if none of them is."""
    k = len(samples)
    scales = np.full(n, (n - 1) / k)
    scales[samples] = (n - 1) / (k - 1) if k > 1 else 0.0
    return scales


def _result(run: AlgorithmRun, found: _Totals, scores: Array, kind: str, improved: bool) -> ClosenessScores:
    if found.sources is not None:
        everyone = np.full(run.graph.num_vertices, np.nan)
        everyone[found.sources] = scores
        scores = everyone
    return ClosenessScores(
        *(run.graph, run.stats(), run.trace()),
        scores=scores,
        kind=kind,
        improved=improved,
        sources=found.sources,
        samples=found.samples,
    )

"""HITS: a hub score and an authority score for each vertex.

Jon Kleinberg: Authoritative Sources in a Hyperlinked Environment, Journal of the ACM 46(5), 1999. A good hub points to
good authorities, and good hubs point to a good authority.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gpu_pregel.algorithms._driver import AlgorithmRun, documented
from gpu_pregel.algorithms._iterations import IteratedScores, NeighborSums, weights_in_use
from gpu_pregel.algorithms._vectors import distribution
from gpu_pregel.host.arguments import check_integer, check_number
from gpu_pregel.host.devices import DeviceName
from gpu_pregel.host.graphs.edge_arrays import to_host
from gpu_pregel.host.graphs.graph import GraphLike

Array = np.ndarray[Any, Any]

_SMALL, _LIFT = 1e-280, 2.0**1000
"""Sums that are smaller may have underflowed; they are computed again from scores times a power of two."""


@dataclass(frozen=True, eq=False, repr=False)
class HitsScores(IteratedScores):
    """The authority score and the hub score of each vertex; each kind sums to 1.

    Attributes
    ----------
    scores : float64[n]
        The authority scores, which ``result[id]`` and ``np.asarray(result)`` return, too.
    hubs : float64[n]
        The hub scores.
    iterations : int
        Number of iterations.
    error : float
        The total change of both scores in the last iteration (L1 norm).
    converged : bool
        Whether ``error`` fell below ``tolerance``.
    tolerance, weighted : float, bool
        The arguments; ``weighted`` is False for a graph without weights.
    """

    hubs: Any

    value_name: ClassVar[str] = "authority"

    @property
    def authorities(self) -> Any:
        """float64[n]: the authority scores."""
        return self.scores

    def _columns(self) -> dict[str, Array]:
        return {**super()._columns(), "hub": to_host(self.hubs)}


@documented
def hits(
    graph: GraphLike,
    *,
    tolerance: float = 1e-8,
    max_iterations: int = 100,
    initial: Any = None,
    weighted: bool = True,
    device: DeviceName = "auto",
    threads: int | None = None,
    progress: bool = False,
) -> HitsScores:
    """Compute the hub and authority scores of each vertex by power iteration, with the weights of edges, if any.

    Weights are used if the graph has them, unless ``weighted=False``.

    Parameters
    ----------
    {graph}
        In an undirected graph both scores are equal, unless a component is bipartite.
    tolerance : float, default 1e-8
        Stop when the scores change by less than this in total (L1 norm of both).
    max_iterations : int, default 100
        Stop after this many iterations, even if the scores have not converged.
    initial : mapping of ids to numbers, Series by ids, or array_like [n] by vertex number, optional
        The first hub scores. Default: all are equal.
    weighted : bool, default True
        Multiply by the weights of the edges, if the graph has weights.
    {options}

    Returns
    -------
    HitsScores
        With ``authorities``, ``hubs``, ``iterations``, ``error`` and ``converged``. All scores are 0 if no edge starts
        at a vertex with an initial score. Every run and number of threads gives the same scores to the bit; those of
        different devices differ in rounding.

    Raises
    ------
    ArgumentError
        ``initial`` sums to 0 or has a negative number, or another argument is out of range.
    GraphError
        A weight is negative, or the weights sum to more than 1e150.
    {errors}

    Notes
    -----
    An iteration reads each edge twice, O(n + m): once along its direction, once against it.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> graph = gp.Graph.from_edgelist(["a", "b", "b"], ["c", "c", "d"], directed=True)
    >>> scores = gp.hits(graph)
    >>> scores.authorities.round(3).tolist(), scores.hubs.round(3).tolist()
    ([0.0, 0.618, 0.0, 0.382], [0.382, 0.0, 0.618, 0.0])
    """
    run = AlgorithmRun("hits", graph, device, threads, progress)
    graph = run.graph
    tolerance = float(check_number("tolerance", tolerance, 0))
    max_iterations = check_integer("max_iterations", max_iterations, 1)
    weighted = weights_in_use(graph, weighted, "hits")
    n = graph.num_vertices
    given = None if initial is None else distribution(graph, "initial", initial)
    along, against = (run.execute(rows, weighted=weighted) for rows in (graph, graph.transpose()))
    hubs = along.full(1 / max(n, 1)) if given is None else along.arrange(given)
    authorities, shift = along.full(0.0), along.full(0.0)
    iterations, error = 0, np.inf if n else 0.0
    while n and iterations < max_iterations and (iterations == 0 or error >= tolerance):
        found, total = _advance(along, hubs, shift)
        error = along.normalise(found, total, authorities)
        authorities = found
        found, total = _advance(against, authorities, shift)
        error += against.normalise(found, total, hubs)
        hubs, iterations = found, iterations + 1
    return HitsScores(
        *(graph, run.stats(), run.trace()),
        scores=along.restore(authorities),
        iterations=iterations,
        error=error,
        converged=error < tolerance or n == 0,
        tolerance=tolerance,
        weighted=weighted,
        hubs=against.restore(hubs),
    )


def _advance(sums: NeighborSums, scores: Any, shift: Any) -> tuple[Any, float]:
    """Return the sums over neighbours up to a factor, and the number that scales their sum to 1."""
    found, total = sums.advance(scores, shift, order=1)
    if total < _SMALL:
        found, total = sums.advance(sums.scaled(scores, _LIFT), shift, order=1)
    return found, total or 1.0

"""Eigenvector centrality: a vertex is central if central vertices point to it.

Phillip Bonacich: Power and Centrality: A Family of Measures, American Journal of Sociology 92(5), 1987. The iteration
multiplies by A + I, as NetworkX's does, so that it converges on bipartite graphs as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_pregel.algorithms._driver import AlgorithmRun, documented
from gpu_pregel.algorithms._iterations import IteratedScores, NeighborSums, weights_in_use
from gpu_pregel.algorithms._vectors import distribution
from gpu_pregel.host.arguments import check_integer, check_number
from gpu_pregel.host.devices import DeviceName
from gpu_pregel.host.graphs.graph import GraphLike

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False, repr=False)
class EigenvectorScores(IteratedScores):
    """The eigenvector centrality of each vertex; the squares of the scores sum to 1.

    Attributes
    ----------
    scores : float64[n]
    iterations : int
        Number of iterations.
    error : float
        The total change of the scores in the last iteration (L1 norm).
    converged : bool
        Whether ``error`` fell below ``tolerance``.
    tolerance, weighted : float, bool
        The arguments; ``weighted`` is False for a graph without weights.
    initial : float64[n] or None
        The argument by vertex number, scaled to the sum 1.
    """

    initial: Array | None


@documented
def eigenvector_centrality(
    graph: GraphLike,
    *,
    tolerance: float = 1e-6,
    max_iterations: int = 100,
    initial: Any = None,
    weighted: bool = True,
    device: DeviceName = "auto",
    threads: int | None = None,
    progress: bool = False,
) -> EigenvectorScores:
    """Compute the eigenvector centrality of each vertex by power iteration, with the weights of edges, if any.

    Weights are used if the graph has them, unless ``weighted=False``.

    The scores are the eigenvector of the largest eigenvalue of the adjacency matrix, summed over in-edges; for
    out-edges pass ``graph.transpose()``. They are unique only if the graph is (strongly) connected.

    Parameters
    ----------
    {graph}
    tolerance : float, default 1e-6
        Stop when the scores change by less than this in total (L1 norm). NetworkX multiplies its ``tol`` by the number
        of vertices.
    max_iterations : int, default 100
        Stop after this many iterations, even if the scores have not converged, where NetworkX raises an error.
    initial : mapping of ids to numbers, Series by ids, or array_like [n] by vertex number, optional
        The first scores. Default: all are equal.
    weighted : bool, default True
        Multiply by the weights of the edges, if the graph has weights. NetworkX does so only if given ``weight=``.
    {options}

    Returns
    -------
    EigenvectorScores
        With ``scores``, ``iterations``, ``error`` and ``converged``. Every run and number of threads gives the same
        scores to the bit; those of different devices differ in rounding.

    Raises
    ------
    ArgumentError
        ``initial`` sums to 0 or has a negative number, or another argument is out of range.
    GraphError
        A weight is negative, or the weights sum to more than 1e150.
    {errors}

    Notes
    -----
    An iteration reads each edge once, O(n + m). The number of iterations depends on the ratio of the two largest
    eigenvalues.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> star = gp.Graph.from_edgelist(["hub", "hub", "hub"], ["a", "b", "c"])
    >>> gp.eigenvector_centrality(star).scores.round(3).tolist()
    [0.707, 0.408, 0.408, 0.408]
    """
    run = AlgorithmRun("eigenvector_centrality", graph, device, threads, progress)
    graph = run.graph
    tolerance = float(check_number("tolerance", tolerance, 0))
    max_iterations = check_integer("max_iterations", max_iterations, 1)
    weighted = weights_in_use(graph, weighted, "eigenvector_centrality")
    n = graph.num_vertices
    given = None if initial is None else distribution(graph, "initial", initial)
    sums: NeighborSums = run.execute(graph, weighted=weighted, reorder=True)
    scores, shift = sums.full(1 / max(n, 1)) if given is None else sums.arrange(given), sums.full(0.0)
    iterations, error = 0, np.inf if n else 0.0
    while n and iterations < max_iterations and (iterations == 0 or error >= tolerance):
        following, length = sums.advance(scores, shift, own=1.0)
        error = sums.normalise(following, length, scores)
        scores, iterations = following, iterations + 1
    return EigenvectorScores(
        *(graph, run.stats(), run.trace()),
        scores=sums.restore(scores),
        iterations=iterations,
        error=error,
        converged=error < tolerance or n == 0,
        tolerance=tolerance,
        weighted=weighted,
        initial=given,
    )

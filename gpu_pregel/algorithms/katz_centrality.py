"""Katz centrality: the number of walks that end at a vertex, each edge of which counts by a factor.

Leo Katz: A New Status Index Derived from Sociometric Analysis, Psychometrika 18(1), 1953.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from gpu_pregel.algorithms._arguments import check_positive
from gpu_pregel.algorithms._driver import AlgorithmRun, documented
from gpu_pregel.algorithms._iterations import IteratedScores, NeighborSums, weights_in_use
from gpu_pregel.algorithms._vectors import vertex_vector
from gpu_pregel.errors import ArgumentError
from gpu_pregel.host.arguments import check_flag, check_integer, check_number
from gpu_pregel.host.devices import DeviceName
from gpu_pregel.host.graphs.graph import Graph, GraphLike

Array = np.ndarray[Any, Any]

_SAFE = 0.9
"""The default of ``alpha`` in units of the limit below which the iteration must converge."""


@dataclass(frozen=True, eq=False, repr=False)
class KatzScores(IteratedScores):
    """The Katz centrality of each vertex.

    Attributes
    ----------
    scores : float64[n]
        If ``normalized``, their squares sum to 1.
    iterations : int
        Number of iterations.
    error : float
        The total change of the scores in the last iteration, before they were normalised (L1 norm).
    converged : bool
        Whether ``error`` fell below ``tolerance``.
    tolerance, weighted, alpha, normalized : float, bool, float, bool
        The arguments; ``weighted`` is False for a graph without weights.
    beta : float64[n]
        The argument by vertex number.
    """

    alpha: float
    normalized: bool
    beta: Array


@documented
def katz_centrality(
    graph: GraphLike,
    *,
    alpha: float | None = None,
    beta: Any = 1.0,
    tolerance: float = 1e-6,
    max_iterations: int = 1000,
    normalized: bool = True,
    weighted: bool = True,
    device: DeviceName = "auto",
    threads: int | None = None,
    progress: bool = False,
) -> KatzScores:
    """Solve ``x = alpha * A.T @ x + beta``, the Katz centrality of each vertex, with the weights of edges, if any.

    Weights are used if the graph has them, unless ``weighted=False``.

    Parameters
    ----------
    {graph}
    alpha : float, optional
        The factor of each edge. The iteration converges if it is below 1 divided by the largest eigenvalue of the
        adjacency matrix. Default: 0.9 divided by the largest in-degree (in-weight), which always is; NetworkX uses 0.1.
    beta : float, mapping of ids to numbers, Series by ids, or array_like [n] by vertex number, default 1
        What each vertex has without edges.
    tolerance : float, default 1e-6
        Stop when the scores change by less than this in total (L1 norm). NetworkX multiplies its ``tol`` by the number
        of vertices.
    max_iterations : int, default 1000
        Stop after this many iterations, even if the scores have not converged, where NetworkX raises an error.
    normalized : bool, default True
        Scale the scores so that their squares sum to 1.
    weighted : bool, default True
        Multiply by the weights of the edges, if the graph has weights. NetworkX does so only if given ``weight=``.
    {options}

    Returns
    -------
    KatzScores
        With ``scores``, ``iterations``, ``error``, ``converged`` and ``alpha``. Every run and number of threads gives
        the same scores to the bit; those of different devices differ in rounding.

    Raises
    ------
    ArgumentError
        ``alpha`` is so large that the scores exceed the range of float64, or an argument is out of range.
    GraphError
        A weight is negative, or the weights sum to more than 1e150.
    {errors}

    Notes
    -----
    An iteration reads each edge once, O(n + m).

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> path = gp.Graph.from_edgelist(["a", "b"], ["b", "c"], directed=True)
    >>> gp.katz_centrality(path, alpha=0.5, normalized=False).scores.tolist()
    [1.0, 1.5, 1.75]
    """
    run = AlgorithmRun("katz_centrality", graph, device, threads, progress)
    graph = run.graph
    tolerance = float(check_number("tolerance", tolerance, 0))
    max_iterations = check_integer("max_iterations", max_iterations, 1)
    normalized = check_flag("normalized", normalized)
    weighted = weights_in_use(graph, weighted, "katz_centrality")
    factor = _default_alpha(graph, weighted) if alpha is None else check_positive("alpha", alpha)
    constant = _beta(graph, beta)
    n = graph.num_vertices
    sums: NeighborSums = run.execute(graph, weighted=weighted, reorder=True)
    scores, shift = sums.full(0.0), sums.full(float(beta)) if isinstance(beta, Real) else sums.arrange(constant)
    iterations, error, length = 0, np.inf if n else 0.0, 0.0
    while n and iterations < max_iterations and (iterations == 0 or error >= tolerance):
        try:
            following, length = sums.advance(scores, shift, scale=factor)
        except FloatingPointError:  # What device "python" does where others return an infinite length.
            length = math.inf
        if not math.isfinite(length):
            raise ArgumentError(
                f"alpha={factor:g} is too large for this graph: after {iterations + 1} iterations the scores exceed "
                "the range of float64; omit it, or pass less than 1 / (largest eigenvalue of the adjacency matrix)"
            )
        error = sums.normalise(following, 1.0, scores)
        scores, iterations = following, iterations + 1
    if normalized and length > 0:
        sums.normalise(scores, length, scores)
    return KatzScores(
        *(graph, run.stats(), run.trace()),
        scores=sums.restore(scores),
        iterations=iterations,
        error=error,
        converged=error < tolerance or n == 0,
        tolerance=tolerance,
        weighted=weighted,
        alpha=factor,
        normalized=normalized,
        beta=constant,
    )


def _default_alpha(graph: Graph, weighted: bool) -> float:
    """Return a factor for which the iteration converges: no eigenvalue exceeds the largest sum of a row."""
    indptr, _, weights = graph.csc
    if weighted and weights is not None:
        rows = np.flatnonzero(np.diff(indptr))
        largest = float(np.add.reduceat(weights, indptr[rows], dtype=np.float64).max()) if len(rows) else 0.0
    else:
        largest = float(graph.in_degrees.max(initial=0))
    # The inverse of a subnormal number may be infinite.
    return _SAFE / max(largest, np.finfo(np.float64).tiny) if largest > 0 else _SAFE


def _beta(graph: Graph, beta: Any) -> Array:
    """Return the constant of each vertex, float64[n]."""
    if isinstance(beta, Real):
        return np.full(graph.num_vertices, check_number("beta", beta, 0), np.float64)
    constant = vertex_vector(graph, "beta", beta)
    if (constant < 0).any():
        v = int((constant < 0).argmax())
        raise ArgumentError(
            f"beta has {constant[v]} for the vertex {graph.to_ids(np.array([v])).tolist()[0]!r}: "
            "pass numbers of at least 0"
        )
    return constant

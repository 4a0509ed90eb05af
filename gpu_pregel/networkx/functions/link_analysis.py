"""PageRank and HITS."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from gpu_pregel.algorithms import pagerank as engine
from gpu_pregel.algorithms._iterations import NeighborSums
from gpu_pregel.networkx.graph import Array, BackendGraph

_LEAST_NODES, _LEAST_ITERATIONS, _FIRST_ITERATIONS, _MOST_ITERATIONS = 16, 20, 8, 100
"""When singular vectors are found by power iteration: for fewer nodes or iterations, ARPACK decides on errors."""
_SHARE_OF_ERROR = 0.01
"""The error of power iteration as a share of the tolerance: both results differ by little more than NetworkX's."""


def pagerank(
    G: BackendGraph,
    alpha: float = 0.85,
    personalization: dict[Any, float] | None = None,
    max_iter: int = 100,
    tol: float = 1e-06,
    nstart: dict[Any, float] | None = None,
    weight: Any = "weight",
    dangling: dict[Any, float] | None = None,
) -> dict[Any, float]:
    """Return the PageRank of each node."""
    n = len(G)
    if n == 0:
        return {}
    initial = None
    if nstart is not None:
        initial = _vector(G, nstart)
        initial /= initial.sum()
    teleport = _distribution(G, personalization)
    jumps = teleport
    if dangling is not None:
        jumps = _vector(G, dangling)
        jumps /= jumps.sum()
    column = G.moderate_values(weight)
    name = None if column is None or (column == 1).all() else weight
    vectors = [vector for vector in (initial, teleport, column) if vector is not None]
    regular = all(np.isfinite(vector).all() and (vector >= 0).all() for vector in vectors)
    if regular and dangling is None and 0 < alpha < 1 and tol >= 0 and max_iter >= 1:
        found = engine.pagerank(
            G.engine(name),
            damping=alpha,
            tolerance=n * tol,
            max_iterations=max_iter,
            personalization=teleport,
            initial=initial,
        )
        if not found.converged:
            raise nx.PowerIterationFailedConvergence(max_iter)
        return G.by_node(found.to_numpy())
    scores = np.full(n, 1.0 / n) if initial is None else initial
    everywhere = np.full(n, 1.0 / n)
    return G.by_node(
        _iterate(
            G,
            name,
            scores,
            everywhere if teleport is None else teleport,
            everywhere if jumps is None else jumps,
            (alpha, max_iter, n * tol),
        )
    )


def _iterate(
    G: BackendGraph, weight: Any, scores: Array, teleport: Array, jumps: Array, options: tuple[float, int, float]
) -> Array:
    """Iterate with any vectors and weights, as SciPy would."""
    alpha, max_iter, tolerance = options
    column = G.edge_values(weight, mixed=True)
    totals = np.bincount(G.topology.sources, column, minlength=len(G)).astype(float)
    dangling = totals == 0
    inverses = np.divide(1.0, totals, where=~dangling, out=np.zeros(len(G)))
    run = G.run_of("hits", weight)
    sums: NeighborSums = run.execute(run.graph, weighted=weight is not None)
    for _ in range(max_iter):
        shift = alpha * scores[dangling].sum() * jumps + (1 - alpha) * teleport
        following, _ = sums.advance_on_host(scores * inverses, shift, scale=float(alpha))
        change = np.absolute(following - scores).sum()
        scores = following
        if change < tolerance:
            return scores
    raise nx.PowerIterationFailedConvergence(max_iter)


def _vector(G: BackendGraph, given: Any) -> Array:
    return np.array([given.get(node, 0) for node in G], dtype=float)


def _distribution(G: BackendGraph, personalization: Any) -> Array | None:
    if personalization is None:
        return None
    vector = _vector(G, personalization)
    if vector.sum() == 0:
        raise ZeroDivisionError
    vector /= vector.sum()
    return vector


def google_matrix(
    G: BackendGraph,
    alpha: float = 0.85,
    personalization: dict[Any, float] | None = None,
    nodelist: list[Any] | None = None,
    weight: Any = "weight",
    dangling: dict[Any, float] | None = None,
) -> Array:
    """Return the matrix of PageRank, float64[n, n]."""
    n = len(G)
    nodes = list(G) if nodelist is None else nodelist
    ranks = np.arange(n)
    if nodelist is not None:
        ranks[[G.topology.numbers[node] for node in nodelist]] = np.arange(n)
    matrix = np.zeros((n, n))
    column = G.edge_values(weight, mixed=True)
    np.add.at(matrix, (ranks[G.topology.sources], ranks[G.topology.neighbors]), 1 if column is None else column)
    if n == 0:
        return matrix
    if personalization is None:
        teleport = np.repeat(1.0 / n, n)
    else:
        teleport = np.array([personalization.get(node, 0) for node in nodes], dtype=float)
        if teleport.sum() == 0:
            raise ZeroDivisionError
        teleport /= teleport.sum()
    jumps = teleport
    if dangling is not None:
        jumps = np.array([dangling.get(node, 0) for node in nodes], dtype=float)
        jumps /= jumps.sum()
    matrix[matrix.sum(axis=1) == 0] = jumps
    matrix /= matrix.sum(axis=1)[:, np.newaxis]
    matrix *= alpha
    matrix += (1 - alpha) * teleport
    return matrix


def hits(
    G: BackendGraph,
    max_iter: int = 100,
    tol: float = 1.0e-8,
    nstart: dict[Any, float] | None = None,
    normalized: bool = True,
) -> tuple[dict[Any, float], dict[Any, float]]:
    """Return the hub and the authority scores, by the largest singular value as in NetworkX."""
    n = len(G)
    if n == 0:
        return {}, {}
    if max_iter <= 0:
        raise nx.PowerIterationFailedConvergence(max_iter)
    hubs, authorities = _largest_vectors(G, max_iter, tol) if nstart is None else (None, None)
    if hubs is None or authorities is None:
        hubs, authorities = _vectors_by_arpack(G, max_iter, tol, nstart)
    if normalized:
        hubs /= hubs.sum()
        authorities /= authorities.sum()
    return G.by_node(hubs), G.by_node(authorities)


def _largest_vectors(G: BackendGraph, max_iter: int, tol: float) -> tuple[Array, Array] | tuple[None, None]:
    """Return the vectors of the largest singular value by power iteration, or None if that converges too slowly."""
    n, column = len(G), G.edge_values("weight", mixed=True)
    if (
        n < _LEAST_NODES
        or max_iter < _LEAST_ITERATIONS
        or not G.topology.m
        or (column is not None and column.min() < 0)
    ):
        return None, None
    name = None if column is None or (column == 1).all() else "weight"
    run = G.run_of("hits", name)
    along, against = (run.execute(rows, weighted=name is not None) for rows in (run.graph, run.graph.transpose()))
    authorities, zeros = np.full(n, 1 / np.sqrt(n)), np.zeros(n)
    before = 0.0
    for iteration in range(_MOST_ITERATIONS):
        hubs, _ = against.advance_on_host(authorities, zeros)
        following, norm = along.advance_on_host(hubs, zeros)
        if not norm:
            break
        following /= norm
        change = float(np.linalg.norm(following - authorities))
        authorities = following
        # The remaining changes are a geometric series: if it is long, ARPACK is faster.
        ratio, before = change / before if before else 1.0, change
        allowed = (1 - ratio) * _SHARE_OF_ERROR * min(tol, 1e-8)
        if change * ratio <= allowed:
            return against.advance_on_host(authorities, zeros)[0], authorities
        if iteration >= _FIRST_ITERATIONS and change * ratio**_MOST_ITERATIONS > allowed:
            break
    return None, None


def _vectors_by_arpack(G: BackendGraph, max_iter: int, tol: float, nstart: Any) -> tuple[Array, Array]:
    n, topology, column = len(G), G.topology, G.edge_values("weight", mixed=True)
    data = np.ones(topology.m) if column is None else column.astype(float)
    rows = (data, topology.neighbors.astype(np.int32), topology.indptr)
    matrix = scipy.sparse.csr_array(rows, shape=(n, n), copy=True)
    matrix.sum_duplicates()
    start = None if nstart is None else np.array(list(nstart.values()))
    try:
        _, _, vectors = scipy.sparse.linalg.svds(matrix, k=1, v0=start, maxiter=max_iter, tol=tol)
    except scipy.sparse.linalg.ArpackNoConvergence as error:
        raise nx.PowerIterationFailedConvergence(max_iter) from error
    authorities = vectors.flatten().real
    return matrix @ authorities, authorities

"""Centralities that follow from degrees, neighbours and eigenvectors."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from gpu_pregel.algorithms._iterations import NeighborSums
from gpu_pregel.algorithms.connected_components import connected_components as components
from gpu_pregel.algorithms.strongly_connected_components import strongly_connected_components as strong_components
from gpu_pregel.kernels.networkx.votes_cpu import elect
from gpu_pregel.networkx.degrees import degrees
from gpu_pregel.networkx.graph import Array, BackendGraph
from gpu_pregel.networkx.nodes import chosen_nodes
from gpu_pregel.networkx.results import order_of_insertion


def degree_centrality(G: BackendGraph) -> dict[Any, float]:
    """Return the degree of each node as a share of the other nodes."""
    return _share_of_others(G, "in+out")


def in_degree_centrality(G: BackendGraph) -> dict[Any, float]:
    """Return the in-degree of each node as a share of the other nodes."""
    return _share_of_others(G, "in")


def out_degree_centrality(G: BackendGraph) -> dict[Any, float]:
    """Return the out-degree of each node as a share of the other nodes."""
    return _share_of_others(G, "out")


def _share_of_others(G: BackendGraph, kind: str) -> dict[Any, float]:
    if len(G) <= 1:
        return dict.fromkeys(G, 1)
    return G.by_node(degrees(G, kind) * (1.0 / (len(G) - 1.0)))


def eigenvector_centrality(
    G: BackendGraph,
    max_iter: int = 100,
    tol: float = 1e-06,
    nstart: dict[Any, float] | None = None,
    weight: Any = None,
) -> dict[Any, float]:
    """Return the eigenvector of the largest eigenvalue, by power iteration."""
    n = len(G)
    if n == 0:
        raise nx.NetworkXPointlessConcept("cannot compute centrality for the null graph")
    scores = np.ones(n) if nstart is None else _given(G, nstart)
    if not scores.any():
        raise nx.NetworkXError("initial vector cannot have all zero values")
    scores = scores / (n if nstart is None else sum(nstart.values()))
    sums, shift = _sums(G, weight), np.zeros(n)
    for _ in range(max_iter):
        following, norm = sums.advance_on_host(scores, shift, own=1.0)
        following /= norm or 1
        change = np.abs(following - scores).sum()
        scores = following
        if change < n * tol:
            return _ordered(G, scores, nstart)
    raise nx.PowerIterationFailedConvergence(max_iter)


def eigenvector_centrality_numpy(
    G: BackendGraph, weight: Any = None, max_iter: int = 50, tol: float = 0
) -> dict[Any, float]:
    """Return the eigenvector of the largest eigenvalue, by ARPACK."""
    n, topology = len(G), G.topology
    if n == 0:
        raise nx.NetworkXPointlessConcept("cannot compute centrality for the null graph")
    connected = strong_components if topology.directed else components
    if connected(G.engine()).count > 1:
        raise nx.AmbiguousSolution(
            "`eigenvector_centrality_numpy` does not give consistent results for disconnected graphs"
        )
    column = G.edge_values(weight, mixed=True)
    data = np.ones(topology.m) if column is None else column.astype(float)
    places = (topology.neighbors.astype(np.int32), topology.sources.astype(np.int32))
    matrix = scipy.sparse.coo_array((data, places), shape=(n, n)).tocsr()
    _, vectors = scipy.sparse.linalg.eigs(matrix, k=1, which="LR", maxiter=max_iter, tol=tol)
    largest = vectors.flatten().real
    return G.by_node(largest / (np.sign(largest.sum()) * np.sqrt((largest**2).sum())))


def katz_centrality(
    G: BackendGraph,
    alpha: float = 0.1,
    beta: Any = 1.0,
    max_iter: int = 1000,
    tol: float = 1e-06,
    nstart: dict[Any, float] | None = None,
    normalized: bool = True,
    weight: Any = None,
) -> dict[Any, float]:
    """Return the Katz centrality of each node, by power iteration."""
    n = len(G)
    if n == 0:
        return {}
    scores = np.zeros(n) if nstart is None else _given(G, nstart)
    try:
        shift = np.full(n, float(beta))
    except (TypeError, ValueError, AttributeError) as error:
        if set(beta) != set(G):
            raise nx.NetworkXError("beta dictionary must have a value for every node") from error
        shift = _given(G, beta)
    sums = _sums(G, weight)
    for _ in range(max_iter):
        following, norm = sums.advance_on_host(scores, shift, scale=float(alpha))
        change = np.abs(following - scores).sum()
        scores = following
        if change < n * tol:
            if normalized and norm > 0:
                scores *= 1.0 / norm
            found = _ordered(G, scores, nstart)
            return (
                {node: np.float64(score) for node, score in found.items()} if isinstance(alpha, np.float64) else found
            )
    raise nx.PowerIterationFailedConvergence(max_iter)


def _sums(G: BackendGraph, weight: Any) -> NeighborSums:
    weighted = G.moderate_values(weight, scalars=False) is not None
    run = G.run_of("eigenvector_centrality", weight)
    sums: NeighborSums = run.execute(run.graph, weighted=weighted)
    return sums


def _given(G: BackendGraph, values: Any) -> Array:
    """Return numbers given by node as float64[n]."""
    if set(values) != set(G):
        raise NotImplementedError("a vector does not have a number for each node")
    if any(type(value) not in (bool, int, float) for value in values.values()):
        raise NotImplementedError("a vector has numbers of another type than int or float, such as NumPy's")
    return np.fromiter((values[node] for node in G), np.float64, len(G))


def _ordered(G: BackendGraph, scores: Array, nstart: Any) -> dict[Any, float]:
    """Return the scores in the order of the vector with which the iteration began."""
    found = G.by_node(scores)
    return found if nstart is None else {node: found[node] for node in nstart}


def laplacian_centrality(
    G: BackendGraph,
    normalized: bool = True,
    nodelist: list[Any] | None = None,
    weight: Any = "weight",
    walk_type: str | None = None,
    alpha: float = 0.95,
) -> dict[Any, float]:
    """Return by how much the Laplacian energy falls without each node.

    Only the row, the column and the diagonal change, so that no matrix is built.
    """
    n, topology = len(G), G.topology
    if n == 0:
        raise nx.NetworkXPointlessConcept("null graph has no centrality defined")
    if degrees(G, weight=weight, scalars=True).sum() == 0:
        if normalized:
            raise ZeroDivisionError("graph with no edges has zero full energy")
        return dict.fromkeys(G, 0)
    nodes = list(G) if nodelist is None else nodelist
    if nodelist is not None and len(set(chosen_nodes(G, nodelist))) != len(nodelist):
        raise nx.NetworkXError("nodelist has duplicate nodes or nodes not in G")
    column = G.edge_values(weight, scalars=True)
    data = np.ones(topology.m) if column is None else column.astype(float)
    rows = (data, topology.neighbors.astype(np.int64), topology.indptr)
    matrix = scipy.sparse.csr_array(rows, shape=(n, n), copy=True)
    matrix.sum_duplicates()
    diagonal = matrix.sum(axis=1) - matrix.diagonal()
    matrix.setdiag(0)
    entries = matrix.tocoo()
    sources, targets = entries.coords
    lost = 2 * entries.data**2 + diagonal[targets] ** 2 - (diagonal[targets] - np.abs(entries.data)) ** 2
    drops = diagonal**2 + np.bincount(sources, lost, minlength=n)
    if normalized:
        energy = (diagonal**2).sum() + (entries.data**2).sum()
        # With self-loops alone, NetworkX divides 0 by 0.
        drops = drops / energy if energy else np.full(n, drops[0] / energy)
    values = G.by_node(drops)
    return {node: values[node] for node in nodes}


def voterank(G: BackendGraph, number_of_nodes: int | None = None) -> list[Any]:
    """Return the nodes elected one after the other; neighbours of the elected lose votes."""
    n, topology = len(G), G.topology
    if n == 0:
        return []
    total = topology.m if topology.directed else int(degrees(G).sum())
    limit = n if number_of_nodes is None or number_of_nodes > n else number_of_nodes
    if total == 0:
        return []
    voters, voted = topology.neighbors, (topology.indptr, topology.neighbors)
    if topology.directed:
        voted = topology.predecessors
    else:
        # NetworkX adds up votes edge by edge, on which ties depend.
        voters = voters[order_of_insertion(topology.sources, topology.neighbors)]
    abilities, votes = np.ones(n), np.full(n, -1.0)
    stale, elected = np.ones(n, np.bool_), np.zeros(n, np.bool_)
    rows = (topology.indptr, voters, topology.neighbors, *voted)
    found = []
    for _ in range(limit):
        chosen = elect(*rows, topology.directed, 1 / (total / n), abilities, votes, stale, elected)
        if chosen < 0:
            break
        found.append(topology.nodes[chosen])
    return found

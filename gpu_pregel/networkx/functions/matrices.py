"""Matrices of graphs."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import networkx as nx
import numpy as np
import scipy.sparse

from gpu_pregel.networkx.graph import Array, BackendGraph


def to_scipy_sparse_array(
    G: BackendGraph,
    nodelist: Collection[Any] | None = None,
    dtype: Any = None,
    weight: str | None = "weight",
    format: str = "csr",
) -> Any:
    """Return the adjacency matrix; the weights of parallel edges are added."""
    n = len(G)
    if n == 0:
        raise nx.NetworkXError("Graph has no nodes or edges")
    topology = G.topology
    rows, columns = topology.sources, topology.neighbors
    # The type of a part of mixed weights depends on the part.
    values = _weights(G, weight, mixed=nodelist is None or len(nodelist) == n)
    if nodelist is not None:
        n = len(nodelist)
        places = _places(G, nodelist)
        rows, columns = places[rows], places[columns]
        kept = (rows >= 0) & (columns >= 0)
        rows, columns, values = rows[kept], columns[kept], values[kept]
    if len(rows) == 0:
        # NetworkX makes the array from an empty list, of which NumPy makes floats.
        values = np.empty(0)
    _check_range(values, dtype)
    matrix = scipy.sparse.coo_array((values, (rows.astype(np.int32), columns.astype(np.int32))), (n, n), dtype=dtype)
    try:
        # In the format COO the weights are those of the graph.
        return matrix.asformat(format, copy=True)
    except ValueError as error:
        raise nx.NetworkXError(f"Unknown sparse matrix format: {format}") from error


def adjacency_matrix(
    G: BackendGraph, nodelist: Collection[Any] | None = None, dtype: Any = None, weight: str | None = "weight"
) -> Any:
    """Return the adjacency matrix in the format CSR."""
    return to_scipy_sparse_array(G, nodelist, dtype, weight)


def to_numpy_array(
    G: BackendGraph,
    nodelist: Collection[Any] | None = None,
    dtype: Any = None,
    order: Any = None,
    multigraph_weight: Any = sum,
    weight: str | None = "weight",
    nonedge: Any = 0.0,
) -> Array:
    """Return the adjacency matrix as a dense array; the weights of parallel edges are added."""
    topology, n = G.topology, len(G)
    rows, columns = topology.sources.astype(np.int64), topology.neighbors.astype(np.int64)
    values = _weights(G, weight, mixed=True)
    if nodelist is not None:
        n = len(nodelist)
        absent = {node for node in nodelist if node not in topology.numbers}
        if absent:
            raise nx.NetworkXError(f"Nodes {absent} in nodelist is not in G")
        if len(set(nodelist)) < n:
            raise nx.NetworkXError("nodelist contains duplicates.")
        places = _ranks(G, nodelist)
        rows, columns = places[rows], places[columns]
        kept = (rows >= 0) & (columns >= 0)
        rows, columns, values = rows[kept], columns[kept], values[kept]
    matrix = np.full((n, n), fill_value=nonedge, dtype=dtype, order=order)
    _check_range(values, dtype)
    if len(rows) == 0:
        return matrix
    if topology.multigraph:
        keys, number = np.unique(rows * n + columns, return_inverse=True)
        totals = np.zeros(len(keys), values.dtype)
        np.add.at(totals, number, values)
        rows, columns, values = keys // n, keys % n, totals
    matrix[rows, columns] = values
    return matrix


def laplacian_matrix(G: BackendGraph, nodelist: Any = None, weight: str | None = "weight") -> Any:
    """Return the matrix of degrees less the adjacency matrix."""
    return _laplacian(to_scipy_sparse_array(G, nodelist, weight=weight))


def normalized_laplacian_matrix(G: BackendGraph, nodelist: Any = None, weight: str | None = "weight") -> Any:
    """Return the Laplacian matrix divided by the square roots of the degrees of rows and columns."""
    adjacency = to_scipy_sparse_array(G, nodelist, weight=weight)
    with np.errstate(divide="ignore"):
        roots = 1.0 / np.sqrt(adjacency.sum(axis=1))
    roots[np.isinf(roots)] = 0
    scale = _diagonal(roots)
    return scale @ (_laplacian(adjacency) @ scale)


def modularity_matrix(G: BackendGraph, nodelist: Any = None, weight: str | None = None) -> Array:
    """Return the adjacency matrix less what the degrees let expect."""
    adjacency = to_scipy_sparse_array(G, nodelist, weight=weight)
    degrees = adjacency.sum(axis=1)
    expected: Array = adjacency - np.outer(degrees, degrees) / (2 * (degrees.sum() * 0.5))
    return expected


def directed_modularity_matrix(G: BackendGraph, nodelist: Any = None, weight: str | None = None) -> Array:
    """Return the adjacency matrix of a directed graph less what the degrees let expect."""
    adjacency = to_scipy_sparse_array(G, nodelist, weight=weight)
    in_degrees, out_degrees = adjacency.sum(axis=0), adjacency.sum(axis=1)
    expected: Array = adjacency - np.outer(out_degrees, in_degrees) / in_degrees.sum()
    return expected


def incidence_matrix(
    G: BackendGraph,
    nodelist: Collection[Any] | None = None,
    edgelist: Any = None,
    oriented: bool = False,
    weight: str | None = None,
    *,
    dtype: Any = None,
) -> Any:
    """Return the matrix with a row for each node and a column for each edge."""
    topology = G.topology
    # NetworkX lists an undirected edge with its first node.
    once = np.arange(topology.m) if topology.directed else np.flatnonzero(topology.sources <= topology.neighbors)
    heads, tails = topology.sources[once], topology.neighbors[once]
    n, count = len(G), len(once)
    values, numbers = _weights(G, weight)[once], np.arange(count)
    plain = heads != tails
    heads, tails, values, numbers = heads[plain], tails[plain], values[plain], numbers[plain]
    if nodelist is not None:
        n = len(nodelist)
        ranks = _ranks(G, nodelist)
        outside = np.flatnonzero((ranks[heads] < 0) | (ranks[tails] < 0))
        if len(outside):
            u, v = (topology.nodes[ends[outside[0]]] for ends in (heads, tails))
            raise nx.NetworkXError(f"node {u} or {v} in edgelist but not in nodelist")
        heads, tails = ranks[heads], ranks[tails]
    both = np.concatenate([-values if oriented else values, values])
    rows = np.concatenate([heads, tails]).astype(np.int32)
    columns = np.concatenate([numbers, numbers]).astype(np.int32)
    kind = np.float64 if dtype is None else dtype
    return scipy.sparse.coo_array((both.astype(kind), (rows, columns)), (n, count)).asformat("csc")


def biadjacency_matrix(
    G: BackendGraph,
    row_order: Collection[Any],
    column_order: Collection[Any] | None = None,
    dtype: Any = None,
    weight: str | None = "weight",
    format: str = "csr",
) -> Any:
    """Return the matrix of the edges between two sets of nodes."""
    if len(row_order) == 0:
        raise nx.NetworkXError("row_order is empty list")
    if len(row_order) != len(set(row_order)):
        raise nx.NetworkXError("Ambiguous ordering: `row_order` contained duplicates.")
    if column_order is None:
        column_order = list(set(G.topology.nodes) - set(row_order))
    if len(column_order) != len(set(column_order)):
        raise nx.NetworkXError("Ambiguous ordering: `column_order` contained duplicates.")
    topology = G.topology
    of_rows, of_columns = _ranks(G, row_order), _ranks(G, column_order)
    rows, columns = of_rows[topology.sources], of_columns[topology.neighbors]
    kept = (rows >= 0) & (columns >= 0)
    if not topology.directed:
        # An edge between two nodes of the rows is found from the first of them.
        ends = of_rows[topology.neighbors]
        kept &= (ends < 0) | (rows <= ends)
    rows, columns, values = rows[kept], columns[kept], _weights(G, weight)[kept]
    if len(rows) == 0:
        if topology.m:
            raise ValueError("not enough values to unpack (expected 3, got 0)")
        values = np.empty(0)
    shape = len(row_order), len(column_order)
    matrix = scipy.sparse.coo_array((values, (rows.astype(np.int32), columns.astype(np.int32))), shape, dtype=dtype)
    try:
        return matrix.asformat(format)
    except ValueError as error:
        raise nx.NetworkXError(f"Unknown sparse array format: {format}") from error


def _weights(G: BackendGraph, weight: str | None, *, mixed: bool = False) -> Array:
    values = G.edge_values(weight, mixed=mixed, scalars=True)
    return np.ones(G.topology.m, np.int64) if values is None else values


def _check_range(values: Array, dtype: Any) -> None:
    """Refuse weights outside of the range of a type of integers: NetworkX's error depends on the first of them."""
    kind = np.dtype(dtype)
    if kind.kind in "iu" and len(values):
        limits = np.iinfo(kind)
        if values.min() < limits.min or values.max() > limits.max:
            raise NotImplementedError(f"the edges' weights are outside of the range of {kind}")


def _ranks(G: BackendGraph, nodelist: Collection[Any]) -> Array:
    """Return the place of each vertex in a list of nodes, or -1; nodes that are not of the graph are ignored."""
    numbers = G.topology.numbers
    ranks = np.full(len(G), -1)
    listed = [(numbers[node], place) for place, node in enumerate(nodelist) if node in numbers]
    if listed:
        vertices, places = np.array(listed).T
        ranks[vertices] = places
    return ranks


def _places(G: BackendGraph, nodelist: Collection[Any]) -> Array:
    """Return the place of each vertex in a list of distinct nodes of the graph, or -1."""
    if len(nodelist) == 0:
        raise nx.NetworkXError("nodelist has no nodes")
    ranks = _ranks(G, nodelist)
    if int(np.count_nonzero(ranks >= 0)) != len(nodelist):
        for node in nodelist:
            if node not in G:
                raise nx.NetworkXError(f"Node {node} in nodelist is not in G")
        raise nx.NetworkXError("nodelist contains duplicates.")
    return ranks


def _diagonal(values: Array) -> Any:
    n = len(values)
    return scipy.sparse.dia_array((values, 0), shape=(n, n)).tocsr()


def _laplacian(adjacency: Any) -> Any:
    return _diagonal(adjacency.sum(axis=1)) - adjacency

"""Shortest paths between all pairs of nodes of a small graph: the Floyd-Warshall algorithm."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any, NamedTuple

import networkx as nx
import numpy as np

from gpu_pregel.host.devices.threads import parallel, thread_count
from gpu_pregel.kernels.networkx.dense_paths_cpu import shorten, shorten_with_predecessors
from gpu_pregel.networkx.conditions import EXACT
from gpu_pregel.networkx.graph import Array, BackendGraph

_CHUNK_ENTRIES = 1 << 18
"""Entries of the matrix that a thread changes at a time."""


class _Edges(NamedTuple):
    """The edges in NetworkX's order, an undirected one in both directions, one after the other."""

    sources: Array
    targets: Array
    weights: Array
    integers: bool


def _column(G: BackendGraph, weight: Any, *, scalars: bool = False) -> Array:
    """Return the weights of all stored edges; which of -0.0 and 0.0 is the smaller depends on their order."""
    column = np.ones(G.topology.m) if weight is None else G.edge_values(weight, scalars=scalars)
    assert column is not None
    if column.dtype.kind == "f" and (np.signbit(column) & (column == 0)).any():
        raise NotImplementedError(f"an edge's {weight!r} is -0.0")
    return column


def _weights(G: BackendGraph, weight: Any) -> tuple[Array, bool]:
    """Return the weights of all stored edges, and whether they are integers; 1.0 where no edge has one."""
    column = _column(G, weight)
    if column.dtype.kind == "f" or not np.any(column == 1):
        return column.astype(np.float64), column.dtype.kind == "i"
    source = G.topology.source
    first = G.edge_data()[0] if source is None else next(iter(source.edges(data=True)))[-1]
    return column.astype(np.float64), weight in first


def _edges(G: BackendGraph, weight: Any) -> _Edges:
    topology = G.topology
    weights, integers = _weights(G, weight)
    sources, targets = topology.sources.astype(np.int64), topology.neighbors.astype(np.int64)
    if not G.is_directed():
        once = sources <= targets
        pairs = np.stack([sources[once], targets[once]], axis=1)
        sources, targets = pairs.ravel(), pairs[:, ::-1].ravel()
        weights = np.repeat(weights[once], 2)
    return _Edges(sources, targets, weights, integers)


def _matrix(n: int, edges: _Edges) -> Array:
    """Return the smallest weights of the edges between all pairs, infinity where there is none, as float64[n, n]."""
    distances = np.full((n, n), np.inf)
    np.minimum.at(distances, (edges.sources, edges.targets), edges.weights)
    return distances


def _shorten_all(distances: Array) -> None:
    """Take the ways through each vertex in turn."""
    n = len(distances)
    chunk = max(1, _CHUNK_ENTRIES // max(n, 1))
    for w in range(n):
        row, column = distances[w].copy(), distances[:, w].copy()
        parallel(shorten, n, chunk, row, column, distances, threads=thread_count(None))


def floyd_warshall_numpy(G: BackendGraph, nodelist: Any = None, weight: Any = "weight") -> Array:
    """Return the matrix of the distances of all pairs of nodes."""
    order = None
    if nodelist is not None:
        if not (len(nodelist) == len(G) == len(set(nodelist))):
            raise nx.NetworkXError(
                "nodelist must contain every node in G with no repeats."
                "If you wanted a subgraph of G use G.subgraph(nodelist)"
            )
        if others := set(nodelist) - set(G):
            raise nx.NetworkXError(f"Nodes {others} in nodelist is not in G")
        order = np.array([G.topology.numbers[node] for node in nodelist], np.int64)
    column = _column(G, weight, scalars=True)
    topology = G.topology
    distances = _matrix(len(G), _Edges(topology.sources, topology.neighbors, column.astype(np.float64), False))
    if order is not None:
        distances = np.ascontiguousarray(distances[np.ix_(order, order)])
    np.fill_diagonal(distances, 0)
    _shorten_all(distances)
    return distances


def _first_occurrences(keys: Array) -> Array:
    """Return where each key occurs first, in this order."""
    return np.sort(np.unique(keys, return_index=True)[1])


def _columns_by_row(n: int, edges: _Edges) -> list[list[int]]:
    """Return for each vertex those it has edges to, in the order of the edges."""
    first = _first_occurrences(edges.sources * n + edges.targets)
    sources, targets = edges.sources[first], edges.targets[first]
    by_row = np.argsort(sources, kind="stable")
    ends = np.cumsum(np.bincount(sources, minlength=n)).tolist()
    columns = targets[by_row].tolist()
    return [columns[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


def _distance_dicts(G: BackendGraph, edges: _Edges, distances: Array) -> dict[Any, dict[Any, Any]]:
    """Return the distances by node and node: first that to itself, then those along edges, then the others."""
    nodes, n = G.topology.nodes, len(G)
    free_loops = edges.sources[(edges.sources == edges.targets) & (edges.weights == 0)]
    floats = set() if edges.integers else set(free_loops.tolist())
    result: dict[Any, dict[Any, Any]] = {}
    for u, columns in enumerate(_columns_by_row(n, edges) if len(edges.sources) else [[] for _ in nodes]):
        values = distances[u].tolist()
        if edges.integers:
            values = [int(value) if value < math.inf else value for value in values]
        elif values[u] == 0 and u not in floats:
            values[u] = 0
        row: defaultdict[Any, Any] = defaultdict(_infinity)
        for v in dict.fromkeys([u, *columns, *range(n)]):
            row[nodes[v]] = values[v]
        result[nodes[u]] = row
    return result


def _infinity() -> float:
    """Return the distance of nodes that NetworkX's dicts give where there is none."""
    return math.inf


def floyd_warshall(G: BackendGraph, weight: Any = "weight") -> dict[Any, dict[Any, Any]]:
    """Return the distances of all pairs of nodes."""
    edges = _edges(G, weight)
    if len(edges.weights) and edges.weights.min() < 0:
        return floyd_warshall_predecessor_and_distance(G, weight)[1]
    distances = _matrix(len(G), edges)
    np.fill_diagonal(distances, 0)
    _shorten_all(distances)
    return _distance_dicts(G, edges, distances)


def floyd_warshall_predecessor_and_distance(
    G: BackendGraph, weight: Any = "weight"
) -> tuple[dict[Any, dict[Any, Any]], dict[Any, dict[Any, Any]]]:
    """Return the node before each on a shortest path from each, and the distances of all pairs of nodes."""
    edges = _edges(G, weight)
    nodes, n = G.topology.nodes, len(G)
    distances = _matrix(n, edges)
    np.fill_diagonal(distances, np.minimum(np.diag(distances), 0))
    predecessors, times = np.full((n, n), -1, np.int32), np.full((n, n), -1, np.int32)
    predecessors[edges.sources, edges.targets] = edges.sources
    for w in range(n):
        shorten_with_predecessors(w, distances, predecessors, times)
    if edges.integers and distances.min(initial=0) < -EXACT:
        raise NotImplementedError(f"an edge's {weight!r} is on a negative cycle that runs below -2^53")
    columns = _columns_by_row(n, edges)
    before = {}
    for u in edges.sources[_first_occurrences(edges.sources)].tolist():
        later = np.flatnonzero(times[u] >= 0)
        later = later[np.argsort(times[u, later], kind="stable")].tolist()
        row = predecessors[u].tolist()
        before[nodes[u]] = {nodes[v]: nodes[row[v]] for v in [*columns[u], *later]}
    return before, _distance_dicts(G, edges, distances)

"""Triangles, squares and clustering."""

from __future__ import annotations

from collections import Counter
from typing import Any

import networkx as nx
import numpy as np

from gpu_pregel.algorithms import triangle_count as engine
from gpu_pregel.algorithms._triangles import without_repetitions
from gpu_pregel.host.devices.threads import parallel, thread_count
from gpu_pregel.kernels.networkx.neighborhoods_cpu import (
    count_common,
    count_squares,
    sum_all_triangles,
    sum_triangles,
)
from gpu_pregel.networkx.graph import Array, BackendGraph
from gpu_pregel.networkx.neighbor_rows import NeighborRows, acyclic_rows, symmetric_rows
from gpu_pregel.networkx.nodes import chosen_vertices

_CHUNK, _SQUARES_CHUNK = 64, 16
_BLOCKS, _BLOCK_MEMORY = 64, 1 << 28
_FEW = 8
"""The triangles of up to 1 / ``_FEW`` of the vertices are counted one by one."""


def triangles(G: BackendGraph, nodes: Any = None) -> Any:
    """Return the number of triangles with each node, or with one."""
    if nodes is None:
        return G.by_node(engine.triangle_count(G.engine()).to_numpy())
    vertices, found = triangles_of(G, nodes)
    counts = found // 2
    return int(counts[0]) if nodes in G else G.values_at(vertices, counts)


def clustering(G: BackendGraph, nodes: Any = None, weight: Any = None) -> Any:
    """Return the share of the pairs of neighbours that are joined, of each node or of one."""
    _refuse_multigraph(G)
    if not G.is_directed() and weight is None:
        vertices, totals = triangles_of(G, nodes)
        degrees = np.diff(_neighbors(G)[0])[vertices]
        pairs = degrees * (degrees - 1)
    else:
        vertices = chosen_vertices(G, nodes)
        totals = _sums_of_triangles(G, vertices, weight)
        pairs = _pairs(G)[vertices]
    result = G.values_at(vertices, np.divide(totals, pairs, where=pairs != 0, out=np.zeros(len(vertices))))
    # Without triangles it is the integer 0.
    result.update(dict.fromkeys(G.nodes_at(vertices[totals == 0]), 0))
    return result[nodes] if nodes in G else result


def average_clustering(G: BackendGraph, nodes: Any = None, weight: Any = None, count_zeros: bool = True) -> float:
    """Return the mean clustering of the nodes."""
    values = clustering(G, nodes, weight=weight).values()
    if not count_zeros:
        values = [value for value in values if abs(value) > 0]
    mean: float = sum(values) / len(values)
    return mean


def transitivity(G: BackendGraph) -> float:
    """Return the share of the pairs of edges at a node that are part of a triangle."""
    _refuse_multigraph(G)
    if not len(G):
        return 0
    if G.is_directed():
        _, counts = _common(G, np.arange(len(G)))
        total = int(counts.sum())
    else:
        total = 2 * int(engine.triangle_count(G.engine()).to_numpy().sum())
    degrees = np.diff(_neighbors(G)[0])
    return total / int((degrees * (degrees - 1)).sum()) if total else 0


def square_clustering(G: BackendGraph, nodes: Any = None) -> Any:
    """Return the share of the possible squares at each node that exist, or at one."""
    vertices = chosen_vertices(G, nodes)
    graph = without_repetitions(G.engine())
    results = np.empty((len(vertices), 2), np.int64)
    rows = (graph.indptr, graph.indices, *graph.csc[:2])
    parallel(count_squares, len(vertices), _SQUARES_CHUNK, *rows, vertices, results, threads=thread_count(None))
    values = [squares / potential if potential > 0 else 0 for squares, potential in results.tolist()]
    result = dict(zip(G.nodes_at(vertices), values, strict=True))
    return result[nodes] if nodes in G else result


def generalized_degree(G: BackendGraph, nodes: Any = None) -> Any:
    """Count the edges of each node, or of one, by the number of triangles of which they are part."""
    _refuse_multigraph(G)
    vertices = chosen_vertices(G, nodes)
    (indptr, neighbors), topology = _neighbors(G), G.topology
    begins, counts = _common(G, vertices)
    lengths = np.diff(indptr)[vertices]
    names, common = topology.nodes, counts.tolist()
    result = {}
    rows = zip(G.nodes_at(vertices), vertices.tolist(), begins.tolist(), lengths.tolist(), strict=True)
    for node, v, begin, length in rows:
        here = neighbors[indptr[v] : indptr[v + 1]].tolist()
        count_of = dict(zip([names[u] for u in here], common[begin : begin + length], strict=True))
        # The order of counts is that in which NetworkX iterates over the set of neighbours.
        row = topology.neighbors[topology.indptr[v] : topology.indptr[v + 1]].tolist()
        others = {names[u] for u in row} - {names[v]}
        result[node] = Counter(map(count_of.__getitem__, others))
    return result[nodes] if nodes in G else result


def _refuse_multigraph(G: BackendGraph) -> None:
    if G.is_multigraph():
        raise nx.NetworkXNotImplemented("not implemented for multigraph type")


def _neighbors(G: BackendGraph) -> tuple[Array, Array]:
    graph = without_repetitions(G.engine())
    return graph.indptr, graph.indices


def _common(G: BackendGraph, vertices: Array) -> tuple[Array, Array]:
    """Count what each out-neighbour of some vertices has in common with them; return where each vertex begins, too."""
    indptr, neighbors = _neighbors(G)
    ends = np.cumsum(np.diff(indptr)[vertices])
    begins = ends - np.diff(indptr)[vertices]
    counts = np.empty(int(ends[-1]) if len(ends) else 0, np.int64)
    rows = (indptr, neighbors, vertices, begins, counts)
    parallel(count_common, len(vertices), _CHUNK, *rows, threads=thread_count(None))
    return begins, counts


def triangles_of(G: BackendGraph, nodes: Any) -> tuple[Array, Array]:
    """Return chosen vertices, and for each twice the number of its triangles."""
    _refuse_multigraph(G)
    vertices = chosen_vertices(G, nodes)
    if len(vertices) * _FEW > len(G):
        return vertices, 2 * np.asarray(engine.triangle_count(G.engine()).to_numpy())[vertices]
    begins, counts = _common(G, vertices)
    ends = np.append(begins[1:], len(counts))
    totals = np.append(0, np.cumsum(counts))
    return vertices, totals[ends] - totals[begins]


def _pairs(G: BackendGraph) -> Array:
    """Return the number of triangles, both ways round, that could be at each vertex, int64[n]."""
    degrees = np.diff(symmetric_rows(G, None).indptr)
    pairs: Array = degrees * (degrees - 1)
    if not G.is_directed():
        return pairs
    indptr, _ = _neighbors(G)
    total = np.diff(indptr) + np.diff(without_repetitions(G.engine()).csc.indptr)
    mutual = total - degrees
    return np.asarray(2 * (total * (total - 1) - 2 * mutual))


def _sums_of_triangles(G: BackendGraph, vertices: Array, weight: Any) -> Array:
    """Return the sums of the geometric means of triangles' weights, both ways round, in all directions of edges.

    A mean is the product of three cube roots, and those of the edges in both directions can be added up beforehand.
    """
    column = G.moderate_values(weight)
    if column is not None and len(column):
        if column.max() == 0:
            raise NotImplementedError(f"the edges' {weight!r} are at most 0")
        column = np.cbrt(column / column.max())
    rows = symmetric_rows(G, column)
    threads = thread_count(None)
    if len(vertices) * _FEW <= len(G):
        few = np.empty(len(vertices))
        parallel(sum_triangles, len(vertices), _CHUNK, *rows, vertices, few, threads=threads)
        return few
    forward: NeighborRows = acyclic_rows(rows)
    blocks = max(1, min(_BLOCKS, _BLOCK_MEMORY // (8 * len(G) + 1)))
    sums = np.zeros((blocks, len(G)))
    parallel(sum_all_triangles, blocks, 1, *forward, blocks, sums, threads=threads)
    totals: Array = 2 * sums.sum(axis=0)[vertices]
    return totals

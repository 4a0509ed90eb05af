"""Reads the adjacency of NetworkX graphs, dicts of dicts, into arrays, in the order of the dicts."""

from __future__ import annotations

from array import array
from contextlib import suppress
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpu_pregel.host.graphs.csr import INDEX_DTYPE, INDPTR_DTYPE

if TYPE_CHECKING:
    import networkx

Array = np.ndarray[Any, Any]

_TABLE_FACTOR = 4
"""Integers are looked up in a table if their range is at most so many times their number."""


class Adjacency(NamedTuple):
    """The neighbours of each node, in the order of the dicts: row ``u`` is ``neighbors[indptr[u]:indptr[u + 1]]``.

    Parallel edges of a multigraph are next to one another. An undirected edge is in both rows, a self-loop once.
    """

    nodes: list[Any]
    indptr: Array
    neighbors: Array


def read_adjacency(graph: networkx.Graph, *, predecessors: bool = False) -> Adjacency:
    """Read the out-edges of each node, or the in-edges; nodes are numbered in the order of the graph."""
    nodes = list(graph)
    rows = _rows(graph, predecessors)
    degrees = np.fromiter(map(len, rows), INDPTR_DTYPE, len(rows))
    occurrences: list[Any] = []
    for row in rows:
        occurrences += row
    neighbors = _numbers(nodes, occurrences)
    del occurrences
    if graph.is_multigraph():
        copies = np.fromiter(map(len, chain.from_iterable(row.values() for row in rows)), np.int64, len(neighbors))
        owners = np.repeat(np.arange(len(nodes)), degrees)
        degrees = np.bincount(owners, copies, minlength=len(nodes)).astype(INDPTR_DTYPE)
        neighbors = np.repeat(neighbors, copies)
    indptr = np.zeros(len(nodes) + 1, INDPTR_DTYPE)
    np.cumsum(degrees, out=indptr[1:])
    return Adjacency(nodes, indptr, neighbors)


def read_edge_data(graph: networkx.Graph) -> list[dict[Any, Any]]:
    """Return the attributes of each stored out-edge, in the order of :func:`read_adjacency`."""
    data = chain.from_iterable(row.values() for row in _rows(graph, False))
    if graph.is_multigraph():
        return list(chain.from_iterable(edges.values() for edges in data))
    return list(data)


def attribute_values(data: list[dict[Any, Any]], name: Any, default: Any) -> list[Any]:
    """Return one attribute of all edges or nodes."""
    try:
        return list(map(itemgetter(name), data))
    except KeyError:
        return [attributes.get(name, default) for attributes in data]


def _rows(graph: networkx.Graph, predecessors: bool) -> list[dict[Any, Any]]:
    adjacency = graph._pred if predecessors and graph.is_directed() else graph._adj
    if type(adjacency) is dict:
        return list(adjacency.values())
    # A view filters its nodes and edges each time that it is read.
    if graph.is_multigraph():
        return [{v: dict(edges) for v, edges in adjacency[u].items()} for u in graph]
    return [dict(adjacency[u]) for u in graph]


def _numbers(nodes: list[Any], occurrences: list[Any]) -> Array:
    """Return the number of the node at each occurrence."""
    n = len(nodes)
    if set(map(type, nodes)) == {int}:
        low, high = min(nodes), max(nodes)
        is_identity = low == 0 and high == n - 1 and nodes == list(range(n))
        if is_identity or (high - low < _TABLE_FACTOR * n and low > -(1 << 62) and high < 1 << 62):
            # An occurrence may be 1.0 or True where the node is 1: an array refuses the former.
            with suppress(TypeError):
                if is_identity:
                    return np.frombuffer(array("I", occurrences), INDEX_DTYPE)
                table = np.empty(high - low + 1, INDEX_DTYPE)
                table[np.array(nodes, np.int64) - low] = np.arange(n, dtype=INDEX_DTYPE)
                numbers: Array = table[np.frombuffer(array("q", occurrences), np.int64) - low]
                return numbers
    number = dict(zip(nodes, range(n), strict=True))
    return np.fromiter(map(number.__getitem__, occurrences), INDEX_DTYPE, len(occurrences))

"""Reads the adjacency of NetworkX graphs, dicts of dicts, into arrays, in the order of the dicts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpu_pregel.host.graphs.csr import INDEX_DTYPE, INDPTR_DTYPE
from gpu_pregel.kernels.graphs.networkx_adjacency_cpu import read_attribute, read_int_neighbors, read_str_neighbors

if TYPE_CHECKING:
    import networkx

Array = np.ndarray[Any, Any]

_TABLE_FACTOR = 4
"""Integers are looked up in a table if their range is at most this multiple of their number."""
_BLOCK = 1 << 20
"""Number of neighbours that a kernel reads while it holds the GIL, about a tenth of a second; then Ctrl-C is seen."""


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
    degrees, indptr = _degrees(rows)
    neighbors = _numbers(nodes, rows, indptr)
    if graph.is_multigraph():
        copies = np.fromiter(map(len, chain.from_iterable(row.values() for row in rows)), np.int64, len(neighbors))
        owners = np.repeat(np.arange(len(nodes)), degrees)
        np.cumsum(np.bincount(owners, copies, minlength=len(nodes)).astype(INDPTR_DTYPE), out=indptr[1:])
        neighbors = np.repeat(neighbors, copies)
    return Adjacency(nodes, indptr, neighbors)


def read_edge_numbers(graph: networkx.Graph, name: Any, default: Any) -> Array | None:
    """Return one attribute of each stored out-edge, int64[m] or float64[m], in the order of :func:`read_adjacency`.

    It is None if the graph is a multigraph, or the values are not all of type int, of up to 2^53, or all of type float
    and not NaN.
    """
    if graph.is_multigraph() or type(name) is not str:
        return None
    rows = _rows(graph, False)
    _, indptr = _degrees(rows)
    kind = _kind_of_first(rows, name, default)
    if kind not in (int, float):
        return None
    values = np.empty(indptr[-1])
    kinds = np.array([id(dict), id(kind)])
    size = max((int(indptr[end] - indptr[begin]) for begin, end in _blocks(indptr)), default=0)
    scratch = np.empty((2, size), np.int64)
    for begin, end in _blocks(indptr):
        part = values[indptr[begin] : indptr[end]]
        call = id(rows), begin, end, kinds, kind is int, id(name), id(default), *scratch[:, : len(part)], part
        if read_attribute(*call) != len(part):
            return None
    if kind is int:
        return values.astype(np.int64)
    return None if np.isnan(values).any() else values


def _kind_of_first(rows: list[dict[Any, Any]], name: str, default: Any) -> type | None:
    """Return the type of an attribute of the first edge; int if there are no edges."""
    first = next((row for row in rows if row), None)
    if first is None:
        return int
    data = next(iter(first.values()))
    return type(data.get(name, default)) if type(data) is dict else None


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


def _degrees(rows: list[dict[Any, Any]]) -> tuple[Array, Array]:
    """Return the length of each row, and where it begins and ends if all are written one after another."""
    degrees = np.fromiter(map(len, rows), INDPTR_DTYPE, len(rows))
    indptr = np.zeros(len(rows) + 1, INDPTR_DTYPE)
    np.cumsum(degrees, out=indptr[1:])
    return degrees, indptr


def _blocks(indptr: Array) -> Iterator[tuple[int, int]]:
    """Yield the begin and end of blocks of rows."""
    begin, n = 0, len(indptr) - 1
    while begin < n:
        end = max(int(np.searchsorted(indptr, indptr[begin] + _BLOCK)), begin + 1)
        yield begin, min(end, n)
        begin = end


def _numbers(nodes: list[Any], rows: list[dict[Any, Any]], indptr: Array) -> Array:
    """Return the number of the node that each key of the rows is."""
    if (numbers := _numbers_of_plain(nodes, rows, indptr)) is not None:
        return numbers
    keys: list[Any] = []
    for row in rows:
        keys += row
    if len(keys) != indptr[-1]:
        raise RuntimeError("the graph has changed while it was read")
    number = dict(zip(nodes, range(len(nodes)), strict=True))
    return np.fromiter(map(number.__getitem__, keys), INDEX_DTYPE, len(keys))


def _numbers_of_plain(nodes: list[Any], rows: list[dict[Any, Any]], indptr: Array) -> Array | None:
    """Do so if all nodes are strings, or integers without large gaps, and rows are dicts of nothing else; else None."""
    n = len(nodes)
    kinds = set(map(type, nodes))
    read: Any
    keys: list[Any]
    if kinds == {int}:
        low, high = min(nodes), max(nodes)
        if not (high - low < _TABLE_FACTOR * n and low > -(1 << 62) and high < 1 << 62):
            return None
        table = np.zeros(high - low + 1, INDEX_DTYPE)
        table[np.array(nodes, np.int64) - low] = np.arange(n, dtype=INDEX_DTYPE)
        read, keys = read_int_neighbors, [low, table]
    elif kinds == {str}:
        number = dict(zip(nodes, range(n), strict=True))
        read, keys = read_str_neighbors, [id(number)]
    else:
        return None
    neighbors = np.empty(indptr[-1], INDEX_DTYPE)
    types = np.array([id(dict), id(*kinds)])
    e = 0
    for begin, end in _blocks(indptr):
        e = read(id(rows), begin, end, e, types, *keys, neighbors)
        if e < 0:
            return None
    return neighbors if e == len(neighbors) else None

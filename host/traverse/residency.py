"""Residency of edges: which edges a partition's kernels read, and where these are kept.

A partition has two blocks of edges: those whose destination it owns, for what is computed at destinations, and those
whose source it owns, for what is computed over the rows of out-edges.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from gpu_pregel.host.graphs.csr import CSR
from gpu_pregel.host.graphs.edge_arrays import lock
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.graphs.partitions import PartitionEdges, cut_ranges

Array = np.ndarray[Any, Any]


class ResidentEdges:
    """Hands the edges of partitions to devices: the policy by which they stay in the device's memory.

    Attributes
    ----------
    bounds : list of int
        Partition ``k`` owns the vertices from ``bounds[k]`` to ``bounds[k + 1] - 1``.
    """

    def __init__(self, graph: Graph, partitions: int, *, threads: int) -> None:
        self._graph, self._threads = graph, threads
        self.bounds = [0, graph.num_vertices] if partitions == 1 else cut_ranges(graph.out_degrees, partitions)

    @property
    def partitions(self) -> int:
        """Number of partitions."""
        return len(self.bounds) - 1

    def block(self, number: int, *, by_source: bool) -> Graph:
        """Return the edges whose source, or destination, partition ``number`` owns, as a graph of all n vertices.

        Its arrays are copied to a device at first use and stay there as long as the graph. One partition has the graph
        itself; of an undirected graph, both blocks have the same edges, so there is only the one by destination.
        """
        if self.partitions == 1:
            return self._graph
        name = f"block {number} of {self.partitions} {by_source}"
        return self._graph._fact(name, lambda: self._cut(number, by_source=by_source))

    def _cut(self, number: int, *, by_source: bool) -> Graph:
        parts = self._graph._partitions(self.partitions, with_pull=by_source, threads=self._threads)
        part, (first, last) = parts[number], self.bounds[number : number + 2]
        if by_source:
            return _Block(self._graph, _rows(self._graph._csr, first, last), part.in_edges)
        return _Block(self._graph.transpose(), _rows(self._graph.csc, first, last), part.out_edges).transpose()


class _Block(Graph):
    """The edges whose source is in a partition: a directed graph with all vertices of the other one.

    Its CSR has the rows of the partition's own vertices, whose edges are views; its CSC has the partition's share of
    the other rows.
    """

    def __init__(self, graph: Graph, own: CSR, shares: PartitionEdges) -> None:
        super().__init__(own, directed=True, ids=graph.ids)
        self._shares = shares

    @cached_property
    def csc(self) -> CSR:
        """The partition's share of the rows of the other direction, without gaps between them."""
        return _gathered(self._shares, self.num_vertices)

    @property
    def in_degrees(self) -> Any:
        """int64[n]: the number of edges in each of these rows."""
        return self._fact("in_degrees", lambda: np.diff(self.csc.indptr))


def _rows(csr: CSR, first: int, last: int) -> CSR:
    """Return the rows from ``first`` to ``last - 1``; all others are empty."""
    begin, end = int(csr.indptr[first]), int(csr.indptr[last])
    weights = None if csr.weights is None else csr.weights[begin:end]
    return CSR(np.clip(csr.indptr, begin, end) - begin, csr.indices[begin:end], weights)


def _gathered(edges: PartitionEdges, n: int) -> CSR:
    """Return a partition's rows as a CSR of ``n`` rows, with copies of their edges."""
    lengths, indptr = edges.ends - edges.begins, np.zeros(n + 1, np.int64)
    indptr[np.asarray(edges.rows, np.int64) + 1] = lengths
    np.cumsum(indptr, out=indptr)
    starts = np.repeat(edges.begins - (np.cumsum(lengths) - lengths), lengths)
    places = starts + np.arange(len(starts))
    weights = None if edges.weights is None else edges.weights[places]
    return CSR(lock(indptr), lock(edges.indices[places]), None if weights is None else lock(weights))

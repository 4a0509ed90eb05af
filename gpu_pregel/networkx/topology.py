"""The nodes and adjacency of a NetworkX graph as arrays, and what is derived from them on first use."""

from __future__ import annotations

import weakref
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gpu_pregel.host.devices.threads import thread_count
from gpu_pregel.host.graphs import csr as host_csr
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.graphs.networkx_adjacency import Adjacency, read_adjacency

if TYPE_CHECKING:
    import networkx

Array = np.ndarray[Any, Any]


class Topology:
    """The nodes and adjacency of a graph, without attributes; conversions of one graph share it.

    Rows are in the order of NetworkX's dicts, on which the order of its results depends.

    Attributes
    ----------
    nodes : list
        The nodes, in the order of the graph; node ``i`` is vertex ``i``.
    indptr : int64[n + 1]
    neighbors : uint32[m]
        Row ``u``, ``neighbors[indptr[u]:indptr[u + 1]]``, has the out-edges of ``u``, parallel ones next to one
        another. An undirected edge is stored in both rows, a self-loop once.
    directed, multigraph : bool
    """

    def __init__(self, adjacency: Adjacency, *, directed: bool, multigraph: bool) -> None:
        self.nodes, self.indptr, self.neighbors = adjacency
        self.directed = directed
        self.multigraph = multigraph
        self._source: weakref.ref[Any] | None = None

    @classmethod
    def from_networkx(cls, graph: networkx.Graph) -> Topology:
        """Read a NetworkX graph, which must live on where in-edges are asked for in its order."""
        topology = cls(read_adjacency(graph), directed=graph.is_directed(), multigraph=graph.is_multigraph())
        topology._source = weakref.ref(graph)
        return topology

    @classmethod
    def from_engine(cls, graph: Graph) -> Topology:
        """Share the arrays of a graph of the engine, whose rows are sorted."""
        nodes = list(range(graph.num_vertices)) if graph.ids is None else graph.ids.tolist()
        adjacency = Adjacency(nodes, graph.indptr, graph.indices)
        return cls(adjacency, directed=graph.is_directed, multigraph=graph.has_duplicates)

    @property
    def source(self) -> networkx.Graph | None:
        """The NetworkX graph that was read, if it still exists."""
        return None if self._source is None else self._source()

    @property
    def n(self) -> int:
        """The number of nodes."""
        return len(self.nodes)

    @property
    def m(self) -> int:
        """The number of stored edges."""
        return len(self.neighbors)

    @cached_property
    def numbers(self) -> dict[Any, int]:
        """The vertex of each node."""
        return dict(zip(self.nodes, range(self.n), strict=True))

    @cached_property
    def sources(self) -> Array:
        """uint32[m]: the source of each stored edge."""
        return np.repeat(np.arange(self.n, dtype=np.uint32), np.diff(self.indptr))

    @cached_property
    def degrees(self) -> Array:
        """int64[n]: the number of stored out-edges of each vertex."""
        return np.diff(self.indptr)

    @cached_property
    def predecessors(self) -> tuple[Array, Array]:
        """``indptr`` and ``neighbors`` of the in-edges, in NetworkX's order; the out-edges if undirected."""
        if not self.directed:
            return self.indptr, self.neighbors
        source = self.source
        if source is None:
            csc = self.engine.csc
            return csc.indptr, csc.indices
        _, indptr, neighbors = read_adjacency(source, predecessors=True)
        return indptr, neighbors

    @cached_property
    def predecessor_edges(self) -> Array:
        """int64[m]: of each in-edge of ``predecessors``, its place among the stored out-edges."""
        if not self.directed:
            return np.arange(self.m)
        indptr, neighbors = self.predecessors
        owners = np.repeat(np.arange(self.n, dtype=np.int64), np.diff(indptr))
        # Parallel edges have the same order in both.
        backward = np.argsort(neighbors.astype(np.int64) * self.n + owners, kind="stable")
        forward = np.argsort(self.sources.astype(np.int64) * self.n + self.neighbors, kind="stable")
        places = np.empty(self.m, np.int64)
        places[backward] = forward
        return places

    @cached_property
    def engine(self) -> Graph:
        """The graph of the engine, with vertices as ids and without weights."""
        return self.weighted_engine(None)

    def weighted_engine(self, weights: Array | None) -> Graph:
        """Return the graph of the engine with these weights of the stored edges, in the order of ``neighbors``."""
        csr = host_csr.build_csr(
            *(self.sources, self.neighbors, weights, self.n), symmetric=False, threads=thread_count(None)
        )
        return Graph(csr, directed=self.directed)

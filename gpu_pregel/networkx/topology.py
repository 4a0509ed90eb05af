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

_PLAIN = {int, str, float, bytes}


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
    source : networkx.Graph, optional
        The graph that was read, which must live on where in-edges are asked for in its order.
    """

    def __init__(
        self, adjacency: Adjacency, *, directed: bool, multigraph: bool, source: networkx.Graph | None = None
    ) -> None:
        self.nodes = adjacency.nodes
        self.indptr, self.neighbors = _read_only(adjacency.indptr, adjacency.neighbors)
        self.directed = directed
        self.multigraph = multigraph
        self._source = None if source is None else weakref.ref(source)
        # The number of nodes of the graph of which this is a view, else n; orders of subgraphs depend on it.
        self.base_size = len(getattr(source, "_graph", self.nodes))

    @classmethod
    def from_engine(cls, graph: Graph) -> Topology:
        """Share the arrays of a graph of the engine, whose rows are sorted."""
        nodes = list(range(graph.num_vertices)) if graph.ids is None else graph.ids.tolist()
        adjacency = Adjacency(nodes, graph.indptr, graph.indices)
        return cls(adjacency, directed=graph.is_directed, multigraph=graph.has_duplicates)

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy or a pickle of a graph of this package has."""
        names = ("nodes", "indptr", "neighbors", "directed", "multigraph", "base_size", "_source")
        return {name: getattr(self, name) for name in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        _read_only(self.indptr, self.neighbors)

    @property
    def source(self) -> networkx.Graph | None:
        """The NetworkX graph that was read, if it still exists."""
        return None if self._source is None else self._source()

    @property
    def is_converted(self) -> bool:
        """Whether this has been read from a NetworkX graph."""
        return self._source is not None

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
    def is_numbered(self) -> bool:
        """Whether the nodes are the integers from 0, in order."""
        return (self.kind is int or not self.nodes) and self.nodes == list(range(self.n))

    @cached_property
    def kind(self) -> type | None:
        """The type of all nodes if they are integers or strings, of which equal ones cannot be told apart."""
        kinds = set(map(type, self.nodes))
        return kinds.pop() if kinds in ({int}, {str}) else None

    @cached_property
    def node_array(self) -> Array:
        """object[n]: the nodes, for looking up many."""
        return np.fromiter(self.nodes, object, self.n)

    @cached_property
    def node_addresses(self) -> Array | None:
        """int64[n]: the address of each node, for kernels; None if a node is of a type that may run code of users."""
        if not set(map(type, self.nodes)) <= _PLAIN:
            return None
        return np.fromiter(map(id, self.nodes), np.int64, self.n)

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
        return _read_only(indptr, neighbors)

    @cached_property
    def no_edges(self) -> tuple[Array, Array]:
        """``indptr`` and ``neighbors`` of as many vertices without edges, for kernels that take several rows."""
        return _read_only(np.zeros(self.n + 1, np.int64), np.empty(0, np.uint32))

    @cached_property
    def reverse_edges(self) -> Array:
        """int64[m]: the position of the same edge of an undirected graph in the row of its other end."""
        positions = np.empty(self.m, np.int64)
        positions[np.lexsort((self.neighbors, self.sources))] = np.lexsort((self.sources, self.neighbors))
        return positions

    @cached_property
    def distinct(self) -> tuple[Array, Array]:
        """``indptr`` and ``neighbors`` without parallel edges."""
        return _without_parallel(self.indptr, self.neighbors) if self.multigraph else (self.indptr, self.neighbors)

    @cached_property
    def distinct_predecessors(self) -> tuple[Array, Array]:
        """``predecessors`` without parallel edges."""
        return _without_parallel(*self.predecessors) if self.multigraph else self.predecessors

    @cached_property
    def in_degrees(self) -> Array:
        """int64[n]: the number of stored in-edges of each vertex."""
        return np.bincount(self.neighbors, minlength=self.n)

    @cached_property
    def total_degrees(self) -> Array:
        """int64[n]: NetworkX's degrees: in-edges and out-edges of directed graphs, and both ends of loops."""
        return self.degrees + (self.in_degrees if self.directed else self.loops)

    @cached_property
    def loops(self) -> Array:
        """int64[n]: the number of edges from each vertex to itself."""
        return np.bincount(self.sources[self.sources == self.neighbors], minlength=self.n)

    @cached_property
    def predecessor_edges(self) -> Array:
        """int64[m]: the stored out-edge of each in-edge of ``predecessors``."""
        if not self.directed:
            return np.arange(self.m)
        indptr, neighbors = self.predecessors
        owners = np.repeat(np.arange(self.n, dtype=np.int64), np.diff(indptr))
        # Parallel edges have the same order in both.
        backward = np.argsort(neighbors.astype(np.int64) * self.n + owners, kind="stable")
        forward = np.argsort(self.sources.astype(np.int64) * self.n + self.neighbors, kind="stable")
        edges = np.empty(self.m, np.int64)
        edges[backward] = forward
        return edges

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


def _without_parallel(indptr: Array, neighbors: Array) -> tuple[Array, Array]:
    """Keep one of the parallel edges."""
    is_first = first_of_parallel(indptr, neighbors)
    kept = np.zeros(len(neighbors) + 1, indptr.dtype)
    np.cumsum(is_first, out=kept[1:])
    return _read_only(kept[indptr], neighbors[is_first])


def first_of_parallel(indptr: Array, neighbors: Array) -> Array:
    """Return which edges are the first of parallel ones, which are next to one another; bool[m]."""
    is_first = np.ones(len(neighbors), np.bool_)
    np.not_equal(neighbors[1:], neighbors[:-1], out=is_first[1:])
    is_first[indptr[:-1][indptr[:-1] < indptr[1:]]] = True
    return is_first


def _read_only(indptr: Array, neighbors: Array) -> tuple[Array, Array]:
    """Write-protect the arrays, as those of the engine are: kernels are then compiled for one type only."""
    indptr.flags.writeable = neighbors.flags.writeable = False
    return indptr, neighbors

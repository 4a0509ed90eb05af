"""The graph: its transformations; its base classes hold the data, constructors, conversions and queries."""

from __future__ import annotations

import os
import sys
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from gpu_pregel.errors import ArgumentTypeError
from gpu_pregel.host.devices import DeviceName
from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.devices.threads import thread_count
from gpu_pregel.host.graphs import csr as host_csr
from gpu_pregel.host.graphs import package, transforms
from gpu_pregel.host.graphs.combine import check_combine, check_order_known
from gpu_pregel.host.graphs.csr import CSR
from gpu_pregel.host.graphs.device_graph import DeviceGraph
from gpu_pregel.host.graphs.id_index import IdIndex
from gpu_pregel.host.graphs.interchange import NetworkXGraph, SparseMatrix
from gpu_pregel.host.graphs.partitions import Partition
from gpu_pregel.host.graphs.queries import GraphQueries

if TYPE_CHECKING:
    import numpy.typing as npt

Array = np.ndarray[Any, Any]
GraphLike: TypeAlias = "Graph | NetworkXGraph | SparseMatrix"
"""What functions take as a graph; see :func:`as_graph`."""


class Graph(GraphQueries):
    """An immutable graph in compressed sparse rows (CSR).

    Create one with a constructor such as :meth:`from_edgelist`, with :func:`gpu_pregel.read_graph` or with a
    generator, not by calling the class. An undirected edge is stored in both directions, a self-loop once. Rows are
    sorted by destination, then weight. ``len(graph)`` is the number of vertices, ``id in graph`` tells whether one
    has this id, and the table of edges supports the Arrow PyCapsule interface.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> gp.Graph.from_edgelist([0, 1, 3], [1, 2, 4])
    <Graph: 5 vertices, 6 stored edges, undirected>
    """

    def subgraph(self, ids: Any) -> Graph:
        """Return the graph of some vertices and all edges among them; ids, weights and the direction are kept.

        The vertices keep their order, whatever the order of ``ids``; repeated ids count once. The time is that of
        reading the rows of these vertices.

        Raises
        ------
        UnknownVertexError
            No vertex has one of the ids.

        Examples
        --------
        >>> import gpu_pregel as gp
        >>> graph = gp.Graph.from_edgelist([1, 1, 3, 5], [2, 5, 5, 7])
        >>> part = graph.subgraph([5, 3, 1])
        >>> part, part.neighbors(5).tolist()
        (<Graph: 3 vertices, 4 stored edges, undirected>, [1, 3])
        """
        return self._induced(self.vertices(ids))

    def _induced(self, vertices: Array) -> Graph:
        """Return the subgraph of vertices given by number."""
        flags = np.zeros(self.num_vertices, bool)
        flags[vertices] = True
        chosen = np.flatnonzero(flags)
        if len(chosen) == self.num_vertices:
            return self
        ids = self.to_ids(chosen)
        # Ids that are the vertex numbers need no table; False and True only equal them.
        is_identity = ids.dtype.kind in "iu" and np.array_equal(ids, np.arange(len(ids)))
        csr = transforms.induce(self.to_csr(), chosen)
        return Graph(csr, directed=self.is_directed, ids=None if is_identity else ids)

    def transpose(self) -> Graph:
        """Return the graph with every edge reversed; an undirected graph is its own transpose.

        Nothing is copied: the two graphs share their arrays, also those on devices, and in-edges are derived when one
        of them first needs them. The transpose of the transpose is the graph itself.

        Examples
        --------
        >>> import gpu_pregel as gp
        >>> graph = gp.Graph.from_edgelist(["ann", "bob"], ["bob", "cid"], directed=True)
        >>> graph.transpose().neighbors("cid").tolist()
        ['bob']
        """
        return _TransposedGraph(self) if self.is_directed else self

    def to_undirected(self, *, combine: str | None = None) -> Graph:
        """Return the graph without directions: each edge is stored both ways. No edge is lost unless ``combine``.

        The edges u to v and v to u become two parallel edges, or one whose weight ``combine`` chooses.

        Parameters
        ----------
        combine : {None, "sum", "min", "max", "mean", "first", "count"}
            The weight of the edge that replaces all edges between two vertices, as in :meth:`from_edgelist`. "first" is
            only for graphs without weights: rows are sorted by weight. With None, an undirected graph is returned as it
            is.

        Raises
        ------
        ArgumentError
            ``combine`` is unknown, "first" for a graph with weights, or "sum" for one without.
        GraphError
            A sum of weights does not fit its dtype.

        Examples
        --------
        >>> import gpu_pregel as gp
        >>> graph = gp.Graph.from_edgelist([0, 1, 1], [1, 0, 2], [5, 3, 4], directed=True)
        >>> graph.to_undirected().to_pandas().values.tolist()
        [[0, 1, 3], [0, 1, 5], [1, 2, 4]]
        >>> graph.to_undirected(combine="sum").to_pandas().values.tolist()
        [[0, 1, 8], [1, 2, 4]]
        """
        check_combine(combine)
        if not self.is_directed:
            return self if combine is None else self._combined(combine, keep_loops=True)
        check_order_known(combine, self.weights)
        threads, csr = thread_count(None), self.to_csr()
        csr = host_csr.build_csr(
            *(host_csr.sources(csr, threads=threads), csr.indices, csr.weights, self.num_vertices),
            symmetric=True,
            combine=combine,
            ids=self.ids,
            threads=threads,
        )
        return Graph(csr, directed=False, ids=self.ids)

    def simplify(self, *, combine: str | None = None) -> Graph:
        """Return the graph without self-loops and parallel edges; of a graph with weights, ``combine`` chooses them.

        Parameters
        ----------
        combine : {None, "sum", "min", "max", "mean", "first", "count"}
            The weight of the edge that replaces parallel ones, as in :meth:`from_edgelist`. "first" is only for graphs
            without weights, which need no ``combine``; with "count", their edges get the numbers of parallel edges as
            weights.

        Raises
        ------
        GraphError
            Edges with weights are parallel, and ``combine`` is None; the message names the first of them. Or a sum of
            weights does not fit its dtype.
        ArgumentError
            ``combine`` is unknown, "first" for a graph with weights, or "sum" for one without.

        Examples
        --------
        >>> import gpu_pregel as gp
        >>> gp.Graph.from_edgelist([0, 1, 1], [1, 0, 1]).simplify()
        <Graph: 2 vertices, 2 stored edges, undirected>
        >>> paid = gp.Graph.from_edgelist(["ann", "ann"], ["bob", "bob"], [5, 3], directed=True)
        >>> paid.simplify(combine="sum").weights.tolist()
        [8]
        """
        return self._combined(check_combine(combine), keep_loops=False)

    def _combined(self, combine: str | None, *, keep_loops: bool) -> Graph:
        """Return the graph with parallel edges combined, itself if it has none."""
        csr = self.to_csr()
        combined = transforms.combine_parallel(
            csr, combine, keep_loops=keep_loops, ids=self.ids, threads=thread_count(None)
        )
        return self if combined is csr else Graph(combined, directed=self.is_directed, ids=self.ids)

    def largest_component(self, *, device: DeviceName = "auto", threads: int | None = None) -> Graph:
        """Return the subgraph of the largest connected component; of the largest weak component if directed.

        Of several largest components it is the one with the smallest vertex number. ``device`` and ``threads`` are
        those of :func:`gpu_pregel.connected_components`.

        Examples
        --------
        >>> import gpu_pregel as gp
        >>> gp.Graph.from_edgelist(["ann", "bob", "x"], ["bob", "cid", "y"]).largest_component().ids.tolist()
        ['ann', 'bob', 'cid']
        """
        found: Graph = package.function("connected_components")(self, device=device, threads=threads).largest()
        return found

    def save(
        self,
        path: str | os.PathLike[str],
        format: str | None = None,
        *,
        lossy: bool = False,
        formulas: str = "keep",
    ) -> None:
        """Write the graph to a file; ``format`` or the suffix selects a format of :func:`gpu_pregel.read_graph`.

        A format that cannot hold the ids, the isolated vertices or the weights raises ``FormatError``, and names others
        that can, unless ``lossy``; the table in :func:`gpu_pregel.io.save_graph` lists what each format holds. Files of
        some formats, such as .csv, .tsv and .el, do not say whether the edges are directed: pass ``directed=True`` to
        :func:`gpu_pregel.read_graph`. ``formulas="escape"`` protects spreadsheets that open .csv and .tsv files from
        ids such as ``"=1+1"``.
        """
        package.function("save_graph")(self, path, format=format, lossy=lossy, formulas=formulas)


class _TransposedGraph(Graph):
    """The transpose of a directed graph, whose CSR is the CSC of that graph."""

    def __init__(self, original: Graph) -> None:
        self._original = original
        self._file = original._file
        self._is_directed = True
        self._ids = original.ids
        self._facts: dict[str, Any] = {}

    def __reduce__(self) -> tuple[type[Graph], tuple[Graph]]:
        return _TransposedGraph, (self._original,)

    @cached_property
    def _csr(self) -> CSR:  # type: ignore[override]
        return self._original.csc

    @property
    def csc(self) -> CSR:
        return self._original.to_csr()

    @property
    def num_vertices(self) -> int:
        return self._original.num_vertices

    @property
    def num_edges(self) -> int:
        return self._original.num_edges

    @property
    def num_stored_edges(self) -> int:
        return self._original.num_stored_edges

    @property
    def nbytes(self) -> int:
        return self._original.nbytes

    @property
    def out_degrees(self) -> npt.NDArray[np.int64]:
        return self._original.in_degrees

    @property
    def in_degrees(self) -> npt.NDArray[np.int64]:
        return self._original.out_degrees

    @property
    def has_duplicates(self) -> bool:
        return self._original.has_duplicates

    @property
    def _index(self) -> IdIndex:
        return self._original._index

    def transpose(self) -> Graph:
        return self._original

    def _partitions(
        self, count: int, *, with_pull: bool = True, transpose: bool = False, threads: int
    ) -> list[Partition]:
        return self._original._partitions(count, with_pull=with_pull, transpose=not transpose, threads=threads)

    def _on(self, device: Device) -> DeviceGraph:
        return self._original._on(device)

    def __repr__(self) -> str:
        return repr(self._original)


def as_graph(graph: GraphLike) -> Graph:
    """Return a graph, a NetworkX graph or a SciPy sparse matrix as a ``Graph``.

    They are converted by ``Graph.from_networkx`` and ``Graph.from_scipy`` with the defaults.

    Raises
    ------
    ArgumentTypeError
        ``graph`` is something else; the message names the constructor to use.
    GraphError
        The graph is mapped from a file that has been truncated.
    """
    if isinstance(graph, Graph):
        if graph._file is not None:
            graph._file.check()
        return graph
    # An object of these packages exists only if they have been imported.
    networkx, sparse = sys.modules.get("networkx"), sys.modules.get("scipy.sparse")
    if networkx is not None and isinstance(graph, networkx.Graph):
        return Graph.from_networkx(cast(Any, graph))
    if sparse is not None and sparse.issparse(graph):
        return Graph.from_scipy(cast(Any, graph))
    raise ArgumentTypeError(
        f"graph must be a gpu_pregel Graph, a NetworkX graph or a SciPy sparse matrix, not {type(graph).__name__}: "
        f"use {_constructor(graph)}"
    )


def _constructor(graph: object) -> str:
    """Return the constructor that takes this kind of object."""
    if isinstance(graph, (str, os.PathLike)):
        return "gp.read_graph(path)"
    if isinstance(graph, np.ndarray) and graph.ndim == 2 and graph.shape[0] == graph.shape[1]:
        return "Graph.from_scipy(scipy.sparse.csr_array(matrix))"
    if isinstance(graph, (list, tuple)):
        return "Graph.from_edgelist(src, dst), with src, dst = zip(*edges) if these are pairs"
    if hasattr(graph, "to_parquet"):
        return "Graph.from_pandas(edges, source, target)"
    if hasattr(graph, "__arrow_c_stream__"):
        return "Graph.from_arrow(edges, source, target)"
    return "Graph.from_edgelist(src, dst)"

"""The graph: its data and the facts derived from them, constructors, conversions, queries by id and transformations."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar, cast

import numpy as np

from gpu_pregel.errors import ArgumentTypeError, UnknownVertexError
from gpu_pregel.host.arguments import check_choice, check_flag, require
from gpu_pregel.host.devices import DeviceChoice, DeviceName, choose_device
from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.devices.memory import format_bytes
from gpu_pregel.host.devices.threads import thread_count
from gpu_pregel.host.devices.user_arrays import find_device
from gpu_pregel.host.graphs import csr as host_csr
from gpu_pregel.host.graphs import interchange, package, transforms
from gpu_pregel.host.graphs.combine import check_combine, check_order_known
from gpu_pregel.host.graphs.csr import CSR
from gpu_pregel.host.graphs.device_csr import build_on_device
from gpu_pregel.host.graphs.device_graph import DeviceGraph
from gpu_pregel.host.graphs.edge_arrays import as_integers, as_weights, count_self_loops, has_duplicates, lock, private
from gpu_pregel.host.graphs.id_columns import check_ids
from gpu_pregel.host.graphs.id_index import IdIndex, make_index
from gpu_pregel.host.graphs.interchange import NetworkXGraph, SparseMatrix
from gpu_pregel.host.graphs.mapped_file import MappedFile
from gpu_pregel.host.graphs.numbering import number_vertices, remove_unused
from gpu_pregel.host.graphs.partitions import Partition, partition_graph
from gpu_pregel.host.graphs.tables import as_frame, as_table
from gpu_pregel.host.graphs.transforms import combine_parallel
from gpu_pregel.host.superstep.progress import ProgressBar

if TYPE_CHECKING:
    import networkx
    import numpy.typing as npt
    import pandas
    import pyarrow
    import scipy.sparse

Array = np.ndarray[Any, Any]
Fact = TypeVar("Fact")
Name = str | None
"""The name of a column, or None for the default."""
GraphLike: TypeAlias = "Graph | NetworkXGraph | SparseMatrix"
"""What functions take as a graph; see :func:`as_graph`."""


class Graph:
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

    _file: MappedFile | None = None
    """The file that holds the arrays."""

    def __init__(self, csr: CSR | None = None, *, directed: bool | None = None, ids: Array | None = None) -> None:
        if not isinstance(csr, CSR) or directed is None:
            raise ArgumentTypeError(
                "graphs are not created by calling Graph: use gp.read_graph(path), Graph.from_edgelist(src, dst) or "
                "another constructor, such as Graph.from_networkx, from_scipy, from_pandas or from_csr"
            )
        self._csr = _locked(csr)
        self._is_directed = directed
        self._ids = None if ids is None else lock(ids)
        self._facts: dict[str, Any] = {}

    def __getstate__(self) -> tuple[CSR, bool, Array | None]:
        return self._csr, self._is_directed, self._ids

    def __setstate__(self, state: tuple[CSR, bool, Array | None]) -> None:
        csr, directed, ids = state
        Graph.__init__(self, csr, directed=directed, ids=ids)

    @property
    def indptr(self) -> npt.NDArray[np.int64]:
        """int64[n + 1]: row ``u`` of the stored edges is ``indices[indptr[u]:indptr[u + 1]]``."""
        return self._csr.indptr

    @property
    def indices(self) -> npt.NDArray[np.uint32]:
        """uint32[m]: the destination of each stored edge."""
        return self._csr.indices

    @property
    def weights(self) -> Array | None:
        """The weight of each stored edge [m], or None; int32, int64, uint32, uint64, float32 or float64."""
        return self._csr.weights

    @property
    def is_directed(self) -> bool:
        """Whether the edges have a direction."""
        return self._is_directed

    @property
    def ids(self) -> Array | None:
        """The user's id of each vertex [n], or None if the ids are the vertex numbers."""
        return self._ids

    @property
    def num_vertices(self) -> int:
        """Number of vertices, n."""
        return len(self.indptr) - 1

    @property
    def num_edges(self) -> int:
        """Number of edges, as in NetworkX: an undirected edge counts once, parallel edges each.

        Of an undirected graph the first use counts the self-loops, which takes a pass over the edges.
        """
        if self.is_directed:
            return self.num_stored_edges
        return self._fact("num_edges", lambda: (self.num_stored_edges + count_self_loops(self._csr)) // 2)

    @property
    def num_stored_edges(self) -> int:
        """Number of stored edges, m: an undirected edge counts twice, a self-loop once."""
        return len(self.indices)

    @property
    def nbytes(self) -> int:
        """Size of the CSR in bytes."""
        return sum(part.nbytes for part in self._csr if part is not None)

    def __repr__(self) -> str:
        kind = "directed" if self.is_directed else "undirected"
        weights = "" if self.weights is None else f", {self.weights.dtype} weights"
        return f"<Graph: {self.num_vertices:,} vertices, {self.num_stored_edges:,} stored edges, {kind}{weights}>"

    # Facts derived on first use and cached by name.

    def _fact(self, name: str, derive: Callable[[], Fact]) -> Fact:
        if name not in self._facts:
            self._facts[name] = derive()
        return cast(Fact, self._facts[name])

    @property
    def csc(self) -> CSR:
        """The in-edges: ``indptr``, ``indices`` (sources), ``weights``; the CSR itself if the graph is undirected."""
        if not self.is_directed:
            return self._csr
        return self._fact("csc", lambda: _locked(host_csr.transpose(self._csr, threads=thread_count(None))))

    @property
    def out_degrees(self) -> npt.NDArray[np.int64]:
        """int64[n]: number of stored out-edges of each vertex."""
        return self._fact("out_degrees", lambda: lock(np.diff(self.indptr)))

    @property
    def in_degrees(self) -> npt.NDArray[np.int64]:
        """int64[n]: number of stored in-edges of each vertex."""
        if not self.is_directed:
            return self.out_degrees
        return self._fact("in_degrees", lambda: lock(np.bincount(self.indices, minlength=self.num_vertices)))

    @property
    def has_duplicates(self) -> bool:
        """Whether any vertex has more than one stored edge to the same destination."""
        return self._fact("has_duplicates", lambda: has_duplicates(self._csr))

    @property
    def content_hash(self) -> int:
        """A 64-bit hash of the stored edges and their weights.

        It does not depend on ``num_vertices``, ``is_directed`` or ``ids``.
        """
        return self._fact("content_hash", lambda: host_csr.hash_edges(self._csr, threads=thread_count(None)))

    def _partitions(
        self, count: int, *, with_pull: bool = True, transpose: bool = False, threads: int
    ) -> list[Partition]:
        """Divide the graph into partitions of out-edges and, if ``with_pull``, in-edges."""

        def derive() -> list[Partition]:
            out = self.csc if transpose else self._csr
            back = self._csr if transpose else self.csc if with_pull else None
            return partition_graph(out, back, count, threads=threads)

        return self._fact(f"partitions {count} {with_pull} {transpose and self.is_directed}", derive)

    def _on(self, device: Device) -> DeviceGraph:
        """Return the cache of this graph's arrays on a device."""
        memory = device.name.partition(":")[0] if device.name.startswith("emulated") else device.name
        return self._fact(f"copies on {memory}", lambda: DeviceGraph(device, self.num_stored_edges))

    def _keep_on_device(self, given: tuple[Any, Any, Any], *, shared: bool) -> None:
        """Keep those of the arrays from which the CSR was made that are in device memory, for use on that device."""
        for host, values in zip(self._csr, given, strict=True):
            device = find_device(values)
            if host is not None and device is not None:
                self._facts["given on"] = device.name
                there = self._on(device)
                there.keep(host, there.offset if host is self.indptr else host.dtype, device, values, shared=shared)

    def _choose_device(self, what: str, gpu_from: int | None, device: DeviceName, threads: int | None) -> DeviceChoice:
        """Return the device for work on this graph, which a GPU does faster from ``gpu_from`` stored edges on."""
        given_on: str | None = self._facts.get("given on")
        if given_on is not None and not given_on.startswith("cuda"):
            given_on = None
        return choose_device(device, threads, what, gpu_from, self.num_stored_edges, given_on)

    def _csr_on(self, device: Device, state: int) -> tuple[Any, Any]:
        """Return ``indptr`` and ``indices`` on a device, for work that needs ``state`` bytes in addition."""
        if device.is_host:
            return self.indptr, self.indices
        return self._on(device).csr(self._csr, state)

    def to_ids(self, vertices: Array) -> Array:
        """Translate vertex numbers into the user's ids; integers are int64, or uint64 if one is beyond."""
        return np.asarray(vertices, np.int64) if self.ids is None else self.ids[vertices]

    def describe(self) -> str:
        """Return a one-line summary: size, kind and memory."""
        return f"{self!r}, {format_bytes(self.nbytes)}".replace("<Graph: ", "").replace(">", "")

    # Constructors.

    @classmethod
    def from_edgelist(
        cls,
        src: Any,
        dst: Any,
        weight: Any = None,
        *,
        num_vertices: int | None = None,
        vertices: Any = None,
        directed: bool = False,
        renumber: bool | str = "auto",
        combine: str | None = None,
        self_loops: str = "keep",
        threads: int | None = None,
        progress: bool = False,
    ) -> Self:
        """Build a graph from a list of edges.

        The vertices are the ids that occur in ``src``, ``dst`` and ``vertices``. Integers are numbered in ascending
        order, other ids by first appearance: those of ``vertices`` first, then each edge's source before its
        destination. Ids of different type are different vertices: 1, "1", 1.0 and True are four.

        Parameters
        ----------
        src, dst : array_like[k]
            Ids of the source and the destination of each edge: integers, with or without gaps, or any other hashable
            objects, such as strings, dates or tuples. None and NaN are refused.
        weight : array_like[k], optional
            One number per edge; float16 becomes float32, 8-bit and 16-bit integers become int32. Integers in a list are
            int64, or uint64 if one is beyond; an integer that no dtype holds exactly, as beside a float, is refused.
        num_vertices : int, optional
            The ids are the numbers 0 to ``num_vertices - 1``, and all of these are vertices.
        vertices : array_like, optional
            Ids of vertices, with or without edges.
        directed : bool, default False
            If False, each edge is stored in both directions, a self-loop once.
        renumber : {"auto", False}
            False takes the ids, which must be integers from 0, as vertex numbers: all numbers up to the largest id are
            vertices.
        combine : {None, "sum", "min", "max", "mean", "first", "count"}
            None keeps every edge. Otherwise parallel edges become one, with the sum, the smallest, the largest, the
            mean or the first of their weights, in the order of the list, or with their number. In an undirected graph
            edges in opposite directions are parallel. Sums of integers and "count" are int64 (sums of uint64 are
            uint64), means float64; float32 remains float32. Without weights "min", "max", "mean" and "first" merge
            edges, and "sum" is an error.
        self_loops : {"keep", "drop"}
            The vertex of a dropped self-loop remains.
        threads : int, optional
            Number of threads. Default: the processors available to this process.
        progress : bool, default False
            Show a progress bar on stderr.

        Notes
        -----
        If all arrays are in the memory of one GPU, the edges are sorted there, and only the CSR is copied to the host.
        Edge lists with ``vertices``, with ids other than vertex numbers or beyond twice the number of edges, or whose
        weights are combined other than by "min", are copied to the host and built there.

        Raises
        ------
        GraphError
            The arrays differ in length, an id is missing or not below ``num_vertices``, a weight is NaN, or a sum
            of weights does not fit its dtype.
        ArgumentTypeError
            An id is not hashable, or the weights have an unsupported dtype.
        NotEnoughMemoryError
            The graph does not fit in memory; raised before building.

        Examples
        --------
        >>> import gpu_pregel as gp
        >>> graph = gp.Graph.from_edgelist(["ann", "bob"], ["bob", "cid"])
        >>> graph.ids.tolist(), graph.indices.tolist()
        (['ann', 'bob', 'cid'], [1, 0, 2, 1])
        >>> gp.Graph.from_edgelist([3, 6], [6, 15], vertices=[20]).ids.tolist()
        [3, 6, 15, 20]
        >>> gp.Graph.from_edgelist([0, 1, 1], [1, 0, 2], [5, 3, 4], combine="sum").to_pandas().values.tolist()
        [[0, 1, 8], [1, 2, 4]]
        """
        directed = check_flag("directed", directed)
        check_combine(combine)
        check_choice("self_loops", self_loops, ("keep", "drop"))
        workers = thread_count(threads)
        if vertices is None:
            built = build_on_device(
                *(src, dst, weight),
                num_vertices=num_vertices,
                renumber=renumber,
                symmetric=not directed,
                combine=combine,
                drop_self_loops=self_loops == "drop",
                threads=workers,
            )
            if built is not None:
                graph = cls(built.csr, directed=directed, ids=built.ids)
                graph._keep_on_device(built.there, shared=True)
                return graph
        numbering = number_vertices(
            *(src, dst), vertices=vertices, num_vertices=num_vertices, renumber=renumber, threads=workers
        )
        weights = None if weight is None else as_weights(weight, len(numbering.src))
        with ProgressBar("building", shown=progress) as bar:
            csr = host_csr.build_csr(
                *(numbering.src, numbering.dst, weights, numbering.n),
                symmetric=not directed,
                combine=combine,
                drop_self_loops=self_loops == "drop",
                ids=numbering.ids,
                threads=workers,
                tick=bar.tick,
            )
        rows_name_all = not directed and self_loops == "keep"
        csr, ids = remove_unused(csr, numbering, rows_name_all=rows_name_all, threads=workers)
        return cls(csr, directed=directed, ids=ids)

    @classmethod
    def from_csr(
        cls,
        indptr: Any,
        indices: Any,
        weights: Any = None,
        *,
        directed: bool = False,
        ids: Any = None,
        combine: str | None = None,
        copy: bool = True,
        threads: int | None = None,
    ) -> Self:
        """Make a graph from CSR arrays, which are checked and copied.

        Parameters
        ----------
        indptr : array_like[n + 1], integer
        indices : array_like[m], integer
        weights : array_like[m], optional
        directed : bool, default False
            If False, the arrays must hold each edge in both directions with the same weight.
        ids : array_like[n], optional
            The user's id of each vertex; ids must be distinct.
        combine : {None, "sum", "min", "max", "mean", "first", "count"}
            As in :meth:`from_edgelist`; "first" only without weights, as rows get sorted by weight.
        copy : bool, default True
            False uses contiguous arrays of the right dtypes (int64, uint32) themselves if the rows are sorted; they
            must not be modified afterwards. Arrays that cannot be written, such as those of another graph or of a file
            mapped read-only, are used in any case.
        threads : int, optional

        Notes
        -----
        Arrays in the memory of a GPU, such as those of CuPy and PyTorch, are copied to the host once, where they are
        checked. If the rows are sorted, the graph also keeps ``indices`` of 4 bytes and the weights on the GPU, in a
        copy unless ``copy=False``, so that the edges are never uploaded. All arrays of a GPU must be contiguous.

        Raises
        ------
        GraphError
            ``indptr`` decreases, a neighbour is not below n, the lengths differ, a weight is NaN, an id is repeated,
            an undirected graph is not symmetric, or a sum of weights does not fit its dtype.

        Examples
        --------
        >>> import gpu_pregel as gp
        >>> gp.Graph.from_csr([0, 1, 2], [1, 0])
        <Graph: 2 vertices, 2 stored edges, undirected>
        """
        workers = thread_count(threads)
        shared = not check_flag("copy", copy)
        directed = check_flag("directed", directed)
        check_combine(combine)
        begins = private(as_integers("indptr", indptr, host_csr.INDPTR_DTYPE), indptr, shared)
        neighbors = private(as_integers("indices", indices, host_csr.INDEX_DTYPE), indices, shared)
        numbers = None if weights is None else private(as_weights(weights, len(neighbors)), weights, shared)
        csr = CSR(begins, neighbors, numbers)
        n = len(csr.indptr) - 1
        checked = None if ids is None else check_ids(ids, n)
        names = None if checked is None else private(checked, ids, shared)
        is_sorted = host_csr.check_csr(csr, symmetric=not directed and combine is None, threads=workers)
        if not is_sorted:
            src = host_csr.sources(csr, threads=workers)
            csr = host_csr.build_csr(src, csr.indices, csr.weights, n, symmetric=False, threads=workers)
        if combine is not None:
            sorted_csr = csr
            csr = combine_parallel(csr, combine, keep_loops=True, ids=names, threads=workers)
            if not directed:
                host_csr.check_csr(csr, symmetric=True, threads=workers)
            is_sorted = is_sorted and csr is sorted_csr
        if not is_sorted:
            return cls(csr, directed=directed, ids=names)
        graph = cls(csr, directed=directed, ids=names)
        graph._keep_on_device((indptr, indices, weights), shared=shared)
        return graph

    # Conversions from and to the objects of other libraries.

    @classmethod
    def from_scipy(
        cls,
        matrix: scipy.sparse.sparray,
        *,
        directed: bool | None = None,
        weighted: bool = True,
        ids: Any = None,
        combine: str | None = None,
    ) -> Self:
        """Make a graph from a square SciPy sparse matrix: each stored entry (u, v), repeated or not, is an edge u to v.

        Parameters
        ----------
        matrix : sparse array or matrix [n, n]
        directed : bool, optional
            Default: a symmetric matrix is an undirected graph, any other a directed graph. With False the matrix must
            be symmetric.
        weighted : bool, default True
            False ignores the values of the entries. A boolean matrix has an edge for each True, and no weights.
        ids : array_like[n], optional
            The id of each vertex. Default: the number of its row.
        combine : {None, "sum", "min", "max", "mean", "first", "count"}
            Whether and how repeated entries become one edge, as in :meth:`from_csr`, "first" only without weights;
            before the matrix is examined for symmetry.

        Raises
        ------
        ArgumentTypeError
            ``matrix`` is no sparse matrix.
        GraphError
            It is not square, or not symmetric where it must be.

        Examples
        --------
        >>> import gpu_pregel as gp, scipy.sparse
        >>> gp.Graph.from_scipy(scipy.sparse.csr_array([[0, 3], [3, 0]]))
        <Graph: 2 vertices, 2 stored edges, undirected, int64 weights>
        """
        if directed is not None:
            check_flag("directed", directed)
        arrays = interchange.from_scipy(matrix, weighted=weighted)
        built = cls.from_csr(*arrays, directed=directed is not False, ids=ids, combine=combine)
        if directed is None and host_csr.is_symmetric(built.to_csr(), threads=thread_count(None)):
            return cls(built.to_csr(), directed=False, ids=built.ids)
        return built

    @classmethod
    def from_networkx(cls, graph: networkx.Graph, *, weight: str | None = "weight", combine: str | None = None) -> Self:
        """Make a graph from a NetworkX graph, keeping its direction; its nodes, in order, become the ids.

        ``weight`` names the edge attribute to read, and None ignores weights. Either every edge must have the attribute
        or none; a graph whose edges have no attribute ``weight`` has no weights. ``combine`` is that of
        :meth:`from_edgelist`, for the parallel edges of multigraphs.

        Raises
        ------
        ArgumentTypeError
            ``graph`` is no NetworkX graph, or a weight is not a number.
        GraphError
            Only some edges have the attribute, or none has the one asked for.

        Examples
        --------
        >>> import gpu_pregel as gp, networkx as nx
        >>> gp.Graph.from_networkx(nx.path_graph(["ann", "bob", "cid"])).ids.tolist()
        ['ann', 'bob', 'cid']
        """
        src, dst, weights, n, ids = interchange.from_networkx(graph, weight=weight)
        stored = cls.from_edgelist(src, dst, weights, num_vertices=n, directed=True, combine=combine)
        return cls(stored.to_csr(), directed=graph.is_directed(), ids=ids)

    @classmethod
    def from_pandas(
        cls, edges: pandas.DataFrame, source: Name = None, target: Name = None, weight: Name = "auto", **options: Any
    ) -> Self:
        """Build a graph from columns of a data frame.

        Parameters
        ----------
        edges : DataFrame
            One row per edge.
        source, target : optional
            The names of the columns with the ids. Default: ``source`` and ``target``, ``src`` and ``dst``, or ``from``
            and ``to``, in any case; a table of exactly two columns needs no names.
        weight : str or None, default "auto"
            The column of weights; None for no weights. "auto" takes the column ``weight``, ``weights`` or ``value`` if
            there is one. Columns with other names are not read.
        **options
            Those of :meth:`from_edgelist`.

        Raises
        ------
        ArgumentError
            A column does not exist, or it is not certain which ones hold the edges; the message lists the columns.
        GraphError
            An id is missing; the message names the column and the row.

        Examples
        --------
        >>> import gpu_pregel as gp, pandas
        >>> friends = pandas.DataFrame({"from": ["ann", "bob"], "to": ["bob", "cid"], "years": [3, 5]})
        >>> gp.Graph.from_pandas(friends, weight="years")
        <Graph: 3 vertices, 4 stored edges, undirected, int64 weights>
        """
        return cls.from_edgelist(*interchange.from_pandas(edges, source, target, weight), **options)

    @classmethod
    def from_arrow(
        cls, edges: pyarrow.Table, source: Name = None, target: Name = None, weight: Name = "auto", **options: Any
    ) -> Self:
        """Build a graph from columns of an Arrow table, or of a table that supports the Arrow PyCapsule interface.

        The parameters and errors are those of :meth:`from_pandas`.

        Examples
        --------
        >>> import gpu_pregel as gp, pyarrow as pa
        >>> gp.Graph.from_arrow(pa.table({"src": [3, 5], "dst": [5, 9], "weight": [0.5, 2.0]}))
        <Graph: 3 vertices, 4 stored edges, undirected, float64 weights>
        """
        return cls.from_edgelist(*interchange.from_arrow(edges, source, target, weight), **options)

    @classmethod
    def from_dlpack(
        cls, indptr: Any, indices: Any, weights: Any = None, *, directed: bool = False, combine: str | None = None
    ) -> Self:
        """Make a graph from CSR arrays that support DLPack, such as PyTorch's on CPU or GPU; see :meth:`from_csr`."""
        arrays = interchange.from_dlpack(indptr, indices, weights)
        return cls.from_csr(*arrays, directed=directed, combine=combine)

    def to_csr(self) -> CSR:
        """Return ``(indptr, indices, weights)``, read-only and shared with the graph."""
        return self._csr

    def to_edgelist(self) -> tuple[Array, Array, Array | None]:
        """Return ``(src, dst, weight)`` by vertex number; an undirected edge appears once, with ``src <= dst``."""
        src = host_csr.sources(self._csr, threads=thread_count(None))
        if self.is_directed:
            return src, self.indices, self.weights
        once = src <= self.indices
        return src[once], self.indices[once], None if self.weights is None else self.weights[once]

    def to_scipy(self) -> scipy.sparse.csr_array:
        """Return a ``csr_array`` [n, n] with an entry for each stored edge.

        The entries are the weights; in a graph without weights they are 1 and of dtype int64, so that sums and products
        of matrices count edges and paths.

        Examples
        --------
        >>> import gpu_pregel as gp
        >>> star = gp.Graph.from_edgelist([0] * 300, range(1, 301)).to_scipy()
        >>> int((star @ star)[0, 0])
        300
        """
        return interchange.to_scipy(self._csr)

    def to_networkx(self) -> networkx.Graph:
        """Return a NetworkX graph with the user's ids as nodes; a multigraph if any edge is repeated.

        Weights become the edge attribute ``weight``.
        """
        nodes = self.to_ids(np.arange(self.num_vertices))
        src, dst, weights = self.to_edgelist()
        return interchange.to_networkx(
            *(nodes, self.to_ids(src), self.to_ids(dst), weights),
            directed=self.is_directed,
            multigraph=self.has_duplicates,
        )

    def to_pandas(self) -> pandas.DataFrame:
        """Return a data frame with the columns of :meth:`to_arrow`; ids that no dtype holds exactly are objects.

        Examples
        --------
        >>> import gpu_pregel as gp
        >>> gp.Graph.from_edgelist([7, "7"], [(0, 1), (1, 1)]).to_pandas().values.tolist()
        [[7, (0, 1)], ['7', (1, 1)]]
        """
        require("pandas", "Graph.to_pandas")
        return as_frame(self._edge_columns())

    def to_arrow(self) -> pyarrow.Table:
        """Return an Arrow table of ``source``, ``target`` and, if there are weights, ``weight``, by the user's ids.

        An undirected edge appears once.

        Raises
        ------
        ArgumentTypeError
            No type of Arrow holds all ids of a column exactly; the message names one.
        """
        return as_table(self._edge_columns())

    def _edge_columns(self) -> dict[str, Array]:
        src, dst, weights = self.to_edgelist()
        columns = {"source": self.to_ids(src), "target": self.to_ids(dst)}
        return columns if weights is None else {**columns, "weight": weights}

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the table of :meth:`to_arrow` as a PyCapsule, for ``pyarrow.table(graph)``, Polars and DuckDB."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_dlpack(self) -> tuple[Any, ...]:
        """Return writable copies of ``(indptr, indices, weights)`` that support DLPack."""
        return tuple(None if part is None else part.copy() for part in self._csr)

    # Queries by the user's ids; each raises ``UnknownVertexError`` for an id that no vertex has.

    @property
    def _index(self) -> IdIndex:
        return self._fact("id index", lambda: make_index(self.ids, self.num_vertices))

    def vertex(self, id: Any) -> int:
        """Return the vertex number of an id.

        Raises
        ------
        UnknownVertexError
            No vertex has this id. It is a ``KeyError``. Ids of different types differ: "1" is not 1.

        Examples
        --------
        >>> import gpu_pregel as gp
        >>> graph = gp.Graph.from_edgelist(["ann", "bob"], ["bob", "cid"])
        >>> graph.vertex("cid"), "dan" in graph
        (2, False)
        """
        return self._index.number(id)

    def vertices(self, ids: Any) -> npt.NDArray[np.int64]:
        """Return the vertex numbers of an array or another collection of ids, int64[k].

        Raises
        ------
        UnknownVertexError
            No vertex has one of the ids; the message names the first of them.
        ArgumentTypeError
            ``ids`` is a single id, or an array of several dimensions.

        Examples
        --------
        >>> import gpu_pregel as gp
        >>> graph = gp.Graph.from_edgelist(["ann", "bob"], ["bob", "cid"])
        >>> graph.vertices(["cid", "ann"]).tolist()
        [2, 0]
        """
        return self._index.numbers(ids)

    def __contains__(self, id: object) -> bool:
        """Return whether a vertex has this id."""
        try:
            self.vertex(id)
        except UnknownVertexError:
            return False
        return True

    def __len__(self) -> int:
        """Return the number of vertices, as NetworkX does; a graph without vertices is therefore false."""
        return self.num_vertices

    def neighbors(self, id: Any) -> Array:
        """Return the ids of the destinations of a vertex's stored edges, in the order of its row.

        Examples
        --------
        >>> import gpu_pregel as gp
        >>> graph = gp.Graph.from_edgelist(["ann", "bob"], ["bob", "cid"])
        >>> graph.neighbors("bob").tolist()
        ['ann', 'cid']
        """
        return self.to_ids(self._row(self.vertex(id)))

    def out_degree(self, id: Any) -> int:
        """Return the number of stored out-edges of a vertex.

        Examples
        --------
        >>> import gpu_pregel as gp
        >>> graph = gp.Graph.from_edgelist(["ann", "bob"], ["bob", "cid"], directed=True)
        >>> graph.out_degree("cid"), graph.in_degree("cid")
        (0, 1)
        """
        return int(self.out_degrees[self.vertex(id)])

    def in_degree(self, id: Any) -> int:
        """Return the number of stored in-edges of a vertex."""
        return int(self.in_degrees[self.vertex(id)])

    def has_edge(self, source: Any, target: Any) -> bool:
        """Return whether an edge from ``source`` to ``target`` is stored; both are ids of vertices.

        Examples
        --------
        >>> import gpu_pregel as gp
        >>> graph = gp.Graph.from_edgelist(["ann", "bob"], ["bob", "cid"], directed=True)
        >>> graph.has_edge("ann", "bob"), graph.has_edge("bob", "ann")
        (True, False)
        """
        row, v = self._row(self.vertex(source)), self.vertex(target)
        place = int(np.searchsorted(row, np.uint32(v)))
        return place < len(row) and int(row[place]) == v

    def _row(self, u: int) -> Array:
        """Return the destinations of the stored edges of vertex ``u``, ascending."""
        return self.indices[self.indptr[u] : self.indptr[u + 1]]

    # Transformations.

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


def _locked(csr: CSR) -> CSR:
    weights = None if csr.weights is None else lock(csr.weights)
    return CSR(lock(csr.indptr), lock(csr.indices), weights)

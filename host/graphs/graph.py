"""The graph: an immutable CSR, its constructors and conversions, and facts derived from it on first use."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from gpu_pregel.errors import ArgumentTypeError
from gpu_pregel.host.arguments import check_choice
from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.devices.memory import format_bytes
from gpu_pregel.host.devices.threads import thread_count
from gpu_pregel.host.graphs import csr as host_csr
from gpu_pregel.host.graphs import interchange
from gpu_pregel.host.graphs.csr import CSR, read_only
from gpu_pregel.host.graphs.device_graph import DeviceGraph
from gpu_pregel.host.graphs.edge_arrays import as_integers, as_vector, as_weights, has_duplicates
from gpu_pregel.host.graphs.numbering import check_ids, number_vertices
from gpu_pregel.host.graphs.partitions import Partition, partition_graph
from gpu_pregel.host.graphs.writers import writer
from gpu_pregel.host.superstep.progress import ProgressBar

if TYPE_CHECKING:
    import networkx
    import pandas
    import pyarrow
    import scipy.sparse

Array = np.ndarray[Any, Any]
Name = str | None
"""The name of a column, or None for the default."""
Fact = TypeVar("Fact")


class Graph:
    """An immutable graph in compressed sparse rows (CSR).

    Create one with a constructor such as :meth:`from_edgelist`, with :func:`gpu_pregel.read_graph` or with a
    generator, not by calling the class. An undirected edge is stored in both directions, a self-loop once. Rows are
    sorted by destination, then weight.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> gp.Graph.from_edgelist([0, 1, 3], [1, 2, 4])
    <Graph: 5 vertices, 6 stored edges, undirected>
    """

    def __init__(self, csr: CSR, *, directed: bool, ids: Array | None = None) -> None:
        self._csr = _locked(csr)
        self._is_directed = directed
        self._ids = None if ids is None else read_only(ids)
        self._facts: dict[str, Any] = {}

    @property
    def indptr(self) -> Array:
        """int64[n + 1]: row ``u`` of the stored edges is ``indices[indptr[u]:indptr[u + 1]]``."""
        return self._csr.indptr

    @property
    def indices(self) -> Array:
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
        """Number of stored edges, m: an undirected edge counts twice, a self-loop once."""
        return len(self.indices)

    @property
    def nbytes(self) -> int:
        """Size of the CSR in bytes."""
        return sum(part.nbytes for part in self._csr if part is not None)

    def __repr__(self) -> str:
        kind = "directed" if self.is_directed else "undirected"
        weights = "" if self.weights is None else f", {self.weights.dtype} weights"
        return f"<Graph: {self.num_vertices:,} vertices, {self.num_edges:,} stored edges, {kind}{weights}>"

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
    def out_degrees(self) -> Array:
        """int64[n]: number of stored out-edges of each vertex."""
        return self._fact("out_degrees", lambda: read_only(np.diff(self.indptr)))

    @property
    def in_degrees(self) -> Array:
        """int64[n]: number of stored in-edges of each vertex."""
        if not self.is_directed:
            return self.out_degrees
        return self._fact("in_degrees", lambda: read_only(np.bincount(self.indices, minlength=self.num_vertices)))

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
        return self._fact(f"copies on {memory}", lambda: DeviceGraph(device, self.num_edges))

    def _csr_on(self, device: Device, state: int) -> tuple[Any, Any]:
        """Return ``indptr`` and ``indices`` on a device, for work that needs ``state`` bytes in addition."""
        if device.is_host:
            return self.indptr, self.indices
        return self._on(device).csr(self._csr, state)

    def to_ids(self, vertices: Array) -> Array:
        """Translate vertex numbers into the user's ids."""
        return vertices if self.ids is None else self.ids[vertices]

    # Constructors.

    @classmethod
    def from_edgelist(
        cls,
        src: Any,
        dst: Any,
        weight: Any = None,
        *,
        num_vertices: int | None = None,
        directed: bool = False,
        renumber: bool | str = "auto",
        duplicates: str = "keep",
        self_loops: str = "keep",
        threads: int | None = None,
        progress: bool = False,
    ) -> Graph:
        """Build a graph from a list of edges.

        Parameters
        ----------
        src, dst : array_like[k]
            Ids of the source and the destination of each edge: non-negative integers, or values of another hashable
            type such as strings.
        weight : array_like[k], optional
            One number per edge; float16 becomes float32, 8-bit and 16-bit integers become int32.
        num_vertices : int, optional
            The ids are the numbers 0 to ``num_vertices - 1``. Default: one more than the largest id.
        directed : bool, default False
            If False, each edge is stored in both directions, a self-loop once.
        renumber : {"auto", True, False}
            "auto" keeps integer ids as vertex numbers if ``num_vertices`` is given or the largest id is less than four
            times the number of distinct ids; it numbers other integers in ascending order and other types by first
            appearance. True always renumbers, False never does.
        duplicates, self_loops : {"keep", "drop"}
            For duplicates, "drop" keeps the edge of smallest weight.
        threads : int, optional
            Number of threads. Default: the processors available to this process.
        progress : bool, default False
            Show a progress bar on stderr.

        Raises
        ------
        GraphError
            The arrays differ in length, an id is negative or too large, or a weight is NaN.
        ArgumentTypeError
            Ids or weights have an unsupported dtype.
        NotEnoughMemoryError
            The graph does not fit in memory; raised before building.

        Examples
        --------
        >>> import gpu_pregel as gp
        >>> graph = gp.Graph.from_edgelist(["ann", "bob"], ["bob", "cid"])
        >>> graph.ids.tolist(), graph.indices.tolist()
        (['ann', 'bob', 'cid'], [1, 0, 2, 1])
        """
        check_choice("duplicates", duplicates, ("keep", "drop"))
        check_choice("self_loops", self_loops, ("keep", "drop"))
        workers = thread_count(threads)
        src, dst, n, ids = number_vertices(as_vector("src", src), as_vector("dst", dst), num_vertices, renumber)
        weights = None if weight is None else as_weights(weight, len(src))
        if src.dtype != dst.dtype:
            src, dst = src.astype(np.int64), dst.astype(np.int64)
        with ProgressBar("building", shown=progress) as bar:
            csr = host_csr.build_csr(
                *(src, dst, weights, n),
                symmetric=not directed,
                drop_duplicates=duplicates == "drop",
                drop_self_loops=self_loops == "drop",
                threads=workers,
                tick=bar.tick,
            )
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
        threads: int | None = None,
    ) -> Graph:
        """Make a graph from CSR arrays, which are checked, and copied only if they need another dtype or order.

        Parameters
        ----------
        indptr : array_like[n + 1], integer
        indices : array_like[m], integer
        weights : array_like[m], optional
        directed : bool, default False
            If False, the arrays must hold each edge in both directions with the same weight.
        ids : array_like[n], optional
            The user's id of each vertex; ids must be distinct.
        threads : int, optional

        Raises
        ------
        GraphError
            ``indptr`` decreases, a neighbour is not below n, the lengths differ, a weight is NaN, an id is repeated, or
            an undirected graph is not symmetric.

        Examples
        --------
        >>> import gpu_pregel as gp
        >>> gp.Graph.from_csr([0, 1, 2], [1, 0])
        <Graph: 2 vertices, 2 stored edges, undirected>
        """
        workers = thread_count(threads)
        csr = CSR(
            as_integers("indptr", indptr, host_csr.INDPTR_DTYPE),
            as_integers("indices", indices, host_csr.INDEX_DTYPE),
            None if weights is None else as_weights(weights, len(indices)),
        )
        n = len(csr.indptr) - 1
        ids = None if ids is None else check_ids(as_vector("ids", ids), n)
        if not host_csr.check_csr(csr, symmetric=not directed, threads=workers):
            src = host_csr.sources(csr, threads=workers)
            csr = host_csr.build_csr(src, csr.indices, csr.weights, n, symmetric=False, threads=workers)
        return cls(csr, directed=directed, ids=ids)

    @classmethod
    def from_scipy(cls, matrix: scipy.sparse.sparray, *, directed: bool = True, weighted: bool = True) -> Graph:
        """Make a graph from a square SciPy sparse matrix: each stored entry (u, v), repeated or not, is an edge u to v.

        With ``directed=False`` the matrix must be symmetric. ``weighted=False`` ignores the values.
        """
        return cls.from_csr(*interchange.from_scipy(matrix, weighted=weighted), directed=directed)

    @classmethod
    def from_networkx(cls, graph: networkx.Graph, *, weight: str | None = "weight") -> Graph:
        """Make a graph from a NetworkX graph, keeping its direction; its nodes, in order, become the ids.

        ``weight`` names the edge attribute to read. Either every edge must have it or none; if none has it, the graph
        has no weights.
        """
        src, dst, weights, n, ids = interchange.from_networkx(graph, weight=weight)
        built = cls.from_edgelist(src, dst, weights, num_vertices=n, directed=graph.is_directed())
        return cls(built.to_csr(), directed=built.is_directed, ids=ids)

    @classmethod
    def from_pandas(
        cls, edges: pandas.DataFrame, source: Name = None, target: Name = None, weight: Name = None, **options: Any
    ) -> Graph:
        """Build a graph from columns of a data frame; by default the first two, without weights.

        ``options`` are those of :meth:`from_edgelist`.
        """
        return cls.from_edgelist(*interchange.from_pandas(edges, source, target, weight), **options)

    @classmethod
    def from_arrow(
        cls, edges: pyarrow.Table, source: Name = None, target: Name = None, weight: Name = None, **options: Any
    ) -> Graph:
        """Build a graph from columns of an Arrow table; by default the first two, without weights.

        ``options`` are those of :meth:`from_edgelist`.
        """
        return cls.from_edgelist(*interchange.from_arrow(edges, source, target, weight), **options)

    @classmethod
    def from_dlpack(cls, indptr: Any, indices: Any, weights: Any = None, *, directed: bool = False) -> Graph:
        """Make a graph from CSR arrays in CPU memory that support DLPack, such as tensors; see :meth:`from_csr`."""
        return cls.from_csr(*interchange.from_dlpack(indptr, indices, weights), directed=directed)

    # Conversions.

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
        """Return a ``csr_array`` [n, n] with an entry for each stored edge; 1 (int8) if the graph has no weights."""
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
        """Return a data frame with the columns of :meth:`to_arrow`."""
        return self.to_arrow().to_pandas()

    def to_arrow(self) -> pyarrow.Table:
        """Return an Arrow table of ``src``, ``dst`` and, if there are weights, ``weight``, by the user's ids."""
        src, dst, weights = self.to_edgelist()
        columns = {"src": self.to_ids(src), "dst": self.to_ids(dst)}
        return interchange.as_table(columns if weights is None else {**columns, "weight": weights})

    def to_dlpack(self) -> tuple[Any, ...]:
        """Return writable copies of ``(indptr, indices, weights)`` that support DLPack."""
        return tuple(None if part is None else part.copy() for part in self._csr)

    def save(self, path: str | os.PathLike[str], format: str | None = None) -> None:
        """Write the graph to a file; ``format`` or the suffix selects a format of :func:`gpu_pregel.read_graph`."""
        writer("graph")(self, path, format=format)

    def describe(self) -> str:
        """Return a one-line summary: size, kind and memory."""
        return f"{self!r}, {format_bytes(self.nbytes)}".replace("<Graph: ", "").replace(">", "")


def check_graph(graph: object) -> None:
    """Raise ``ArgumentTypeError`` unless ``graph`` is a ``Graph``."""
    if not isinstance(graph, Graph):
        raise ArgumentTypeError(f"graph must be a gpu_pregel Graph, not {type(graph).__name__}: use Graph.from_…")


def _locked(csr: CSR) -> CSR:
    weights = None if csr.weights is None else read_only(csr.weights)
    return CSR(read_only(csr.indptr), read_only(csr.indices), weights)

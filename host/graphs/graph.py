"""The graph: an immutable CSR, its constructors, and facts derived from it on first use."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from gpu_pregel.errors import ArgumentTypeError, GraphError
from gpu_pregel.host.arguments import check_choice
from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.devices.memory import format_bytes
from gpu_pregel.host.devices.threads import thread_count
from gpu_pregel.host.graphs import csr as host_csr
from gpu_pregel.host.graphs import numbering as _numbering
from gpu_pregel.host.graphs.csr import CSR, read_only
from gpu_pregel.host.graphs.device_graph import DeviceGraph
from gpu_pregel.host.graphs.edge_arrays import as_vector, as_weights
from gpu_pregel.host.graphs.partitions import Partition, partition_graph
from gpu_pregel.host.superstep.progress import Progress

if TYPE_CHECKING:
    import networkx
    import pandas
    import pyarrow
    import scipy.sparse

Array = np.ndarray[Any, Any]
Fact = TypeVar("Fact")


class Graph:
    """An immutable graph in compressed sparse rows (CSR).

    Made by a constructor (``Graph.from_edgelist`` and its like), by :func:`gpu_pregel.read_graph` or by a generator;
    not by calling the class. An undirected edge is stored in both directions, a self-loop once. Rows are sorted by
    destination, then weight.

    Attributes
    ----------
    indptr : int64[n + 1]
        Row ``u`` of the stored edges is ``indices[indptr[u]:indptr[u + 1]]``.
    indices : uint32[m]
        Destinations.
    weights : [m] or None
        int32, int64, uint32, uint64, float32 or float64.
    is_directed : bool
        Whether the edges have a direction.
    ids : array[n] or None
        The user's id of each vertex, where it is not the vertex number.

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
        """int64[n + 1]: where each vertex's out-edges begin, and the end."""
        return self._csr.indptr

    @property
    def indices(self) -> Array:
        """uint32[m]: the destination of each stored edge."""
        return self._csr.indices

    @property
    def weights(self) -> Array | None:
        """The weight of each stored edge [m], or None."""
        return self._csr.weights

    @property
    def is_directed(self) -> bool:
        """Whether the edges have a direction."""
        return self._is_directed

    @property
    def ids(self) -> Array | None:
        """The user's id of each vertex [n], or None where ids are the vertex numbers."""
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
        """Bytes of the CSR."""
        return sum(part.nbytes for part in self._csr if part is not None)

    def __repr__(self) -> str:
        kind = "directed" if self.is_directed else "undirected"
        weights = "" if self.weights is None else f", {self.weights.dtype} weights"
        return f"<Graph: {self.num_vertices:,} vertices, {self.num_edges:,} stored edges, {kind}{weights}>"

    # Facts derived on first use, and kept by name.

    def _fact(self, name: str, derive: Callable[[], Fact]) -> Fact:
        if name not in self._facts:
            self._facts[name] = derive()
        return cast(Fact, self._facts[name])

    @property
    def csc(self) -> CSR:
        """In-edges by destination: ``indptr``, ``indices`` (sources) and ``weights``; the CSR itself if undirected."""
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
        """Whether some vertex has several stored edges to the same destination."""

        def derive() -> bool:
            same = self.indices[1:] == self.indices[:-1]
            starts = self.indptr[1:-1]
            same[starts[(starts > 0) & (starts < self.num_edges)] - 1] = False
            return bool(same.any())

        return self._fact("has_duplicates", derive)

    @property
    def content_hash(self) -> int:
        """64 bits that depend on the stored edges and their weights: graphs that differ in these differ in it.

        All but one in 2^64 do. ``num_vertices``, ``is_directed`` and ``ids`` are no part of it.
        """
        return self._fact("content_hash", lambda: host_csr.hash_edges(self._csr, threads=thread_count(None)))

    def _partitions(
        self, count: int, *, with_pull: bool = True, transpose: bool = False, threads: int
    ) -> list[Partition]:
        """The graph cut into partitions; with in-edges beside out-edges if it is to be pulled along."""

        def derive() -> list[Partition]:
            out = self.csc if transpose else self._csr
            back = self._csr if transpose else self.csc if with_pull else None
            return partition_graph(out, back, count, threads=threads)

        return self._fact(f"partitions {count} {with_pull} {transpose and self.is_directed}", derive)

    def _on(self, device: Device) -> DeviceGraph:
        """Where copies of this graph's arrays on a device are kept."""
        memory = device.name.partition(":")[0] if device.name.startswith("emulated") else device.name
        return self._fact(f"copies on {memory}", lambda: DeviceGraph(device, self.num_edges))

    def _csr_on(self, device: Device, state: int) -> tuple[Any, Any]:
        """``indptr`` and ``indices`` on a device, for work that needs ``state`` bytes beside them."""
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
            Ids of the source and the destination of each edge: integers from 0, or values of another hashable type
            such as strings.
        weight : array_like[k], optional
            A number per edge; float16 becomes float32, integers of 8 and 16 bits become int32.
        num_vertices : int, optional
            Ids are the numbers ``0`` to ``num_vertices - 1``; without it one more than the largest id is taken.
        directed : bool, default False
            If False each edge is stored in both directions, a self-loop once.
        renumber : {"auto", True, False}
            "auto" keeps integer ids as vertex numbers if ``num_vertices`` is given or the largest id is below four
            times the number of distinct ids; other integers are numbered in ascending order, other types by first
            appearance. True always renumbers; False never does.
        duplicates, self_loops : {"keep", "drop"}
            Of several equal edges "drop" keeps the one of smallest weight.
        threads : int, optional
            Threads to build with; default: the processors that this process may use.
        progress : bool, default False
            Show a progress bar on stderr.

        Raises
        ------
        GraphError
            Different lengths, a negative or too large id, a NaN weight.
        ArgumentTypeError
            Ids or weights of an unsuitable dtype.
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
        numbered = _numbering.number_vertices(as_vector("src", src), as_vector("dst", dst), num_vertices, renumber)
        src, dst, n, ids = numbered
        weights = None if weight is None else as_weights(weight, len(src))
        if src.dtype != dst.dtype:
            src, dst = src.astype(np.int64), dst.astype(np.int64)
        with Progress("building", shown=progress) as bar:
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
        """Make a graph of CSR arrays, which are checked, and copied only if their dtype or order does not fit.

        Parameters
        ----------
        indptr : array_like[n + 1], integer
        indices : array_like[m], integer
        weights : array_like[m], optional
        directed : bool, default False
            If False the arrays must hold each edge in both directions, with the same weight.
        ids : array_like[n], optional
            The user's id of each vertex, all different.
        threads : int, optional

        Raises
        ------
        GraphError
            ``indptr`` decreases, a neighbour is at or beyond n, the lengths differ, a weight is NaN, an id is repeated,
            or an undirected graph is not symmetric.

        Examples
        --------
        >>> import gpu_pregel as gp
        >>> gp.Graph.from_csr([0, 1, 2], [1, 0])
        <Graph: 2 vertices, 2 stored edges, undirected>
        """
        workers = thread_count(threads)
        csr = CSR(
            _as_integers("indptr", indptr, host_csr.INDPTR_DTYPE),
            _as_integers("indices", indices, host_csr.INDEX_DTYPE),
            None if weights is None else as_weights(weights, len(indices)),
        )
        names = None if ids is None else as_vector("ids", ids)
        if names is not None and len(names) != len(csr.indptr) - 1:
            raise GraphError(f"ids has {len(names):,} entries for {len(csr.indptr) - 1:,} vertices: give one each")
        if names is not None:
            _numbering.check_distinct(names)
        if not host_csr.check_csr(csr, symmetric=not directed, threads=workers):
            src = host_csr.sources(csr, threads=workers)
            n = len(csr.indptr) - 1
            csr = host_csr.build_csr(src, csr.indices, csr.weights, n, symmetric=False, threads=workers)
        return cls(csr, directed=directed, ids=names)

    @classmethod
    def from_scipy(cls, matrix: scipy.sparse.sparray, *, directed: bool = True, weighted: bool = True) -> Graph:
        """Make a graph of a square SciPy sparse matrix: an edge u to v for each stored entry (u, v), repeated ones too.

        With ``directed=False`` the matrix must be symmetric. ``weighted=False`` ignores the values.
        """
        from gpu_pregel.host.graphs import interchange

        return interchange.from_scipy(matrix, directed=directed, weighted=weighted)

    @classmethod
    def from_networkx(cls, graph: networkx.Graph, *, weight: str | None = "weight") -> Graph:
        """Make a graph of a NetworkX graph, directed or not as that is; its nodes, in order, become the ids.

        ``weight`` names the edge attribute to read; it is used if every edge has it, and ignored if none has.
        """
        from gpu_pregel.host.graphs import interchange

        return interchange.from_networkx(graph, weight=weight)

    @classmethod
    def from_pandas(
        cls,
        edges: pandas.DataFrame,
        source: str | None = None,
        target: str | None = None,
        weight: str | None = None,
        **options: Any,
    ) -> Graph:
        """Build a graph from the columns of a data frame, by default its first two (and no weight).

        ``options`` are those of :meth:`from_edgelist`.
        """
        from gpu_pregel.host.graphs import interchange

        return interchange.from_pandas(edges, source, target, weight, **options)

    @classmethod
    def from_arrow(
        cls,
        edges: pyarrow.Table,
        source: str | None = None,
        target: str | None = None,
        weight: str | None = None,
        **options: Any,
    ) -> Graph:
        """Build a graph from the columns of an Arrow table, by default its first two (and no weight).

        ``options`` are those of :meth:`from_edgelist`.
        """
        from gpu_pregel.host.graphs import interchange

        return interchange.from_arrow(edges, source, target, weight, **options)

    @classmethod
    def from_dlpack(cls, indptr: Any, indices: Any, weights: Any = None, *, directed: bool = False) -> Graph:
        """Make a graph of CSR arrays in CPU memory that offer ``__dlpack__``, such as tensors; see :meth:`from_csr`."""
        from gpu_pregel.host.graphs import interchange

        return interchange.from_dlpack(indptr, indices, weights, directed=directed)

    # Conversions.

    def to_csr(self) -> CSR:
        """``(indptr, indices, weights)``, read-only and shared with the graph."""
        return self._csr

    def to_edgelist(self) -> tuple[Array, Array, Array | None]:
        """``(src, dst, weight)`` by vertex number, each undirected edge once with ``src <= dst``."""
        src = host_csr.sources(self._csr, threads=thread_count(None))
        if self.is_directed:
            return src, self.indices, self.weights
        once = src <= self.indices
        return src[once], self.indices[once], None if self.weights is None else self.weights[once]

    def to_scipy(self) -> scipy.sparse.csr_array:
        """A ``csr_array`` [n, n] with an entry for each stored edge, 1 (int8) where there are no weights."""
        from gpu_pregel.host.graphs import interchange

        return interchange.to_scipy(self)

    def to_networkx(self) -> networkx.Graph:
        """A NetworkX graph with the user's ids as nodes; a multigraph if there are repeated edges.

        Weights become the attribute ``weight`` of edges, so that a graph without edges has none to give back.
        """
        from gpu_pregel.host.graphs import interchange

        return interchange.to_networkx(self)

    def to_pandas(self) -> pandas.DataFrame:
        """A data frame with columns ``src``, ``dst`` and, if there are weights, ``weight``, by the user's ids."""
        return self.to_arrow().to_pandas()

    def to_arrow(self) -> pyarrow.Table:
        """An Arrow table with columns ``src``, ``dst`` and, if there are weights, ``weight``, by the user's ids."""
        from gpu_pregel.host.graphs import interchange

        return interchange.to_arrow(self)

    def to_dlpack(self) -> tuple[Any, ...]:
        """Writable copies of ``(indptr, indices, weights)`` that offer ``__dlpack__``."""
        return tuple(None if part is None else part.copy() for part in self._csr)

    def save(self, path: str | os.PathLike[str], format: str | None = None) -> None:
        """Write the graph to a file whose format the suffix or ``format`` names; see :func:`gpu_pregel.read_graph`."""
        from gpu_pregel.io import save_graph

        save_graph(self, path, format=format)

    def describe(self) -> str:
        """One line for people: size, kind and memory."""
        return f"{self!r}, {format_bytes(self.nbytes)}".replace("<Graph: ", "").replace(">", "")


def check_graph(graph: object) -> None:
    """Raise ``ArgumentTypeError`` unless ``graph`` is a ``Graph``."""
    if not isinstance(graph, Graph):
        raise ArgumentTypeError(
            f"graph must be a gpu_pregel Graph, not {type(graph).__name__}: make one with Graph.from_…"
        )


def _locked(csr: CSR) -> CSR:
    weights = None if csr.weights is None else read_only(csr.weights)
    return CSR(read_only(csr.indptr), read_only(csr.indices), weights)


def _as_integers(name: str, values: Any, dtype: np.dtype[Any]) -> Array:
    """``values`` as a contiguous array of an integer dtype, refused if they are no integers or do not fit."""
    array = as_vector(name, values)
    if array.size == 0 and array.dtype.kind == "f":
        array = array.astype(dtype)
    if array.dtype.kind not in "iu":
        raise ArgumentTypeError(f"{name} must have an integer dtype, not {array.dtype}")
    if array.dtype == dtype:
        return np.ascontiguousarray(array)
    limits = np.iinfo(dtype)
    for position in (array.argmin(), array.argmax()) if array.size else ():
        if not limits.min <= int(array[position]) <= limits.max:
            raise GraphError(f"{name}[{position:,}] is {array[position]:,}, which is no {dtype}")
    return np.ascontiguousarray(array, dtype)

"""The conversions of graphs from and to the objects of other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from gpu_pregel.host.arguments import check_flag, require
from gpu_pregel.host.devices.threads import thread_count
from gpu_pregel.host.graphs import csr as host_csr
from gpu_pregel.host.graphs import interchange
from gpu_pregel.host.graphs.constructors import GraphConstructors
from gpu_pregel.host.graphs.csr import CSR
from gpu_pregel.host.graphs.tables import as_frame, as_table

if TYPE_CHECKING:
    import networkx
    import pandas
    import pyarrow
    import scipy.sparse

Array = np.ndarray[Any, Any]
Name = str | None
"""The name of a column, or None for the default."""


class GraphConversions(GraphConstructors):
    """The conversions of :class:`Graph` from and to the objects of other libraries."""

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

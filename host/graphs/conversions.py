"""The conversions of graphs from and to the objects of other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from gpu_pregel.host.devices.threads import thread_count
from gpu_pregel.host.graphs import csr as host_csr
from gpu_pregel.host.graphs import interchange
from gpu_pregel.host.graphs.constructors import GraphConstructors
from gpu_pregel.host.graphs.csr import CSR

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
    def from_scipy(cls, matrix: scipy.sparse.sparray, *, directed: bool = True, weighted: bool = True) -> Self:
        """Make a graph from a square SciPy sparse matrix: each stored entry (u, v), repeated or not, is an edge u to v.

        With ``directed=False`` the matrix must be symmetric. ``weighted=False`` ignores the values.
        """
        return cls.from_csr(*interchange.from_scipy(matrix, weighted=weighted), directed=directed)

    @classmethod
    def from_networkx(cls, graph: networkx.Graph, *, weight: str | None = "weight") -> Self:
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
    ) -> Self:
        """Build a graph from columns of a data frame; by default the first two, without weights.

        ``options`` are those of :meth:`from_edgelist`.
        """
        return cls.from_edgelist(*interchange.from_pandas(edges, source, target, weight), **options)

    @classmethod
    def from_arrow(
        cls, edges: pyarrow.Table, source: Name = None, target: Name = None, weight: Name = None, **options: Any
    ) -> Self:
        """Build a graph from columns of an Arrow table; by default the first two, without weights.

        ``options`` are those of :meth:`from_edgelist`.
        """
        return cls.from_edgelist(*interchange.from_arrow(edges, source, target, weight), **options)

    @classmethod
    def from_dlpack(cls, indptr: Any, indices: Any, weights: Any = None, *, directed: bool = False) -> Self:
        """Make a graph from CSR arrays in CPU memory that support DLPack, such as tensors; see :meth:`from_csr`."""
        return cls.from_csr(*interchange.from_dlpack(indptr, indices, weights), directed=directed)

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

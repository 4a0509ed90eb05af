"""The constructors of graphs from edge lists and from CSR arrays."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from gpu_pregel.host.arguments import check_choice
from gpu_pregel.host.devices.threads import thread_count
from gpu_pregel.host.graphs import csr as host_csr
from gpu_pregel.host.graphs.csr import CSR
from gpu_pregel.host.graphs.csr_graph import CSRGraph
from gpu_pregel.host.graphs.edge_arrays import as_integers, as_vector, as_weights
from gpu_pregel.host.graphs.numbering import check_ids, number_vertices
from gpu_pregel.host.superstep.progress import ProgressBar


class GraphConstructors(CSRGraph):
    """The constructors of :class:`Graph` from edge lists and CSR arrays."""

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
    ) -> Self:
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
    ) -> Self:
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

"""The constructors of graphs from edge lists and from CSR arrays."""

from __future__ import annotations

from typing import Any, Self

from gpu_pregel.host.arguments import check_choice, check_flag
from gpu_pregel.host.devices.threads import thread_count
from gpu_pregel.host.graphs import csr as host_csr
from gpu_pregel.host.graphs.combine import check_combine
from gpu_pregel.host.graphs.csr import CSR
from gpu_pregel.host.graphs.csr_graph import CSRGraph
from gpu_pregel.host.graphs.device_csr import build_on_device
from gpu_pregel.host.graphs.edge_arrays import as_integers, as_weights, private
from gpu_pregel.host.graphs.id_columns import check_ids
from gpu_pregel.host.graphs.numbering import number_vertices, remove_unused
from gpu_pregel.host.graphs.transforms import combine_parallel
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

"""Graphs from and to the objects of other libraries: SciPy, NetworkX, pandas, Arrow, DLPack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, GraphError
from gpu_pregel.host.arguments import require
from gpu_pregel.host.graphs.graph import Graph

if TYPE_CHECKING:
    import networkx
    import pandas
    import pyarrow
    import scipy.sparse

Array = np.ndarray[Any, Any]


def from_scipy(matrix: scipy.sparse.sparray, *, directed: bool, weighted: bool) -> Graph:
    """See ``Graph.from_scipy``."""
    import scipy.sparse

    if not scipy.sparse.issparse(matrix):
        raise ArgumentTypeError(f"matrix must be a SciPy sparse matrix or array, not {type(matrix).__name__}")
    if matrix.ndim != 2:
        raise GraphError(f"matrix has {matrix.ndim} dimension{'s' * (matrix.ndim > 1)}: an adjacency matrix has 2")
    rows, columns = matrix.shape
    if rows != columns:
        raise GraphError(f"matrix has {rows:,} rows and {columns:,} columns: an adjacency matrix is square")
    if isinstance(matrix, (scipy.sparse.coo_array, scipy.sparse.coo_matrix)):
        # tocsr would add up the values of entries that stand at the same place.
        order = np.argsort(matrix.row, kind="stable")
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(matrix.row, minlength=rows))])
        weights = matrix.data[order] if weighted else None
        return Graph.from_csr(indptr, matrix.col[order], weights, directed=directed)
    csr = matrix.tocsr()
    return Graph.from_csr(csr.indptr, csr.indices, csr.data if weighted else None, directed=directed)


def to_scipy(graph: Graph) -> scipy.sparse.csr_array:
    """See ``Graph.to_scipy``."""
    import scipy.sparse

    n = graph.num_vertices
    small = graph.num_edges <= np.iinfo(np.int32).max and n <= np.iinfo(np.int32).max
    dtype = np.int32 if small else np.int64
    data = np.ones(graph.num_edges, np.int8) if graph.weights is None else graph.weights.copy()
    # SciPy has 32-bit indices for both or for neither.
    return scipy.sparse.csr_array((data, graph.indices.astype(dtype), graph.indptr.astype(dtype)), shape=(n, n))


def from_networkx(graph: networkx.Graph, *, weight: str | None) -> Graph:
    """See ``Graph.from_networkx``."""
    nodes = list(graph.nodes)
    n = len(nodes)
    number = {node: position for position, node in enumerate(nodes)}
    k = graph.number_of_edges()
    src = np.fromiter((number[u] for u, _ in graph.edges()), np.uint32, k)
    dst = np.fromiter((number[v] for _, v in graph.edges()), np.uint32, k)
    weights = None if weight is None else _networkx_weights(graph, weight)
    built = Graph.from_edgelist(src, dst, weights, num_vertices=n, directed=graph.is_directed())
    if all(type(node) is int and node == position for position, node in enumerate(nodes)):
        return built
    ids = np.empty(n, object)
    ids[:] = nodes
    return Graph(built.to_csr(), directed=built.is_directed, ids=ids)


def _networkx_weights(graph: networkx.Graph, weight: str) -> Array | None:
    values = [value for _, _, value in graph.edges(data=weight)]
    missing = sum(value is None for value in values)
    if missing == len(values):
        return None
    if missing:
        u, v, _ = next(edge for edge in graph.edges(data=weight) if edge[2] is None)
        raise GraphError(
            f"edge ({u!r}, {v!r}) has no attribute {weight!r}, though others have: give it one, or pass weight=None"
        )
    return np.asarray(values)


def to_networkx(graph: Graph) -> networkx.Graph:
    """See ``Graph.to_networkx``."""
    networkx = require("networkx", "Graph.to_networkx")
    kinds = {
        (False, False): networkx.Graph,
        (False, True): networkx.MultiGraph,
        (True, False): networkx.DiGraph,
        (True, True): networkx.MultiDiGraph,
    }
    result = kinds[graph.is_directed, graph.has_duplicates]()
    result.add_nodes_from(graph.to_ids(np.arange(graph.num_vertices)).tolist())
    src, dst, weights = graph.to_edgelist()
    pairs = zip(graph.to_ids(src).tolist(), graph.to_ids(dst).tolist(), strict=True)
    if weights is None:
        result.add_edges_from(pairs)
    else:
        result.add_weighted_edges_from((u, v, w) for (u, v), w in zip(pairs, weights.tolist(), strict=True))
    return result


def from_pandas(
    edges: pandas.DataFrame, source: str | None, target: str | None, weight: str | None, **options: Any
) -> Graph:
    """See ``Graph.from_pandas``."""
    source, target = _edge_columns(list(edges.columns), source, target, weight)
    src, dst = (edges[name].to_numpy() for name in (source, target))
    return Graph.from_edgelist(src, dst, None if weight is None else edges[weight].to_numpy(), **options)


def from_arrow(
    edges: pyarrow.Table, source: str | None, target: str | None, weight: str | None, **options: Any
) -> Graph:
    """See ``Graph.from_arrow``."""
    source, target = _edge_columns(edges.column_names, source, target, weight)
    for name in (source, target) if weight is None else (source, target, weight):
        if edges[name].null_count:
            row = int(np.asarray(edges[name].is_null()).argmax())
            raise GraphError(f"column {name!r} is null in row {row:,}: drop the row or fill it")
    src, dst = (edges[name].to_numpy() for name in (source, target))
    return Graph.from_edgelist(src, dst, None if weight is None else edges[weight].to_numpy(), **options)


def _edge_columns(names: list[Any], source: Any, target: Any, weight: Any) -> tuple[Any, Any]:
    """The names of the source and target columns: those asked for, or the first two."""
    if source is None and target is None and len(names) >= 2:
        source, target = names[:2]
    for role, name in (("source", source), ("target", target), ("weight", weight)):
        if name not in names and (name is not None or role != "weight"):
            raise ArgumentError(f"{role}={name!r} is no column: there are {', '.join(map(repr, names)) or 'none'}")
    return source, target


def to_arrow(graph: Graph) -> pyarrow.Table:
    """See ``Graph.to_arrow``."""
    src, dst, weights = graph.to_edgelist()
    columns = {"src": graph.to_ids(src), "dst": graph.to_ids(dst)}
    if weights is not None:
        columns["weight"] = weights
    return as_table(columns)


def as_table(columns: Mapping[str, Array | list[Any]]) -> pyarrow.Table:
    """An Arrow table, or ``ArgumentTypeError`` where a column holds ids that no type of Arrow's can hold."""
    import pyarrow as pa

    arrays = {}
    for name, values in columns.items():
        try:
            arrays[name] = pa.array(values)
        except (pa.ArrowException, OverflowError, TypeError, UnicodeEncodeError) as error:
            raise ArgumentTypeError(
                f"the ids in column {name!r} make no column of a table ({error}): use integers of 64 bits or strings"
            ) from error
    return pa.table(arrays)


def from_dlpack(indptr: Any, indices: Any, weights: Any, *, directed: bool) -> Graph:
    """See ``Graph.from_dlpack``."""
    arrays: list[Array | None] = []
    for name, tensor in (("indptr", indptr), ("indices", indices), ("weights", weights)):
        if tensor is None:
            arrays.append(None)
            continue
        try:
            arrays.append(np.from_dlpack(tensor))
        except (AttributeError, TypeError, BufferError, RuntimeError) as error:
            raise ArgumentTypeError(f"{name} cannot be taken by DLPack into CPU memory: {error}") from error
    return Graph.from_csr(*arrays, directed=directed)

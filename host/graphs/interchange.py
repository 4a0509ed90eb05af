"""Conversions between the arrays of graphs and the objects of SciPy, NetworkX, pandas, Arrow and DLPack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, GraphError
from gpu_pregel.host.arguments import require
from gpu_pregel.host.graphs.csr import CSR

if TYPE_CHECKING:
    import networkx
    import pandas
    import pyarrow
    import scipy.sparse

Array = np.ndarray[Any, Any]


class EdgeList(NamedTuple):
    """Edges by vertex number, the number of vertices, and the id of each vertex unless it is the vertex number."""

    src: Array
    dst: Array
    weights: Array | None
    num_vertices: int
    ids: Array | None


def from_scipy(matrix: scipy.sparse.sparray, *, weighted: bool) -> tuple[Array, Array, Array | None]:
    """Return ``indptr``, ``indices`` and weights of the entries of a square sparse matrix."""
    sparse = require("scipy.sparse", "Graph.from_scipy", "scipy")
    if not sparse.issparse(matrix):
        raise ArgumentTypeError(f"matrix must be a SciPy sparse matrix or array, not {type(matrix).__name__}")
    if matrix.ndim != 2:
        raise GraphError(f"matrix has {matrix.ndim} dimension{'s' * (matrix.ndim > 1)}: an adjacency matrix has 2")
    rows, columns = matrix.shape
    if rows != columns:
        raise GraphError(f"matrix has {rows:,} rows and {columns:,} columns: an adjacency matrix is square")
    if isinstance(matrix, (sparse.coo_array, sparse.coo_matrix)):
        # tocsr would add up the values of repeated entries.
        order = np.argsort(matrix.row, kind="stable")
        indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(matrix.row, minlength=rows))])
        return indptr, matrix.col[order], matrix.data[order] if weighted else None
    csr = matrix.tocsr()
    return csr.indptr, csr.indices, csr.data if weighted else None


def to_scipy(csr: CSR) -> scipy.sparse.csr_array:
    """Return a ``csr_array`` with an entry for each stored edge; see ``Graph.to_scipy``."""
    sparse = require("scipy.sparse", "Graph.to_scipy", "scipy")
    n, m = len(csr.indptr) - 1, len(csr.indices)
    small = m <= np.iinfo(np.int32).max and n <= np.iinfo(np.int32).max
    dtype = np.int32 if small else np.int64
    data = np.ones(m, np.int8) if csr.weights is None else csr.weights.copy()
    # SciPy requires indptr and indices to have the same dtype.
    return sparse.csr_array((data, csr.indices.astype(dtype), csr.indptr.astype(dtype)), shape=(n, n))


def from_networkx(graph: networkx.Graph, *, weight: str | None) -> EdgeList:
    """Return the edges of a NetworkX graph; vertices are numbered in the order of its nodes."""
    nodes = list(graph.nodes)
    n = len(nodes)
    number = {node: position for position, node in enumerate(nodes)}
    k = graph.number_of_edges()
    src = np.fromiter((number[u] for u, _ in graph.edges()), np.uint32, k)
    dst = np.fromiter((number[v] for _, v in graph.edges()), np.uint32, k)
    weights = None if weight is None else _networkx_weights(graph, weight)
    if all(type(node) is int and node == position for position, node in enumerate(nodes)):
        return EdgeList(src, dst, weights, n, None)
    ids = np.empty(n, object)
    ids[:] = nodes
    return EdgeList(src, dst, weights, n, ids)


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


def to_networkx(
    nodes: Array, src: Array, dst: Array, weights: Array | None, *, directed: bool, multigraph: bool
) -> networkx.Graph:
    """Build a NetworkX graph; ``src`` and ``dst`` hold nodes, and weights become the edge attribute ``weight``."""
    networkx = require("networkx", "Graph.to_networkx")
    kinds = {
        (False, False): networkx.Graph,
        (False, True): networkx.MultiGraph,
        (True, False): networkx.DiGraph,
        (True, True): networkx.MultiDiGraph,
    }
    result = kinds[directed, multigraph]()
    result.add_nodes_from(nodes.tolist())
    pairs = zip(src.tolist(), dst.tolist(), strict=True)
    if weights is None:
        result.add_edges_from(pairs)
    else:
        result.add_weighted_edges_from((u, v, w) for (u, v), w in zip(pairs, weights.tolist(), strict=True))
    return result


def from_pandas(
    edges: pandas.DataFrame, source: str | None, target: str | None, weight: str | None
) -> tuple[Array, Array, Array | None]:
    """Return sources, destinations and weights from the columns of a data frame."""
    source, target = _edge_columns(list(edges.columns), source, target, weight)
    src, dst = (edges[name].to_numpy() for name in (source, target))
    return src, dst, None if weight is None else edges[weight].to_numpy()


def from_arrow(
    edges: pyarrow.Table, source: str | None, target: str | None, weight: str | None
) -> tuple[Array, Array, Array | None]:
    """Return sources, destinations and weights from the columns of an Arrow table."""
    source, target = _edge_columns(edges.column_names, source, target, weight)
    for name in (source, target) if weight is None else (source, target, weight):
        if edges[name].null_count:
            row = int(np.asarray(edges[name].is_null()).argmax())
            raise GraphError(f"column {name!r} is null in row {row:,}: drop the row or fill it")
    src, dst = (edges[name].to_numpy() for name in (source, target))
    return src, dst, None if weight is None else edges[weight].to_numpy()


def _edge_columns(names: list[Any], source: Any, target: Any, weight: Any) -> tuple[Any, Any]:
    """Return the names of the source and target columns: those given, or the first two."""
    if source is None and target is None and len(names) >= 2:
        source, target = names[:2]
    for role, name in (("source", source), ("target", target), ("weight", weight)):
        if name not in names and (name is not None or role != "weight"):
            available = ", ".join(map(repr, names)) or "none"
            raise ArgumentError(f"{role}={name!r}: no such column; available columns: {available}")
    return source, target


def as_table(columns: Mapping[str, Array | list[Any]]) -> pyarrow.Table:
    """Build an Arrow table; raise ``ArgumentTypeError`` if a column holds ids that Arrow cannot represent."""
    import pyarrow as pa

    arrays = {}
    for name, values in columns.items():
        try:
            arrays[name] = pa.array(values)
        except (pa.ArrowException, OverflowError, TypeError, UnicodeEncodeError) as error:
            raise ArgumentTypeError(
                f"the ids in column {name!r} cannot be stored in a table ({error}): use 64-bit integers or strings"
            ) from error
    return pa.table(arrays)


def from_dlpack(*tensors: Any) -> list[Array | None]:
    """Return ``indptr``, ``indices`` and ``weights``, given as DLPack tensors in CPU memory or None, as arrays."""
    arrays: list[Array | None] = []
    for name, tensor in zip(("indptr", "indices", "weights"), tensors, strict=True):
        if tensor is None:
            arrays.append(None)
            continue
        try:
            arrays.append(np.from_dlpack(tensor))
        except (AttributeError, TypeError, BufferError, RuntimeError) as error:
            raise ArgumentTypeError(f"{name} cannot be imported by DLPack into CPU memory: {error}") from error
    return arrays

"""Conversions between the arrays of graphs and the objects of SciPy, NetworkX, pandas, Arrow and DLPack."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from gpu_pregel.errors import ArgumentTypeError, GraphError
from gpu_pregel.host.arguments import require
from gpu_pregel.host.devices.user_arrays import import_dlpack
from gpu_pregel.host.graphs.csr import CSR
from gpu_pregel.host.graphs.edge_arrays import as_numbers, inexact_number
from gpu_pregel.host.graphs.edge_columns import NamedColumns, find_columns
from gpu_pregel.host.graphs.id_columns import DISTINCT, is_missing
from gpu_pregel.host.graphs.networkx_adjacency import (
    attribute_values,
    read_adjacency,
    read_edge_data,
    read_edge_numbers,
)

if TYPE_CHECKING:
    import networkx
    import pandas
    import pyarrow
    import scipy.sparse

Array = np.ndarray[Any, Any]


class NetworkXGraph(Protocol):
    """What identifies a NetworkX graph to a type checker; NetworkX itself has no types."""

    @property
    def adj(self) -> Any:
        """The neighbours of each node."""
        ...


class SparseMatrix(Protocol):
    """What identifies a SciPy sparse array or matrix to a type checker."""

    def tocsr(self) -> Any:
        """Convert to compressed sparse rows."""
        ...


class EdgeList(NamedTuple):
    """Stored edges by vertex number, the number of vertices, and the id of each vertex or None for its number."""

    src: Array
    dst: Array
    weights: Array | None
    num_vertices: int
    ids: Array | None


def from_scipy(matrix: scipy.sparse.sparray, *, weighted: bool) -> tuple[Array, Array, Array | None]:
    """Return ``indptr``, ``indices`` and weights of the entries of a square sparse matrix.

    In a boolean matrix, True is an edge without a weight, and False is none.
    """
    sparse = require("scipy.sparse", "Graph.from_scipy", "scipy")
    if not sparse.issparse(matrix):
        remedy = ": use scipy.sparse.csr_array(matrix)" if isinstance(matrix, np.ndarray) else ""
        raise ArgumentTypeError(f"matrix must be a SciPy sparse matrix or array, not {type(matrix).__name__}{remedy}")
    if matrix.ndim != 2:
        raise GraphError(f"matrix has {matrix.ndim} dimension{'s' * (matrix.ndim > 1)}: an adjacency matrix has 2")
    rows, columns = matrix.shape
    if rows != columns:
        raise GraphError(f"matrix has {rows:,} rows and {columns:,} columns: an adjacency matrix is square")
    if matrix.dtype == bool:
        weighted = False
        matrix = matrix.tocoo()
        matrix = sparse.coo_array((matrix.data, (matrix.row, matrix.col)), shape=matrix.shape)
        matrix.eliminate_zeros()
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
    data = np.ones(m, np.int64) if csr.weights is None else csr.weights.copy()
    # SciPy requires indptr and indices to have the same dtype.
    return sparse.csr_array((data, csr.indices.astype(dtype), csr.indptr.astype(dtype)), shape=(n, n))


def from_networkx(graph: networkx.Graph, *, weight: str | None) -> EdgeList:
    """Return the stored edges of a NetworkX graph, whose vertices are numbered in the order of its nodes."""
    networkx = require("networkx", "Graph.from_networkx")
    if not isinstance(graph, networkx.Graph):
        raise ArgumentTypeError(f"graph must be a NetworkX graph, not {type(graph).__name__}")
    nodes, indptr, dst = read_adjacency(graph)
    n = len(nodes)
    src = np.repeat(np.arange(n, dtype=np.uint32), np.diff(indptr))
    if weight is None:
        return EdgeList(src, dst, None, n, _node_ids(nodes))
    if (numbers := read_edge_numbers(graph, weight, None)) is not None:
        return EdgeList(src, dst, numbers if len(numbers) else None, n, _node_ids(nodes))
    data = read_edge_data(graph)
    values = attribute_values(data, weight, None) if any(data) else [None] * len(data)
    none = next((e for e, value in enumerate(values) if value is None and weight in data[e]), -1)

    def name(e: int) -> str:
        return f"edge ({nodes[src[e]]!r}, {nodes[dst[e]]!r})"

    if none >= 0:
        raise GraphError(
            f"{name(none)} has the {weight} None: use a number, or pass weight=None to Graph.from_networkx"
        )
    return EdgeList(src, dst, _networkx_weights(weight, values, name), n, _node_ids(nodes))


def _node_ids(nodes: list[Any]) -> Array | None:
    """Return the ids of vertices numbered in the order of these nodes; None if the nodes are these numbers."""
    n = len(nodes)
    if set(map(type, nodes)) <= {int}:
        if nodes == list(range(n)):
            return None
        if min(nodes) >= -(1 << 63) and max(nodes) < 1 << 63:
            return np.array(nodes, np.int64)
    ids = np.empty(n, object)
    for position, value in enumerate(nodes):
        if type(value) not in DISTINCT and is_missing(value):
            raise GraphError(f"the graph has the node {value!r}, a missing value: remove it, or relabel it")
        ids[position] = value
    return ids


def _networkx_weights(weight: str, values: list[Any], name: Callable[[int], str]) -> Array | None:
    """Return the attribute ``weight`` of all edges as an array; None if none has it. ``name`` describes an edge."""
    missing = values.count(None)
    if missing == len(values):
        if weight != "weight" and values:
            raise GraphError(f"no edge has the attribute {weight!r}: pass the name of another one, or weight=None")
        return None
    if missing:
        raise GraphError(
            f"{name(values.index(None))} has no attribute {weight!r}, though others have: "
            f"give it one, or pass weight=None to Graph.from_networkx"
        )
    if not all(issubclass(kind, Real) for kind in set(map(type, values))):
        e = next(e for e, value in enumerate(values) if not isinstance(value, Real))
        raise ArgumentTypeError(
            f"{name(e)} has the {weight} {values[e]!r:.80}, which is not a number: "
            f"use numbers, or pass weight=None to Graph.from_networkx"
        )
    weights, rounded = as_numbers(values)
    if rounded >= 0:
        raise GraphError(f"{name(rounded)} has the {weight} {inexact_number(values[rounded])}")
    if weights.dtype.kind == "f" and np.isnan(weights).any():
        raise GraphError(f"{name(int(np.isnan(weights).argmax()))} has the {weight} NaN: use a number or drop the edge")
    return weights


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


def from_pandas(edges: pandas.DataFrame, source: Any, target: Any, weight: Any) -> tuple[Any, Any, Array | None]:
    """Return sources, destinations and weights from the columns of a data frame."""
    pandas = require("pandas", "Graph.from_pandas")
    if not isinstance(edges, pandas.DataFrame):
        raise ArgumentTypeError(f"edges must be a pandas DataFrame, not {type(edges).__name__}")
    call = "gp.Graph.from_pandas(edges, "
    chosen = find_columns(list(edges.columns), None, NamedColumns(source, target, weight), call)
    columns = {edges.columns[position]: edges.iloc[:, position] for position in chosen if position is not None}
    for name, column in columns.items():
        missing = column.isna()
        if missing.any():
            raise _null(name, int(missing.to_numpy().argmax()))
    return _edge_arrays(list(columns), [_pandas_column(column) for column in columns.values()])


def _pandas_column(column: pandas.Series) -> Any:
    """Return a column without missing values; strings as they are, numbers of pandas' own dtypes as NumPy's."""
    if column.dtype == "string":
        return column
    dtype = None if isinstance(column.dtype, np.dtype) else getattr(column.dtype, "numpy_dtype", None)
    return column.to_numpy(dtype=dtype if dtype is not None and dtype.kind in "iuf" else None)


def from_arrow(edges: pyarrow.Table, source: Any, target: Any, weight: Any) -> tuple[Any, Any, Array | None]:
    """Return sources, destinations and weights from the columns of an Arrow table."""
    import pyarrow as pa

    if not hasattr(edges, "__arrow_c_stream__"):
        raise ArgumentTypeError(f"edges must be an Arrow table, not {type(edges).__name__}")
    table = edges if isinstance(edges, pa.Table) else pa.table(edges)
    call = "gp.Graph.from_arrow(edges, "
    chosen = find_columns(table.column_names, None, NamedColumns(source, target, weight), call)
    columns = {table.column_names[position]: table[position] for position in chosen if position is not None}
    for name, column in columns.items():
        if column.null_count:
            raise _null(name, int(np.asarray(column.is_null()).argmax()))
    return _edge_arrays(list(columns), list(columns.values()))


def _edge_arrays(columns: list[Any], arrays: list[Any]) -> tuple[Any, Any, Array | None]:
    """Return sources, destinations and weights, which must be numbers; ids may be arrays of Arrow."""
    if len(arrays) == 2:
        return arrays[0], arrays[1], None
    src, dst, weights = arrays[0], arrays[1], np.asarray(arrays[2])
    if weights.dtype.kind not in "iuf" and len(weights):
        raise ArgumentTypeError(
            f"column {columns[2]!r} has weights of dtype {weights.dtype}, not numbers: convert it, as with "
            f"astype('float64') or 'int64', or pass weight=None to ignore it"
        )
    return src, dst, weights


def _null(name: Any, row: int) -> GraphError:
    return GraphError(f"column {name!r} is null in row {row:,}: drop the row or fill it")


def from_dlpack(*tensors: Any) -> list[Any]:
    """Return ``indptr``, ``indices`` and ``weights``, given as DLPack tensors or None, as NumPy or CuPy arrays."""
    arrays: list[Any] = []
    for name, tensor in zip(("indptr", "indices", "weights"), tensors, strict=True):
        if tensor is None:
            arrays.append(None)
            continue
        try:
            on_gpu = import_dlpack(tensor)
            arrays.append(np.from_dlpack(tensor) if on_gpu is None else on_gpu)
        except (AttributeError, TypeError, BufferError, RuntimeError) as error:
            raise ArgumentTypeError(f"{name} cannot be imported by DLPack: {error}") from error
    return arrays

"""The options of ``read_graph``, and the functions that build graphs from the data of a file."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from gpu_pregel.errors import FormatError
from gpu_pregel.host.devices.threads import thread_count
from gpu_pregel.host.graphs import csr as host_csr
from gpu_pregel.host.graphs.combine import check_order_known
from gpu_pregel.host.graphs.edge_arrays import as_weights, find_rounded
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.io._files import name_file_in_errors

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class ReadOptions:
    """The checked arguments of ``read_graph``; for None, the file decides."""

    format: str = "edgelist"
    directed: bool | None = None
    weight: str | int | None = "auto"
    weight_dtype: np.dtype[Any] | None = None
    num_vertices: int | None = None
    renumber: bool | str = "auto"
    combine: str | None = None
    self_loops: str = "keep"
    threads: int | None = None
    progress: bool = False
    source: str | int | None = None
    target: str | int | None = None
    header: bool | str = "auto"
    comments: bool | str = "auto"
    separator: str | None = None
    id_type: str = "auto"
    max_line_bytes: int = 1 << 20
    mmap: bool = True

    @property
    def wants_weights(self) -> bool:
        """Whether to read the weights of a file that has some."""
        return self.weight is not None


def cast_weights(values: Array, dtype: np.dtype[Any]) -> tuple[Array, int]:
    """Return ``values`` as ``dtype``, and the position of the first that is NaN or does not fit, or -1.

    An integer that a float dtype would round does not fit; floats are rounded.
    """
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        if values.dtype.kind == "f":
            # float64 can represent 2^63 and 2^64, but not the largest int64 and uint64.
            fits = (values >= float(limits.min)) & (values < float(limits.max + 1)) & (np.trunc(values) == values)
        else:
            fits = np.asarray((values >= limits.min) & (values <= limits.max))
        if not fits.all():
            return values, int((~fits).argmax())
        return values.astype(dtype, copy=False), -1
    with np.errstate(over="ignore"):
        cast = values.astype(dtype, copy=False)
    if values.dtype.kind != "f":
        return cast, find_rounded(values, dtype)
    faults = np.isnan(cast)
    if cast.dtype.itemsize < values.dtype.itemsize:
        faults |= np.isinf(cast) & np.isfinite(values)
    return cast, int(faults.argmax()) if faults.any() else -1


def in_range(value: Any, dtype: np.dtype[Any]) -> bool:
    """Return whether a whole number is in the range of an integer dtype."""
    limits = np.iinfo(dtype)
    return bool(limits.min <= value <= limits.max)


def weight_fault(value: object, dtype: np.dtype[Any]) -> str:
    """Describe why ``value`` is not a valid weight of ``dtype``."""
    if value != value:
        return "the weight is NaN: use a number or drop the edge"
    remedy = "weight_dtype='float64'" if dtype.kind in "iu" else "another weight_dtype"
    if dtype.kind in "iu" and isinstance(value, Integral) and dtype.itemsize < 8 + (dtype.kind == "i"):
        remedy = next(
            (f"weight_dtype={kind!r}" for kind in ("int64", "uint64") if in_range(value, np.dtype(kind))), remedy
        )
    exactly = " exactly" if dtype.kind == "f" and isinstance(value, Integral) else ""
    return f"the weight {value} does not fit {dtype}{exactly}: pass {remedy}, or weight=None to ignore the weights"


def checked_weights(path: str, options: ReadOptions, values: Array) -> Array:
    """Return the weights in the requested dtype, or in a supported one."""
    dtype = options.weight_dtype
    if dtype is None:
        with name_file_in_errors(path):
            return as_weights(values, len(values))
    cast, fault = cast_weights(values, dtype)
    if fault >= 0:
        raise FormatError(path, f"edge {fault:,}: {weight_fault(values[fault], dtype)}")
    return cast


def graph_from_edges(
    path: str,
    options: ReadOptions,
    src: Any,
    dst: Any,
    weight: Array | None,
    *,
    directed: bool,
    num_vertices: int | None = None,
    vertices: Any = None,
) -> Graph:
    """Build a graph from the edges of a file; ``num_vertices`` is the number stated in the file, if any.

    ``src``, ``dst`` and ``vertices`` are as in ``Graph.from_edgelist``.
    """
    with name_file_in_errors(path):
        return Graph.from_edgelist(
            *(src, dst, weight),
            num_vertices=options.num_vertices if num_vertices is None else num_vertices,
            vertices=vertices,
            directed=directed,
            renumber=options.renumber,
            combine=options.combine,
            self_loops=options.self_loops,
            threads=options.threads,
            progress=options.progress,
        )


def graph_from_rows(
    path: str,
    options: ReadOptions,
    indptr: Array,
    indices: Array,
    weights: Array | None,
    *,
    directed: bool,
    ids: Array | None = None,
) -> Graph:
    """Make a graph from the CSR of a file, without copying arrays that can be used unchanged.

    ``directed`` is the direction stated in the file. Reading a directed file as undirected adds the reverse of every
    edge; reading an undirected file as directed keeps both directions.
    """
    wanted = directed if options.directed is None else options.directed
    with name_file_in_errors(path):
        if weights is not None:
            weights = checked_weights(path, options, weights)
        graph = Graph.from_csr(
            indptr, indices, weights, directed=directed or wanted, ids=ids, copy=False, threads=options.threads
        )
        drop_self_loops = options.self_loops == "drop"
        if graph.is_directed == wanted and options.combine is None and not drop_self_loops:
            return graph
        check_order_known(options.combine, graph.weights)
        workers = thread_count(options.threads)
        csr = host_csr.build_csr(
            *(host_csr.sources(graph.to_csr(), threads=workers), graph.indices, graph.weights, graph.num_vertices),
            symmetric=directed and not wanted,
            combine=options.combine,
            drop_self_loops=drop_self_loops,
            ids=graph.ids,
            threads=workers,
        )
    return Graph(csr, directed=wanted, ids=graph.ids)

"""Text edge lists with one edge per line, ``source destination [weight]``, as used by SNAP, GAPBS and KONECT.

Also writes the edges of Matrix Market and Graphalytics files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np

from gpu_pregel.errors import ArgumentError, FormatError
from gpu_pregel.host.devices.threads import thread_count
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.io._files import Source, atomic_file, suffixes
from gpu_pregel.io._lines import Layout, first_data_line, line_blocks, read_lines, without_first_line
from gpu_pregel.io._options import ReadOptions, graph_from_edges

Array = np.ndarray[Any, Any]

_COMMENTS = b"#%"
_NUMBER = rb"[+-]?([0-9]|\.[0-9])"
_EDGES_PER_WRITE = 1 << 20
UNWEIGHTED = "Graph.from_csr(graph.indptr, graph.indices, directed=graph.is_directed)"
"""An expression that drops the weights of a graph, for error messages."""


def read(path: str, options: ReadOptions) -> Graph:
    """Read an edge list."""
    suffix = suffixes(path)[0]
    with Source(path) as source:
        line, number, blocks = first_data_line(line_blocks(source), _COMMENTS)
        if suffix in (".csv", ".tsv") and _is_header(line):
            header, header_number = line, number
            line, number, blocks = first_data_line(without_first_line(blocks), _COMMENTS)
            _check_header(path, header, header_number, line)
        layout = _layout(path, suffix, options, line, number)
        workers = thread_count(options.threads)
        columns = read_lines(source, blocks, layout, threads=workers, progress=options.progress)
    weight = columns[2] if layout.weight is not None else None
    return graph_from_edges(path, options, columns[0], columns[1], weight, directed=bool(options.directed))


def _is_header(line: bytes) -> bool:
    """Return whether neither of the first two columns starts like a number."""
    fields = line.replace(b'"', b"").split(_separator(line))[:2]
    return bool(line) and not any(re.match(_NUMBER, field.strip()) for field in fields)


def _check_header(path: str, header: bytes, number: int, first: bytes) -> None:
    """Reject headers of tables with a column of row numbers, as pandas and R write them by default."""
    names = [name.strip() for name in header.replace(b'"', b"").split(_separator(header))]
    if not names or not names[0]:
        raise FormatError(
            path, "the first column has no name: if it holds row numbers, write the table without them", number
        )
    columns = len(first.split(_separator(first)))
    if first and len(names) != columns:
        raise FormatError(path, f"the header names {len(names)} columns, but the first edge has {columns}", number)


def _separator(line: bytes) -> bytes | None:
    return next((mark for mark in (b",", b";") if mark in line), None)


def _layout(path: str, suffix: str, options: ReadOptions, line: bytes, number: int) -> Layout:
    """Derive the layout of the lines from the first edge."""
    separator = _separator(line)
    columns = len(line.split(separator)) if line else 3 if options.weighted else 2
    if suffix == ".wel" and columns == 2 and line:
        raise FormatError(path, "2 columns, but .wel files have a weight in a third column", number)
    if options.weighted and columns == 2:
        raise FormatError(path, "2 columns, so there are no weights: omit weighted=True", number)
    weight = None
    if columns > 2 and options.weighted is not False:
        weight = options.weight_dtype or np.dtype(np.float64)
    last = None
    if options.num_vertices is not None:
        last = options.num_vertices - 1
    return Layout(
        columns=max(2, columns),
        reason=f"the first edge (line {number}) has {columns}",
        weight=weight,
        separator=separator,
        comments=_COMMENTS,
        last=last,
        last_reason=f"num_vertices is {options.num_vertices}; raise it, or omit it to number the ids that occur",
    )


def write(graph: Graph, path: str, _format: str) -> None:
    """Write an edge list by the user's ids; each undirected edge appears once."""
    suffix = suffixes(path)[0]
    if suffix == ".el" and graph.weights is not None:
        raise ArgumentError(f"{path}: .el files cannot store weights: use the suffix .wel, or save {UNWEIGHTED}")
    if suffix == ".wel" and graph.weights is None:
        raise ArgumentError(f"{path}: .wel files require weights, but the graph has none: use the suffix .el")
    check_ids(graph, path, "edge lists", low=0)
    with atomic_file(path) as file:
        if suffix in (".txt", ".snap"):
            kind = "Directed" if graph.is_directed else "Undirected"
            file.write(f"# {kind} graph: {graph.num_vertices} vertices, {graph.num_edges} stored edges\n".encode())
        write_edges(file, graph, separator={".csv": ",", ".tsv": "\t"}.get(suffix, " "), ids=graph.ids)


def check_ids(graph: Graph, path: str, files: str, *, low: int) -> None:
    """Reject ids that these files cannot store or that cannot be read back."""
    if graph.ids is None:
        return
    if graph.ids.dtype.kind not in "iu":
        raise ArgumentError(f"{path}: {files} require integer ids: save as .parquet or .pregel")
    high = np.iinfo(np.int64).max
    for worst in (graph.ids.min(initial=0), graph.ids.max(initial=0)):
        if not low <= int(worst) <= high:
            problem = "negative" if worst < 0 else "larger than 64 bits (signed)"
            raise ArgumentError(f"{path}: the id {worst} is {problem}, which {files} cannot store: save as .pregel")


def edge_chunks(graph: Graph) -> Iterator[tuple[Array, Array, Array | None]]:
    """Yield the edges of ``Graph.to_edgelist`` in chunks, by vertex number (int64, uint32)."""
    indptr, indices, weights = graph.to_csr()
    first = 0
    while first < graph.num_vertices:
        end = max(first + 1, int(np.searchsorted(indptr, indptr[first] + _EDGES_PER_WRITE, side="right")) - 1)
        part = slice(indptr[first], indptr[end])
        src = np.repeat(np.arange(first, end), np.diff(indptr[first : end + 1]))
        dst, weight = indices[part], None if weights is None else weights[part]
        if not graph.is_directed:
            once = src <= dst
            src, dst, weight = src[once], dst[once], None if weight is None else weight[once]
        yield src, dst, weight
        first = end


def write_edges(
    file: BinaryIO, graph: Graph, *, separator: str, ids: Array | None = None, base: int = 0, swap: bool = False
) -> None:
    """Write one line per edge, with ``ids`` or numbers from ``base``; ``swap`` writes the destination first."""
    import pyarrow as pa
    import pyarrow.csv

    options = pa.csv.WriteOptions(include_header=False, delimiter=separator, quoting_style="none")
    for src, dst, weight in edge_chunks(graph):
        if not len(src):
            continue
        ends = [src + base, dst.astype(np.int64) + base] if ids is None else [ids[src], ids[dst]]
        columns = ends[::-1] if swap else ends
        table = pa.table(
            columns + ([] if weight is None else [weight]), names=["0", "1", "2"][: 2 + (weight is not None)]
        )
        pa.csv.write_csv(table, file, options)

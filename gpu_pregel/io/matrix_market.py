"""Matrix Market files: a square sparse matrix as a list of entries; each entry (u, v) is an edge u to v.

The format is specified in Boisvert, Pozo, Remington: The Matrix Market Exchange Formats, NISTIR 5935 (1996).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from gpu_pregel.errors import ArgumentError, FormatError
from gpu_pregel.host.devices.threads import thread_count
from gpu_pregel.host.graphs.csr import MAX_VERTICES
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.io._files import Source, atomic_file
from gpu_pregel.io._lines import (
    Block,
    Layout,
    first_data_line,
    header_numbers,
    line_blocks,
    line_of_row,
    read_lines,
    without_first_line,
)
from gpu_pregel.io._options import ReadOptions, checked_weights, graph_from_edges
from gpu_pregel.io.edgelist import write_edges

Array = np.ndarray[Any, Any]

_COMMENTS = b"%"
_BANNER = "%%MatrixMarket matrix coordinate {real|integer|pattern} {general|symmetric|skew-symmetric}"
_FIELDS = {"pattern": None, "integer": np.dtype(np.int64), "real": np.dtype(np.float64)}
_SYMMETRIES = ("general", "symmetric", "skew-symmetric")


class _MatrixHeader(NamedTuple):
    field: str
    symmetry: str
    n: int
    entries: int


def read(path: str, options: ReadOptions) -> Graph:
    """Read a Matrix Market file."""
    with Source(path) as source:
        header, blocks = _read_header(path, line_blocks(source, longest=options.max_line_bytes))
        dtype = _FIELDS[header.field]
        if not options.wants_weights:
            weight = None
        elif header.symmetry == "skew-symmetric":
            weight = dtype  # Weights are negated first and cast later.
        else:
            weight = dtype and (options.weight_dtype or dtype)
        layout = Layout(
            columns=2 if dtype is None else 3,
            reason=f"an entry of a {header.field} matrix has {2 if dtype is None else 3}",
            weight=weight,
            comments=_COMMENTS,
            first=1,
            last=header.n,
            last_reason=f"the matrix has {header.n} rows and columns",
        )
        workers = thread_count(options.threads)
        columns = read_lines(source, blocks, layout, threads=workers, progress=options.progress)
    if len(columns[0]) != header.entries:
        raise FormatError(path, f"the size line states {header.entries:,} entries, but there are {len(columns[0]):,}")
    for ids in columns[:2]:
        ids -= 1
    return _make_graph(path, options, header, columns[0], columns[1], columns[2] if weight is not None else None)


def _read_header(path: str, blocks: Iterator[Block]) -> tuple[_MatrixHeader, Iterator[Block]]:
    """Return the checked header, and the blocks that follow it."""
    block, number = next(blocks, (b"", 1))
    words = block[: block.find(b"\n") + 1 or len(block)].decode("utf-8", "replace").lower().split()
    if words[:1] not in (["%%matrixmarket"], ["%matrixmarket"]) or len(words) != 5:
        raise FormatError(path, f"is not a Matrix Market file: the first line must be {_BANNER}", 1)
    for word, what, known in zip(
        words[1:],
        ("object", "format", "field", "symmetry"),
        (("matrix",), ("coordinate",), tuple(_FIELDS), _SYMMETRIES),
        strict=True,
    ):
        if word not in known:
            raise FormatError(path, f"the {what} {word!r} is not supported: use {' or '.join(known)}", 1)
    field, symmetry = words[3:]
    if field == "pattern" and symmetry == "skew-symmetric":
        raise FormatError(path, "a pattern matrix cannot be skew-symmetric", 1)
    line, number, blocks = first_data_line(_prepend(block, blocks), _COMMENTS)
    sizes = header_numbers(line)
    if sizes is None or len(sizes) != 3:
        raise FormatError(path, "the size line must contain three numbers: rows, columns, entries", number or None)
    rows, columns, entries = sizes
    if rows != columns:
        raise FormatError(path, f"{rows:,} rows and {columns:,} columns: an adjacency matrix is square", number)
    if rows > MAX_VERTICES:
        raise FormatError(path, f"{rows:,} rows exceed the limit of {MAX_VERTICES:,} vertices", number)
    return _MatrixHeader(field, symmetry, rows, entries), without_first_line(blocks)


def _prepend(first: bytes, blocks: Iterator[Block]) -> Iterator[Block]:
    yield first, 1
    yield from blocks


def _make_graph(
    path: str, options: ReadOptions, header: _MatrixHeader, src: Array, dst: Array, weight: Array | None
) -> Graph:
    """Build a graph from the stored entries and those implied by the symmetry."""
    directed = header.symmetry != "symmetric" if options.directed is None else options.directed
    negated = header.symmetry == "skew-symmetric"
    if negated:
        if (src == dst).any():
            line = line_of_row(path, int((src == dst).argmax()), _COMMENTS, skip=1)
            raise FormatError(path, "a skew-symmetric matrix has no entries on the diagonal: remove this one", line)
        if weight is not None and not directed:
            raise ArgumentError(
                f"{path}: the weights of a skew-symmetric matrix differ in sign by direction: "
                f"omit directed=False, or pass weight=None"
            )
    if directed and header.symmetry != "general":
        other = src != dst
        src, dst = np.concatenate([src, dst[other]]), np.concatenate([dst, src[other]])
        if weight is not None:
            weight = np.concatenate([weight, -weight[other] if negated else weight[other]])
    if negated and weight is not None:
        weight = checked_weights(path, options, weight)
    return graph_from_edges(path, options, src, dst, weight, directed=directed, num_vertices=header.n)


def write(graph: Graph, path: str, _format: str) -> None:
    """Write a Matrix Market file: general if directed, otherwise the lower triangle of a symmetric matrix."""
    kind = None if graph.weights is None else graph.weights.dtype.kind
    field = {None: "pattern", "f": "real"}.get(kind, "integer")
    n, entries = graph.num_vertices, graph.num_stored_edges
    if not graph.is_directed:
        entries = (entries + _count_self_loops(graph)) // 2
    with atomic_file(path) as file:
        symmetry = "general" if graph.is_directed else "symmetric"
        file.write(f"%%MatrixMarket matrix coordinate {field} {symmetry}\n{n} {n} {entries}\n".encode())
        write_edges(file, graph, separator=" ", base=1, swap=not graph.is_directed)


def _count_self_loops(graph: Graph) -> int:
    src, dst, _ = graph.to_edgelist()
    return int(np.count_nonzero(src == dst))

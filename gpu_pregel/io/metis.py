"""METIS graph files: an undirected graph with the neighbours of one vertex on each line.

The format is specified in the METIS manual, section 4.5: a header ``n m [fmt [ncon]]``, vertices numbered from 1, and
comments that start with ``%``. Sizes and weights of vertices are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from gpu_pregel.errors import FormatError
from gpu_pregel.host.devices.threads import thread_count
from gpu_pregel.host.graphs.csr import MAX_VERTICES
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.superstep.progress import ProgressBar
from gpu_pregel.io._files import Source, atomic_file
from gpu_pregel.io._lines import (
    Block,
    GrowingArray,
    first_data_line,
    header_numbers,
    line_blocks,
    line_of_row,
    parse_by_arrow,
    without_first_line,
)
from gpu_pregel.io._losses import DIRECTED
from gpu_pregel.io._options import ReadOptions, graph_from_rows

Array = np.ndarray[Any, Any]

_COMMENTS = b"%"
_SPACES_TO_LINES = bytes.maketrans(b" \t\r", b"\n\n\n")
_ENTRIES_PER_WRITE = 1 << 20
_LARGEST_WEIGHT = np.iinfo(np.int64).max


class _MetisHeader(NamedTuple):
    n: int
    m: int
    skipped: int
    """Number of values at the start of each line: the size and weights of the vertex."""
    weighted: bool
    line: int


def read(path: str, options: ReadOptions) -> Graph:
    """Read a METIS graph."""
    with Source(path) as source:
        line, number, blocks = first_data_line(line_blocks(source), _COMMENTS)
        header = _parse_header(path, line, number)
        lengths, values = _read_rows(source, without_first_line(blocks), options)
    lengths = _check_lengths(path, header, lengths)
    if header.skipped:
        position = np.arange(len(values)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        values = values[position >= header.skipped]
        lengths = lengths - header.skipped
    weights = None
    if header.weighted:
        lengths = lengths // 2
        values, weights = values[0::2], values[1::2].astype(np.int64)
    _check_neighbours(path, header, lengths, values)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    return graph_from_rows(
        path, options, indptr, values - 1, weights if options.wants_weights else None, directed=False
    )


def _parse_header(path: str, line: bytes, number: int) -> _MetisHeader:
    fields, numbers = line.split(), header_numbers(line)
    if numbers is None or not 2 <= len(numbers) <= 4:
        raise FormatError(path, "the header must contain two to four numbers: n m [fmt [ncon]]", number or None)
    n, m = numbers[:2]
    fmt = fields[2].decode().zfill(3) if len(fields) > 2 else "000"
    if not re.fullmatch("[01]{3}", fmt):
        raise FormatError(
            path, f"the fmt {fmt} must be three digits, each 0 or 1: vertex sizes, vertex weights, edge weights", number
        )
    constraints = numbers[3] if len(numbers) > 3 else 1
    if n > MAX_VERTICES:
        raise FormatError(path, f"{n:,} vertices exceed the limit of {MAX_VERTICES:,}", number)
    return _MetisHeader(n, m, (fmt[0] == "1") + constraints * (fmt[1] == "1"), fmt[2] == "1", number)


def _read_rows(source: Source, blocks: Iterator[Block], options: ReadOptions) -> tuple[Array, Array]:
    """Return how many numbers each line has, and the numbers of all lines."""
    import pyarrow as pa

    threads = thread_count(options.threads)
    values, lengths = GrowingArray(np.dtype(np.uint32), 0), [np.empty(0, np.int64)]
    with ProgressBar("reading", shown=options.progress) as bar:
        for block, number in blocks:
            text = re.sub(rb"(?m)^[ \t]*%[^\n]*(\n|\Z)", b"", block) if b"%" in block else block
            if not text:
                continue
            lengths.append(_tokens_per_line(text))
            if lengths[-1].any():
                try:
                    tokens = text.translate(_SPACES_TO_LINES)
                    for batch in parse_by_arrow(tokens, b",", {0: "int64"}, 1, threads=threads):
                        values.add(batch[0])
                except pa.ArrowInvalid:
                    raise _not_a_number(source.path, block, number) from None
            if source.size:
                bar.update(source.position, source.size)
    return np.concatenate(lengths), values.finish()


def _tokens_per_line(text: bytes) -> Array:
    letters = np.frombuffer(text, np.uint8)
    begins = letters > ord(" ")
    begins[1:] &= letters[:-1] <= ord(" ")
    ends = np.flatnonzero(letters == ord("\n"))
    if letters[-1] != ord("\n"):
        ends = np.append(ends, len(letters))
    return np.diff(np.searchsorted(np.flatnonzero(begins), ends), prepend=0)


def _not_a_number(path: str, block: bytes, number: int) -> FormatError:
    for offset, line in enumerate(block.split(b"\n")):
        for field in line.split() if not line.strip().startswith(_COMMENTS) else ():
            if not re.fullmatch(rb"-?[0-9]{1,18}", field):
                shown = field[:40].decode("utf-8", "backslashreplace")
                return FormatError(path, f"{shown!r} is not a 64-bit integer", number + offset)
    return FormatError(path, "contains a value that is not an integer")


def _line(path: str, row: int) -> int:
    return line_of_row(path, row, _COMMENTS, skip=1, blank_rows=True)


def _check_lengths(path: str, header: _MetisHeader, lengths: Array) -> Array:
    """Return the lengths of the n rows; raise unless there are n and each can be split into its parts."""
    n = header.n
    if len(lengths) < n:
        raise FormatError(path, f"the header states {n:,} vertices, but {len(lengths):,} lines follow", header.line)
    if lengths[n:].any():
        line = _line(path, n + int((lengths[n:] > 0).argmax()))
        raise FormatError(path, f"more lines than the {n:,} vertices stated in the header", line)
    lengths = lengths[:n]
    short = lengths < header.skipped
    if short.any():
        problem = f"the fmt in the header requires {header.skipped} sizes and weights at the start of each line"
        raise FormatError(path, problem, _line(path, int(short.argmax())))
    odd = (lengths - header.skipped) % 2 == 1
    if header.weighted and odd.any():
        problem = "the fmt in the header requires a weight after each neighbour, but one is missing"
        raise FormatError(path, problem, _line(path, int(odd.argmax())))
    return lengths


def _check_neighbours(path: str, header: _MetisHeader, lengths: Array, neighbours: Array) -> None:
    own = np.repeat(np.arange(1, header.n + 1), lengths)
    outside = (neighbours < 1) | (neighbours > header.n)
    if outside.any():
        e = int(outside.argmax())
        problem = f"the neighbour {neighbours[e]} is not a vertex: vertices are numbered from 1 to {header.n}"
        raise FormatError(path, problem, _line(path, int(own[e]) - 1))
    loops = neighbours == own
    if loops.any():
        u = int(own[loops.argmax()])
        raise FormatError(
            path, f"vertex {u} is its own neighbour: METIS files cannot store self-loops", _line(path, u - 1)
        )
    if len(neighbours) != 2 * header.m:
        raise FormatError(
            path,
            f"the header states {header.m:,} edges, hence {2 * header.m:,} neighbours, but there are "
            f"{len(neighbours):,}: every edge must appear on the lines of both its vertices",
            header.line,
        )


def write(graph: Graph, path: str, _format: str) -> None:
    """Write a METIS graph: undirected, without self-loops, and with positive integer weights or none."""
    indptr, indices, weights = graph.to_csr()
    if graph.is_directed:
        raise FormatError(path, f"metis files cannot hold directed graphs: {DIRECTED}")
    src, dst, _ = graph.to_edgelist()
    if (src == dst).any():
        problem = (
            "metis files cannot hold self-loops: save as .mtx or .pregel, or build the graph with self_loops='drop'"
        )
        raise FormatError(path, problem)
    if weights is not None and (
        weights.dtype.kind == "f" or (weights.size and not 0 < weights.min() <= weights.max() <= _LARGEST_WEIGHT)
    ):
        raise FormatError(path, "metis files require positive integer weights: save as .mtx, .wel or .pregel")
    with atomic_file(path) as file:
        file.write(f"{graph.num_vertices} {len(src)}{'' if weights is None else ' 001'}\n".encode())
        first = 0
        while first < graph.num_vertices:
            end = int(np.searchsorted(indptr, indptr[first] + _ENTRIES_PER_WRITE, side="right")) - 1
            end = min(max(end, first + 1), first + _ENTRIES_PER_WRITE)
            part = slice(indptr[first], indptr[end])
            offsets = indptr[first : end + 1] - indptr[first]
            _write_rows(file, offsets, indices[part], None if weights is None else weights[part])
            first = end


def _write_rows(file: BinaryIO, offsets: Array, indices: Array, weights: Array | None) -> None:
    import pyarrow as pa
    import pyarrow.compute

    numbers = pa.array(indices.astype(np.int64) + 1).cast(pa.string())
    if weights is not None:
        numbers = pa.compute.binary_join_element_wise(numbers, pa.array(weights).cast(pa.string()), " ")
    rows = pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), numbers)
    lines = pa.compute.binary_join(rows, " ").to_pylist()
    file.write(("\n".join(lines) + "\n").encode())

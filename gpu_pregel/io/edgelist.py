"""Text edge lists with one edge per line, ``source destination [weight]``, as used by SNAP, GAPBS and KONECT.

Also writes the edges of Matrix Market and Graphalytics files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from gpu_pregel.errors import ArgumentError, FormatError
from gpu_pregel.host.devices.threads import thread_count
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.io._files import Source, atomic_file, suffixes
from gpu_pregel.io._head import read_head
from gpu_pregel.io._lines import Block, line_blocks, read_lines
from gpu_pregel.io._losses import has_isolated_vertices
from gpu_pregel.io._options import ReadOptions, graph_from_edges
from gpu_pregel.io._table import TableReader, TextEdges

Array = np.ndarray[Any, Any]

_NOTE = re.compile(rb"\n# gpu_pregel: num_vertices=([0-9]{1,10})\s*\Z")
_NOTE_BYTES = 100
_FIRST_LINE = re.compile(rb"# (Directed|Undirected) graph: [0-9]+ vertices, [0-9]+ stored edges\r?\n")
"""Those of SNAP also mention a direction, but in other words, and not of the graph: some list both directions."""
_HEAD_BYTES = 1 << 16
_EDGES_PER_WRITE = 1 << 20


class _StatedFacts:
    """The direction and the number of vertices, as the first and the last line of a file of this package state them."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._is_directed: bool | None = None
        self._tail = b""

    def watch(self, blocks: Iterator[Block], *, to_end: bool = True) -> Iterator[Block]:
        """Yield the blocks unchanged; ``to_end`` says that the last one is among them."""
        for block in blocks:
            if self._is_directed is None:
                found = _FIRST_LINE.match(block[0])
                self._is_directed = found is not None and found[1] == b"Directed"
            if to_end:
                self._tail = (self._tail + block[0][-_NOTE_BYTES:])[-_NOTE_BYTES:]
            yield block

    @property
    def number(self) -> int | None:
        """The number of vertices, or None if there is none or the options take precedence."""
        found = _NOTE.search(b"\n" + self._tail) if self._options.num_vertices is None else None
        return int(found[1]) if found else None

    @property
    def directed(self) -> bool:
        """Whether the graph is directed: as in the options, otherwise as stated, otherwise not."""
        return bool(self._is_directed if self._options.directed is None else self._options.directed)


def read(path: str, options: ReadOptions) -> Graph:
    """Read an edge list: numbers by the parser of lines, names and quoted text by Arrow's reader of tables."""
    # A pipe can be opened only once.
    if Path(path).is_file() and suffixes(path)[1] is None:
        with Source(path) as source:
            # Tables are mapped into memory, except for their head.
            stated = _StatedFacts(options)
            blocks = line_blocks(source, _HEAD_BYTES, longest=options.max_line_bytes)
            head = read_head(path, options, stated.watch(blocks, to_end=False))
            if not head.is_numeric:
                return _make_graph(path, options, TableReader(source, options).read(head), stated)
    with Source(path) as source:
        stated = _StatedFacts(options)
        head = read_head(path, options, stated.watch(line_blocks(source, longest=options.max_line_bytes)))
        if not head.is_numeric:
            return _make_graph(path, options, TableReader(source, options).read(head), stated)
        try:
            arrays = read_lines(
                source, head.blocks, head.layout, threads=thread_count(options.threads), progress=options.progress
            )
        except FormatError:
            if not source.is_regular:
                raise
        else:
            weight = arrays[2] if head.layout.weight is not None else None
            return _make_graph(path, options, TextEdges(arrays[0], arrays[1], weight), stated)
    # A line is faulty, or some ids are names, and then all are.
    with Source(path) as source:
        stated = _StatedFacts(options)
        head = read_head(path, options, stated.watch(line_blocks(source, longest=options.max_line_bytes)))
        return _make_graph(path, options, TableReader(source, options).read(head), stated)


def _make_graph(path: str, options: ReadOptions, edges: TextEdges, stated: _StatedFacts) -> Graph:
    directed = stated.directed
    if edges.names is None:
        return graph_from_edges(path, options, *edges[:3], directed=directed, num_vertices=stated.number)
    if options.renumber is False:
        raise ArgumentError(f"{path}: the id {edges.names[0].as_py()!r:.80} is a name: omit renumber=False")
    n = len(edges.names)
    graph = graph_from_edges(path, options, *edges[:3], directed=directed, num_vertices=n)
    return Graph(graph.to_csr(), directed=directed, ids=np.fromiter(edges.names.to_pylist(), object, n))


def write(graph: Graph, path: str, _format: str) -> None:
    """Write an edge list by the user's ids; each undirected edge appears once."""
    suffix = suffixes(path)[0]
    if suffix == ".wel" and graph.weights is None:
        raise FormatError(path, ".wel files require weights, but the graph has none: use the suffix .el")
    separator = {".csv": ",", ".tsv": "\t"}.get(suffix)
    with atomic_file(path) as file:
        if separator is not None:
            names = ["source", "target"] + ["weight"] * (graph.weights is not None)
            file.write(f"{separator.join(names)}\n".encode())
        elif suffix in (".txt", ".snap"):
            kind = "Directed" if graph.is_directed else "Undirected"
            file.write(
                f"# {kind} graph: {graph.num_vertices} vertices, {graph.num_stored_edges} stored edges\n".encode()
            )
        write_edges(file, graph, separator=separator or " ", ids=graph.ids, quoted=separator is not None)
        if separator is None and graph.ids is None and has_isolated_vertices(graph):
            # At the end, where it does not disturb GAPBS, which stops reading at the first line of another form.
            file.write(f"# gpu_pregel: num_vertices={graph.num_vertices}\n".encode())


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
    file: BinaryIO,
    graph: Graph,
    *,
    separator: str,
    ids: Array | None = None,
    quoted: bool = False,
    base: int = 0,
    swap: bool = False,
) -> None:
    """Write one line per edge, with ``ids`` or numbers from ``base``; ``swap`` writes the destination first."""
    import pyarrow as pa
    import pyarrow.csv

    options = pa.csv.WriteOptions(
        include_header=False, delimiter=separator, quoting_style="needed" if quoted else "none"
    )
    names = None if ids is None else pa.array(ids)
    for src, dst, weight in edge_chunks(graph):
        if not len(src):
            continue
        ends = [src + base, dst.astype(np.int64) + base]
        if names is not None:
            ends = [names.take(pa.array(end)) for end in ends]
        columns = ends[::-1] if swap else ends
        table = pa.table(
            columns + ([] if weight is None else [weight]), names=["0", "1", "2"][: 2 + (weight is not None)]
        )
        pa.csv.write_csv(table, file, options)

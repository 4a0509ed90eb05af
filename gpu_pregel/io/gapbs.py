"""Serialized graphs of GAPBS: a CSR, followed by a CSC if directed, of 64-bit offsets and 32-bit neighbours.

The layout follows ``WriteSerializedGraph`` in writer.h of GAPBS: one byte that is 1 if the graph is directed, int64 m,
int64 n, offsets, neighbours; in .wsg files an int32 weight follows each neighbour. All values are little-endian.
"""

from __future__ import annotations

from typing import Any, BinaryIO

import numpy as np

from gpu_pregel.errors import FormatError
from gpu_pregel.host.devices.memory import require_memory
from gpu_pregel.host.graphs.csr import CSR, MAX_VERTICES
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.io._files import atomic_file, load_bytes, suffixes, write_array
from gpu_pregel.io._options import ReadOptions, graph_from_rows

Array = np.ndarray[Any, Any]

_HEADER_BYTES = 17
_MAX_VERTICES = int(np.iinfo(np.int32).max)
_ROWS_PER_WRITE = 1 << 20


def read(path: str, options: ReadOptions) -> Graph:
    """Read a serialized graph; only the out-edges of a directed graph."""
    data = load_bytes(path)
    pairs = _has_weights(path, _entries_are_pairs(data))
    directed, m, n = _parse_header(path, data, 8 if pairs else 4)
    require_memory(len(data), f"reading {path}")
    start = _HEADER_BYTES + 8 * (n + 1)
    indptr = np.array(data[_HEADER_BYTES:start].view("<i8"))
    if pairs:
        entries = data[start : start + 8 * m].view("<i4").reshape(m, 2)
        indices, weights = np.array(entries[:, 0]), np.array(entries[:, 1]) if options.wants_weights else None
    else:
        indices, weights = np.array(data[start : start + 4 * m].view("<i4")), None
    # Viewed as unsigned, a negative neighbour is larger than n.
    return graph_from_rows(path, options, indptr, indices.view(np.uint32), weights, directed=directed)


def _has_weights(path: str, otherwise: bool) -> bool:
    """Return whether files with this suffix have weights; ``otherwise`` if the format has no such suffix."""
    return {".sg": False, ".wsg": True}.get(suffixes(path)[0], otherwise)


def _entries_are_pairs(data: Array) -> bool:
    """Return whether the size of the file is that of a graph with weights."""
    if len(data) < _HEADER_BYTES:
        return False
    m, n = map(int, data[1:_HEADER_BYTES].view("<i8"))
    return m > 0 and len(data) == _HEADER_BYTES + (1 + int(data[0])) * (8 * (n + 1) + 8 * m)


def _parse_header(path: str, data: Array, entry_bytes: int) -> tuple[bool, int, int]:
    """Return whether the graph is directed, m and n; raise unless the size of the file matches."""
    if len(data) < _HEADER_BYTES:
        raise FormatError(
            path, f"has {len(data)} bytes, but the header alone has {_HEADER_BYTES}: the file is truncated"
        )
    m, n = map(int, data[1:_HEADER_BYTES].view("<i8"))
    if data[0] > 1 or m < 0 or not 0 <= n <= MAX_VERTICES:
        raise FormatError(path, f"the header is damaged: directed {data[0]}, {m:,} stored edges, {n:,} vertices")
    directed = bool(data[0])
    size = _HEADER_BYTES + (1 + directed) * (8 * (n + 1) + entry_bytes * m)
    if len(data) != size:
        state = "truncated" if len(data) < size else "too long"
        raise FormatError(
            path,
            f"has {len(data):,} bytes, but a{'' if directed else 'n un'}{' ' * directed}directed graph of {n:,} "
            f"vertices and {m:,} stored edges takes {size:,}: the file is {state}, or it has the wrong suffix (.sg is "
            f"without weights, .wsg with weights)",
        )
    return directed, m, n


def write(graph: Graph, path: str, _format: str) -> None:
    """Write a serialized graph for GAPBS, by vertex number."""
    pairs = _has_weights(path, graph.weights is not None)
    if graph.num_vertices > _MAX_VERTICES:
        problem = f"GAPBS supports 31-bit vertex numbers, too few for {graph.num_vertices:,} vertices: save as .pregel"
        raise FormatError(path, problem)
    if pairs and graph.weights is None:
        raise FormatError(path, ".wsg files require weights, but the graph has none: use the suffix .sg")
    if graph.weights is not None and graph.weights.dtype != np.int32:
        raise FormatError(
            path,
            f".wsg files require int32 weights, not {graph.weights.dtype}: build the graph with int32 weights, or save "
            f"as .wel, .parquet or .pregel",
        )
    with atomic_file(path) as file:
        file.write(bytes([graph.is_directed]))
        write_array(file, np.array([graph.num_stored_edges, graph.num_vertices], "<i8"))
        _write_csr(file, graph.to_csr())
        if graph.is_directed:
            _write_csr(file, graph.csc)


def _write_csr(file: BinaryIO, csr: CSR) -> None:
    write_array(file, csr.indptr)
    if csr.weights is None:
        write_array(file, csr.indices)
        return
    for first in range(0, len(csr.indices), _ROWS_PER_WRITE):
        part = slice(first, first + _ROWS_PER_WRITE)
        write_array(file, np.stack([csr.indices[part].view(np.int32), csr.weights[part]], axis=1))

"""LDBC Graphalytics graphs: X.v with one id per line, X.e with ``source destination [weight]``, and X.properties.

The format is specified in the LDBC Graphalytics benchmark specification, section 2.2.3 (edge-vertex-list format).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from gpu_pregel.errors import FormatError
from gpu_pregel.host.devices.threads import thread_count
from gpu_pregel.host.graphs.csr import MAX_VERTICES
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.io._files import Source, atomic_file, open_file
from gpu_pregel.io._lines import Layout, first_data_line, line_blocks, line_of_row, read_lines
from gpu_pregel.io._losses import integer_ids
from gpu_pregel.io._options import ReadOptions, graph_from_edges
from gpu_pregel.io.edgelist import write_edges

Array = np.ndarray[Any, Any]

_DENSE = 16
"""Ids are translated by a lookup table if it has fewer than this many entries per vertex."""


def _paths(path: str) -> tuple[str, str, str]:
    """Return the paths of the vertex, edge and properties files, given any of them."""
    stem = path[:-2] if path.lower().endswith((".v", ".e")) else path
    return stem + ".v", stem + ".e", stem + ".properties"


def read(path: str, options: ReadOptions) -> Graph:
    """Read a vertex and an edge file; vertices are numbered by ascending id."""
    vertex_path, edge_path, properties_path = _paths(path)
    open_file(edge_path).close()
    ids = _read_ids(vertex_path, options)
    directed = _read_direction(properties_path) if options.directed is None else options.directed
    src, dst, weight = _read_edges(edge_path, options)
    src, dst = _numbers(edge_path, ids, src), _numbers(edge_path, ids, dst)
    graph = graph_from_edges(edge_path, options, src, dst, weight, directed=directed, num_vertices=len(ids))
    if len(ids) == 0 or (ids[0] == 0 and ids[-1] == len(ids) - 1):
        return graph
    return Graph(graph.to_csr(), directed=directed, ids=ids)


def _read_ids(path: str, options: ReadOptions) -> Array:
    """Return the ids of the vertices in ascending order, int64."""
    layout = Layout(columns=1, reason="a vertex has 1", ids=1, first=None)
    with Source(path) as source:
        blocks = line_blocks(source, longest=options.max_line_bytes)
        (ids,) = read_lines(source, blocks, layout, threads=thread_count(options.threads), progress=options.progress)
    if len(ids) > MAX_VERTICES:
        raise FormatError(path, f"{len(ids):,} vertices exceed the limit of {MAX_VERTICES:,}")
    ids = ids.astype(np.int64, copy=False)
    if (np.diff(ids) > 0).all():
        return ids
    order = np.argsort(ids, kind="stable")
    same = np.diff(ids[order]) == 0
    if same.any():
        row = int(order[1:][same].min())
        raise FormatError(path, f"the id {ids[row]} already occurs on an earlier line", line_of_row(path, row, b""))
    return ids[order]


def _read_direction(path: str) -> bool:
    """Return whether the graph is directed according to the properties file; False if there is no such file."""
    if not Path(path).exists():
        return False
    with open_file(path) as file:
        text = file.read().decode("utf-8", "replace")
    found = re.search(r"(?m)^\s*graph\.\S+\.directed\s*[=:]\s*(\S+)\s*$", text)
    if found is None:
        return False
    if found[1].lower() not in ("true", "false"):
        line = text.count("\n", 0, found.start(1)) + 1
        raise FormatError(path, f"directed is {found[1]!r}: it must be true or false", line)
    return found[1].lower() == "true"


def _read_edges(path: str, options: ReadOptions) -> tuple[Array, Array, Array | None]:
    with Source(path) as source:
        line, number, blocks = first_data_line(line_blocks(source, longest=options.max_line_bytes), b"")
        columns = len(line.split())
        weight = None
        if columns > 2 and options.wants_weights:
            weight = options.weight_dtype or np.dtype(np.float64)
        layout = Layout(
            columns=max(2, columns),
            reason=f"the first edge (line {number}) has {columns}",
            weight=weight,
            first=None,
        )
        arrays = read_lines(source, blocks, layout, threads=thread_count(options.threads), progress=options.progress)
    return arrays[0], arrays[1], arrays[2] if weight is not None else None


def _numbers(path: str, ids: Array, ends: Array) -> Array:
    """Return the vertex numbers of the ids in the edge file."""
    if len(ends) == 0:
        return ends
    n = len(ids)
    if n and ids[0] == 0 and ids[-1] == n - 1:
        numbers, known = ends, (ends >= 0) & (ends < n)
    elif n and ids[0] >= 0 and ids[-1] < _DENSE * n:
        table = np.full(int(ids[-1]) + 1, n, np.uint32)
        table[ids] = np.arange(n, dtype=np.uint32)
        known = (ends >= 0) & (ends < len(table))
        numbers = table[np.where(known, ends, 0)]
        known &= numbers < n
    else:
        ends = ends.astype(np.int64, copy=False)
        numbers = np.searchsorted(ids, ends).astype(np.uint32)
        known = ids[np.minimum(numbers, n - 1)] == ends if n else np.zeros(len(ends), bool)
    if not known.all():
        row = int((~known).argmax())
        line = line_of_row(path, row, b"")
        raise FormatError(path, f"the id {ends[row]} is not in the vertex file: add it", line)
    return numbers


def write(graph: Graph, path: str, _format: str) -> None:
    """Write the vertex, edge and properties files by the user's ids."""
    import pyarrow as pa
    import pyarrow.csv

    vertex_path, edge_path, properties_path = _paths(path)
    ids = np.arange(graph.num_vertices) if graph.ids is None else integer_ids(graph.ids)
    name = Path(vertex_path).name[:-2]
    with (
        atomic_file(properties_path) as properties,
        atomic_file(vertex_path) as vertices,
        atomic_file(edge_path) as edges,
    ):
        pa.csv.write_csv(pa.table({"id": ids}), vertices, pa.csv.WriteOptions(include_header=False))
        write_edges(edges, graph, separator=" ", ids=None if graph.ids is None else ids)
        lines = [
            f"graph.{name}.vertex-file = {name}.v",
            f"graph.{name}.edge-file = {name}.e",
            f"graph.{name}.meta.vertices = {graph.num_vertices}",
            f"graph.{name}.directed = {str(graph.is_directed).lower()}",
        ]
        if graph.weights is not None:
            kind = "real" if graph.weights.dtype.kind == "f" else "int"
            lines += [f"graph.{name}.edge-properties.names = weight", f"graph.{name}.edge-properties.types = {kind}"]
        properties.write(("\n".join(lines) + "\n").encode())

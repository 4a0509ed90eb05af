"""Binary edge lists of Gemini: little-endian records of two uint32 and, in weighted files, a float32."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.errors import FormatError
from gpu_pregel.host.devices.memory import require_memory
from gpu_pregel.host.graphs.csr import building_memory
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.io._files import atomic_file, load_bytes, write_array
from gpu_pregel.io._options import ReadOptions, cast_weights, checked_weights, graph_from_edges, weight_fault
from gpu_pregel.io.edgelist import edge_chunks

Array = np.ndarray[Any, Any]

_PAIR = np.dtype([("src", "<u4"), ("dst", "<u4")])
_TRIPLE = np.dtype([("src", "<u4"), ("dst", "<u4"), ("weight", "<f4")])
_RECORDS = {"gemini": _PAIR, "gemini-weighted": _TRIPLE}


def read(path: str, options: ReadOptions) -> Graph:
    """Read a binary edge list."""
    record = _RECORDS[options.format]
    wanted = record is _TRIPLE and options.wants_weights
    data = load_bytes(path)
    if len(data) % record.itemsize:
        raise FormatError(
            path,
            f"has {len(data):,} bytes, which is not a multiple of the {record.itemsize} bytes of an edge: "
            f"the file is truncated or has another format",
        )
    edges = data.view(record)
    require_memory(len(data) + building_memory(0, len(edges), 4 if wanted else 0), f"reading {path}")
    src, dst = np.ascontiguousarray(edges["src"]), np.ascontiguousarray(edges["dst"])
    weight = checked_weights(path, options, np.ascontiguousarray(edges["weight"])) if wanted else None
    return graph_from_edges(path, options, src, dst, weight, directed=bool(options.directed))


def write(graph: Graph, path: str, format: str) -> None:
    """Write a binary edge list by vertex number; each undirected edge appears once."""
    record = _RECORDS[format]
    if record is _TRIPLE and graph.weights is None:
        raise FormatError(path, "gemini-weighted files require weights: use the suffix .bin")
    if graph.weights is not None:
        _, fault = cast_weights(graph.weights, np.dtype(np.float32))
        if fault >= 0:
            problem = weight_fault(graph.weights[fault], np.dtype(np.float32))
            raise FormatError(path, f"{format} files hold float32 weights: {problem}")
    with atomic_file(path) as file:
        for src, dst, weight in edge_chunks(graph):
            edges = np.empty(len(src), record)
            edges["src"], edges["dst"] = src, dst
            if weight is not None:
                edges["weight"] = weight
            write_array(file, edges.view(np.uint8))

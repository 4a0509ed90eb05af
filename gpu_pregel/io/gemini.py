"""Binary edge lists of Gemini: little-endian records of two uint32 and, in weighted files, a float32."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.errors import ArgumentError, FormatError
from gpu_pregel.host.devices.memory import require_memory
from gpu_pregel.host.graphs.csr import building_memory
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.io._files import atomic_file, load_bytes, write_array
from gpu_pregel.io._options import ReadOptions, cast_weights, checked_weights, graph_from_edges, weight_fault
from gpu_pregel.io.edgelist import UNWEIGHTED, edge_chunks

Array = np.ndarray[Any, Any]

_PAIR = np.dtype([("src", "<u4"), ("dst", "<u4")])
_TRIPLE = np.dtype([("src", "<u4"), ("dst", "<u4"), ("weight", "<f4")])
_RECORDS = {"gemini": _PAIR, "gemini-weighted": _TRIPLE}


def read(path: str, options: ReadOptions) -> Graph:
    """Read a binary edge list."""
    record = _RECORDS[options.format]
    wanted = options.wants_weights(path, record is _TRIPLE)
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
    """Write a binary edge list by vertex number; each undirected edge appears once.

    float64 weights are rounded to float32; integers that float32 cannot represent are rejected.
    """
    record = _RECORDS[format]
    if (record is _TRIPLE) != (graph.weights is not None):
        remedy = f"use the suffix .wbin, or save {UNWEIGHTED}" if record is _PAIR else "use the suffix .bin"
        problem = "cannot store" if record is _PAIR else "require"
        raise ArgumentError(f"{path}: {format} files {problem} weights: {remedy}")
    if graph.weights is not None:
        _, fault = cast_weights(graph.weights, np.dtype(np.float32))
        if fault >= 0:
            problem = weight_fault(graph.weights[fault], np.dtype(np.float32))
            raise ArgumentError(f"{path}: {format} files store float32 weights: {problem}")
        if graph.weights.dtype.kind in "iu":
            _check_exact(path, graph.weights)
    with atomic_file(path) as file:
        for src, dst, weight in edge_chunks(graph):
            edges = np.empty(len(src), record)
            edges["src"], edges["dst"] = src, dst
            if weight is not None:
                edges["weight"] = weight
            write_array(file, edges.view(np.uint8))


def _check_exact(path: str, weights: Array) -> None:
    """Reject integers that float32 cannot represent."""
    rounded = weights.astype(np.float32)
    # Values that round up to 2^31, 2^32, 2^63 or 2^64 overflow the dtype, where a cast back is undefined.
    inside = rounded < float(np.iinfo(weights.dtype).max + 1)
    inexact = np.where(inside, rounded, np.float32(0)).astype(weights.dtype) != np.where(inside, weights, 1)
    if inexact.any():
        worst = weights[int(inexact.argmax())]
        raise ArgumentError(
            f"{path}: the weight {worst} does not fit float32, the type of gemini-weighted files: save as .wel, "
            f".parquet or .pregel, or convert the weights to float32 if rounding is acceptable"
        )

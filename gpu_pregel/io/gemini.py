"""Gemini's binary edge lists: records of two uint32, followed by a float32 where there are weights; little-endian."""

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
            f"has {len(data):,} bytes, which is no multiple of the {record.itemsize} bytes of an edge: "
            f"it is truncated or of another format",
        )
    edges = data.view(record)
    require_memory(len(data) + building_memory(0, len(edges), 4 if wanted else 0), f"reading {path}")
    src, dst = np.ascontiguousarray(edges["src"]), np.ascontiguousarray(edges["dst"])
    weight = checked_weights(path, options, np.ascontiguousarray(edges["weight"])) if wanted else None
    return graph_from_edges(path, options, src, dst, weight, directed=bool(options.directed))


def write(graph: Graph, path: str, format: str) -> None:
    """Write a binary edge list by vertex number; an undirected edge once.

    Weights of float64 are rounded to float32; integers that float32 does not have are refused.
    """
    record = _RECORDS[format]
    if (record is _TRIPLE) != (graph.weights is not None):
        remedy = f"name it .wbin, or save {UNWEIGHTED}" if record is _PAIR else "name it .bin"
        raise ArgumentError(f"{path}: {format} files hold {'no ' * (record is _PAIR)}weights: {remedy}")
    if graph.weights is not None:
        _, fault = cast_weights(graph.weights, np.dtype(np.float32))
        if fault >= 0:
            problem = weight_fault(graph.weights[fault], np.dtype(np.float32))
            raise ArgumentError(f"{path}: {format} files hold float32 weights: {problem}")
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
    """Refuse integers that change as float32."""
    rounded = weights.astype(np.float32)
    # What rounds up to 2^31, 2^32, 2^63 or 2^64 is beyond the dtype, where a cast back would say anything.
    inside = rounded < float(np.iinfo(weights.dtype).max + 1)
    inexact = np.where(inside, rounded, np.float32(0)).astype(weights.dtype) != np.where(inside, weights, 1)
    if inexact.any():
        worst = weights[int(inexact.argmax())]
        raise ArgumentError(
            f"{path}: the weight {worst} is no float32, which gemini-weighted files hold: save as .wel, .parquet or "
            f".pregel, or make the weights float32 where rounding does no harm"
        )

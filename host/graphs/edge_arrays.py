"""Checks of the arrays that graphs are built from."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.errors import ArgumentTypeError, GraphError
from gpu_pregel.host.arguments import check_integer
from gpu_pregel.host.graphs.csr import MAX_VERTICES, WEIGHT_DTYPES

Array = np.ndarray[Any, Any]


def check_num_vertices(value: object) -> int:
    """Return ``value`` as a number of vertices that the index dtype can hold."""
    return check_integer("num_vertices", value, 0, MAX_VERTICES)


def as_vector(name: str, values: object) -> Array:
    """Return ``values`` as a one-dimensional array, without copying one."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise ArgumentTypeError(f"{name} must have one dimension, not {array.ndim}")
    return array


def as_weights(weight: object, edges: int) -> Array:
    """Return ``weight`` as a contiguous array of a supported dtype, one finite-or-infinite number per edge."""
    weights = as_vector("weight", weight)
    if len(weights) != edges:
        raise GraphError(f"weight has {len(weights):,} entries, but there are {edges:,} edges: give one per edge")
    if weights.dtype.kind not in "iuf" and not (weights.dtype.kind == "O" and edges == 0):
        raise ArgumentTypeError(
            f"weight must have a dtype of {', '.join(map(str, WEIGHT_DTYPES))}, not {weights.dtype}"
        )
    if weights.dtype.newbyteorder("=") not in WEIGHT_DTYPES:
        wide = weights.dtype.itemsize > 8
        weights = weights.astype("f8" if wide else "f4" if weights.dtype.kind == "f" else "i4")
    weights = np.ascontiguousarray(weights, weights.dtype.newbyteorder("="))
    if weights.dtype.kind == "f":
        missing = np.isnan(weights)
        if missing.any():
            raise GraphError(f"the weight of edge {int(missing.argmax()):,} is NaN: give it a number or drop the edge")
    return weights

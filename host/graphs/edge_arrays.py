"""Checks and casts of the arrays that graphs are built from."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from gpu_pregel.errors import ArgumentTypeError, GraphError
from gpu_pregel.host.arguments import check_integer
from gpu_pregel.host.devices.user_arrays import find_device
from gpu_pregel.host.graphs.csr import CSR, MAX_VERTICES, WEIGHT_DTYPES

Array = np.ndarray[Any, Any]

_EDGES_AT_ONCE = 1 << 22
"""Edges whose sources are made at once, to keep what that takes small beside the graph."""
_locked: WeakValueDictionary[int, Array] = WeakValueDictionary()
"""The arrays of which :func:`lock` has returned views, by their addresses; nobody may write them."""


def check_num_vertices(value: object) -> int:
    """Return ``value``, or raise unless it is a number of vertices that the index dtype supports."""
    return check_integer("num_vertices", value, 0, MAX_VERTICES)


def as_vector(name: str, values: Any) -> Array:
    """Return ``values`` as a one-dimensional array in host memory; a host array is not copied."""
    array = to_host(values)
    if array.ndim == 0:
        remedy = "" if isinstance(values, (str, bytes)) or not isinstance(values, Iterable) else f": pass list({name})"
        raise ArgumentTypeError(f"{name} must be a list or an array, not {type(values).__name__}{remedy}")
    if array.ndim != 1:
        raise ArgumentTypeError(f"{name} must have one dimension, not {array.ndim}")
    mask = np.ma.getmaskarray(values) if type(values).__module__.startswith("numpy.ma") else np.False_
    if mask.any():
        raise GraphError(f"{name}[{int(mask.argmax()):,}] is masked: pass only the edges to use")
    return array


def to_host(values: Any) -> Array:
    """Return ``values`` as a host array; an array in device memory is copied."""
    device = find_device(values)
    return np.asarray(values) if device is None else device.download(device.adopt(values))


def as_numbers(values: Any) -> tuple[Array, int]:
    """Return ``values`` as a host array, and the position of an integer in a list that the array rounds, or -1.

    NumPy makes floats of integers beyond int64, and of those beside floats. Integers that fit uint64 are kept.
    """
    if not isinstance(values, (list, tuple)):
        return to_host(values), -1
    kinds = set(map(type, values))
    is_integral = all(issubclass(kind, Integral) for kind in kinds)
    if values and is_integral and min(values) >= 0 and np.iinfo(np.int64).max < max(values) < 1 << 64:
        return np.fromiter(map(int, values), np.uint64, len(values)), -1
    try:
        array = np.asarray(values)
    except OverflowError:  # an integer of hundreds of digits, beside a float
        array = np.fromiter(values, object, len(values))
    if array.ndim != 1 or array.dtype.kind not in ("f", "O") or not any(issubclass(kind, Integral) for kind in kinds):
        return array, -1
    for e, (value, held) in enumerate(zip(values, array.tolist(), strict=True)):
        if isinstance(value, Integral) and (held != value if array.dtype.kind == "f" else abs(int(value)) >> 63):
            return array, e
    return array, -1


def find_rounded(values: Array, dtype: np.dtype[Any]) -> int:
    """Return the position of the first integer that a float dtype cannot hold exactly, or -1."""
    if values.dtype.kind not in "iu" or dtype.kind != "f" or not len(values):
        return -1
    if max(-int(values.min()), int(values.max())) <= 1 << (np.finfo(dtype).nmant + 1):
        return -1
    rounded = values.astype(dtype)
    # Values that round up to 2^31, 2^32, 2^63 or 2^64 overflow the dtype, where a cast back is undefined.
    inside = rounded < float(np.iinfo(values.dtype).max + 1)
    inexact = np.where(inside, rounded, dtype.type(0)).astype(values.dtype) != np.where(inside, values, 1)
    return int(inexact.argmax()) if inexact.any() else -1


def as_integers(name: str, values: object, dtype: np.dtype[Any]) -> Array:
    """Return ``values`` as a contiguous array of an integer dtype; raise if any value does not fit."""
    array = as_vector(name, values)
    if array.size == 0 and array.dtype.kind == "f":
        array = array.astype(dtype)
    if array.dtype.kind not in "iu":
        raise ArgumentTypeError(f"{name} must have an integer dtype, not {array.dtype}")
    if array.dtype == dtype:
        return np.ascontiguousarray(array)
    limits = np.iinfo(dtype)
    for position in (array.argmin(), array.argmax()) if array.size else ():
        if not limits.min <= int(array[position]) <= limits.max:
            raise GraphError(f"{name}[{position:,}] is {array[position]:,}, which does not fit {dtype}")
    return np.ascontiguousarray(array, dtype)


def as_weights(weight: Any, edges: int) -> Array:
    """Return ``weight`` as a contiguous array of a supported dtype, with one number other than NaN per edge."""
    numbers, rounded = as_numbers(weight) if isinstance(weight, (list, tuple)) else (weight, -1)
    weights = as_vector("weight", numbers)
    if len(weights) != edges:
        raise GraphError(f"weight has {len(weights):,} entries, but there are {edges:,} edges: pass one per edge")
    if rounded >= 0:
        raise GraphError(f"the weight of edge {rounded:,} is {inexact_number(weight[rounded])}")
    if weights.dtype.kind not in "iuf" and not (weights.dtype.kind == "O" and edges == 0):
        raise ArgumentTypeError(
            f"weight must have a dtype of {', '.join(map(str, WEIGHT_DTYPES))}, not {weights.dtype}"
        )
    if weights.dtype.newbyteorder("=") not in WEIGHT_DTYPES:
        wide = weights.dtype.itemsize > 8
        given = weights
        weights = weights.astype("f8" if wide else "f4" if weights.dtype.kind == "f" else "i4")
        inexact: Array = np.flatnonzero((weights != given) & ~np.isnan(given)) if wide else np.zeros(0, np.int64)
        if len(inexact):
            edge = int(inexact[0])
            raise GraphError(f"the weight of edge {edge:,}, {given[edge]!s}, is no float64: round the weights yourself")
    weights = np.ascontiguousarray(weights, weights.dtype.newbyteorder("="))
    if weights.dtype.kind == "f":
        missing = np.isnan(weights)
        if missing.any():
            raise GraphError(f"the weight of edge {int(missing.argmax()):,} is NaN: use a number or drop the edge")
    return weights


def inexact_number(value: Any) -> str:
    """Return an integer among the numbers of a list, and why that is an error."""
    shown = f"{value:,}" if abs(int(value)) < 1 << 128 else "an integer of more than 128 bits"
    return f"{shown}, which no dtype holds exactly beside the other numbers: pass integers of 64 bits, or floats only"


def private(array: Array, given: object, shared: bool) -> Array:
    """Return ``array``, or a copy if it may be memory of the argument ``given`` that somebody can write.

    ``shared`` allows it to be.
    """
    if shared or isinstance(given, (list, tuple)) or find_device(given) is not None or is_unwritable(array):
        return array
    return array.copy() if np.may_share_memory(array, np.asarray(given)) else array


def is_unwritable(array: Array) -> bool:
    """Return whether neither ``array`` nor anything it is a view of can be written, or made writable again."""
    base: Any = array
    while isinstance(base, np.ndarray):
        if base.flags.writeable or base.flags.owndata:
            return False
        base = base.base
    try:
        view = memoryview(base)
    except TypeError:
        return False
    # A read-only view may be one of memory that its owner can write.
    owner = view.obj
    if isinstance(owner, np.ndarray):
        return view.readonly and (_locked.get(id(owner)) is owner or is_unwritable(owner))
    return view.readonly and memoryview(owner).readonly


def lock(array: Array) -> Array:
    """Return a read-only array of the same memory, which NumPy refuses to make writable."""
    if is_unwritable(array):
        return array
    _locked[id(array)] = array
    return np.asarray(memoryview(array).toreadonly())  # type: ignore[arg-type]


def count_self_loops(csr: CSR) -> int:
    """Return the number of stored edges from a vertex to itself."""
    first, loops, n = 0, 0, len(csr.indptr) - 1
    while first < n:
        last = max(first + 1, int(np.searchsorted(csr.indptr, csr.indptr[first] + _EDGES_AT_ONCE, "right")) - 1)
        sources = np.repeat(np.arange(first, last, dtype=csr.indices.dtype), np.diff(csr.indptr[first : last + 1]))
        loops += int(np.count_nonzero(sources == csr.indices[csr.indptr[first] : csr.indptr[last]]))
        first = last
    return loops


def has_duplicates(csr: CSR) -> bool:
    """Return whether any row holds the same destination more than once."""
    return bool(_repeats(csr).any())


def find_parallel(csr: CSR, *, loops: bool) -> tuple[int, int] | None:
    """Return the ends of the first edge that its row holds more than once, or None; ``loops`` includes self-loops."""
    for e in np.flatnonzero(_repeats(csr)).tolist():
        u = int(np.searchsorted(csr.indptr, e, side="right")) - 1
        if loops or u != csr.indices[e]:
            return u, int(csr.indices[e])
    return None


def _repeats(csr: CSR) -> Array:
    """Return whether the edge after each stored edge but the last is parallel to it, bool[m - 1]."""
    same: Array = csr.indices[1:] == csr.indices[:-1]
    starts = csr.indptr[1:-1]
    same[starts[(starts > 0) & (starts < len(csr.indices))] - 1] = False
    return same

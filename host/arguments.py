"""Checks of arguments that several public functions share; NumPy is imported where there are arrays."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, GraphError

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Raise ``ArgumentError`` unless ``value`` is one of ``choices``."""
    if value not in choices:
        listed = " or ".join(repr(choice) for choice in choices)
        raise ArgumentError(f"{name} must be {listed}, not {value!r}")


def check_integer(name: str, value: object, low: int, high: int) -> int:
    """Return ``value`` as an int, or raise if it is none or lies outside ``low`` to ``high``."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ArgumentTypeError(f"{name} must be a whole number, not {value!r}")
    number = int(value)
    if not low <= number <= high:
        raise ArgumentError(f"{name} must be from {low:,} to {high:,}, not {number:,}")
    return number


def check_flag(name: str, value: object) -> bool:
    """Return ``value`` as a bool, or raise if it is neither Python's nor NumPy's."""
    if isinstance(value, bool) or (type(value).__module__, type(value).__name__[:4]) == ("numpy", "bool"):
        return bool(value)
    raise ArgumentTypeError(f"{name} must be True or False, not {value!r}")


def check_num_vertices(value: object) -> int:
    """Return ``value`` as a number of vertices that the index dtype can hold."""
    from gpu_pregel.host.graphs.csr import MAX_VERTICES

    return check_integer("num_vertices", value, 0, MAX_VERTICES)


def as_vector(name: str, values: object) -> Array:
    """Return ``values`` as a one-dimensional array, without copying one."""
    import numpy as np

    array = np.asarray(values)
    if array.ndim != 1:
        raise ArgumentTypeError(f"{name} must have one dimension, not {array.ndim}")
    return array


def as_weights(weight: object, edges: int) -> Array:
    """Return ``weight`` as a contiguous array of a supported dtype, one finite-or-infinite number per edge."""
    import numpy as np

    from gpu_pregel.host.graphs.csr import WEIGHT_DTYPES

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

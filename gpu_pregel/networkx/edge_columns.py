"""Attributes of edges as arrays of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_EXACT = 1 << 53
"""Integers up to this size are exact as floats."""
_LARGEST, _SMALLEST = 1e140, 1e-140
"""Sums, products and quotients of a few weights in between stay in the range of normal floats."""


def check_magnitudes(name: Any, column: Array | None) -> None:
    """Raise NotImplementedError if a weight is so large or small that the order of operations decides on results."""
    if column is not None:
        sizes = np.abs(column[column != 0])
        if len(sizes) and not (sizes.max() <= _LARGEST and sizes.min() >= _SMALLEST):
            raise NotImplementedError(f"an edge's {name!r} is too large or too small")


def edge_column(name: Any, values: Sequence[Any]) -> Array:
    """Return an attribute of all stored edges as int64 or float64.

    Raises
    ------
    NotImplementedError
        A value is missing, no number or NaN, or they differ in type, on which the type of NetworkX's results depends.
    """
    kinds = set(map(type, values))
    if len(kinds) > 1:
        names = " and ".join(sorted(kind.__name__ for kind in kinds))
        raise NotImplementedError(f"the edges' {name!r} are of different types: {names}")
    kind = next(iter(kinds), int)
    if issubclass(kind, (int, np.integer)) and kind is not bool:
        if values and not (min(values) >= -_EXACT and max(values) <= _EXACT):
            raise NotImplementedError(f"an edge's {name!r} is larger than 2^53")
        return np.fromiter(values, np.int64, len(values))
    if issubclass(kind, float):
        column = np.fromiter(values, np.float64, len(values))
        if np.isnan(column).any():
            raise NotImplementedError(f"an edge's {name!r} is NaN")
        return column
    raise NotImplementedError(f"the edges' {name!r} are of type {kind.__name__}")

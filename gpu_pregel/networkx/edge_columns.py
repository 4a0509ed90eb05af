"""Attributes of edges as arrays of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gpu_pregel.networkx.conditions import EXACT

Array = np.ndarray[Any, Any]

_LARGEST, _SMALLEST = 1e140, 1e-140
"""Sums, products and quotients of a few weights in between stay in the range of normal floats."""


def check_magnitudes(name: Any, column: Array | None) -> None:
    """Raise NotImplementedError if a weight is so large or small that the order of operations decides on results."""
    if column is not None:
        sizes = np.abs(column[column != 0])
        if len(sizes) and not (sizes.max() <= _LARGEST and sizes.min() >= _SMALLEST):
            raise NotImplementedError(f"an edge's {name!r} is too large or too small")


class EdgeColumn(NamedTuple):
    """An attribute of all stored edges."""

    values: Array
    """int64[m] or float64[m]."""
    floats: Array | None = None
    """bool[m]: which of the values are floats, if others are integers; the column is of floats then."""
    scalar: type | None = None
    """NumPy's type of all values, which sums of them have, too; None if they are Python's numbers."""


def edge_column(name: Any, values: Sequence[Any]) -> EdgeColumn:
    """Return an attribute of all stored edges as numbers.

    Raises
    ------
    NotImplementedError
        A value is missing, no number, NaN or -inf, or they differ in type, on which the type of NetworkX's results
        depends: only Python's integers and floats may be mixed. NumPy's numbers of less than 64 bits are refused, as
        their sums are rounded or overflow.
    """
    kinds = set(map(type, values))
    if kinds == {int, float}:
        _check_exact(name, [value for value in values if type(value) is int])
        return EdgeColumn(_floats(name, values), np.fromiter((type(v) is float for v in values), np.bool_, len(values)))
    if len(kinds) > 1:
        names = " and ".join(sorted(kind.__name__ for kind in kinds))
        raise NotImplementedError(f"the edges' {name!r} are of different types: {names}")
    kind = next(iter(kinds), int)
    scalar = kind if kind in (np.int64, np.float64) else None
    if issubclass(kind, (int, np.int64)) and kind is not bool:
        _check_exact(name, values)
        return EdgeColumn(np.fromiter(values, np.int64, len(values)), None, scalar)
    if issubclass(kind, float):
        return EdgeColumn(_floats(name, values), None, scalar)
    raise NotImplementedError(f"the edges' {name!r} are of type {kind.__name__}")


def _check_exact(name: Any, values: Sequence[Any]) -> None:
    if values and not (min(values) >= -EXACT and max(values) <= EXACT):
        raise NotImplementedError(f"an edge's {name!r} is larger than 2^53")


def _floats(name: Any, values: Sequence[Any]) -> Array:
    column = np.fromiter(values, np.float64, len(values))
    if np.isnan(column).any():
        raise NotImplementedError(f"an edge's {name!r} is NaN")
    return check_infinite(name, column)


def check_infinite(name: Any, column: Array) -> Array:
    """Return a column, or raise NotImplementedError if a value is -inf: added to infinity it is NaN."""
    if column.dtype.kind == "f" and len(column) and column.min() == -np.inf:
        raise NotImplementedError(f"an edge's {name!r} is -inf")
    return column

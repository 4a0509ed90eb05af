"""The values of ``combine=``, and the weights and dtypes with which kernels combine parallel edges into one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpu_pregel.errors import ArgumentError
from gpu_pregel.host.arguments import check_choice
from gpu_pregel.kernels.graphs import combine_cpu

Array = np.ndarray[Any, Any]

CHOICES = ("sum", "min", "max", "mean", "first", "count")
_CODES = {
    None: combine_cpu.KEEP,
    "first": combine_cpu.FIRST,
    "min": combine_cpu.MIN,
    "max": combine_cpu.MAX,
    "sum": combine_cpu.SUM,
    "count": combine_cpu.SUM,
    "mean": combine_cpu.MEAN,
}
_SIGNED, _FLOAT = np.dtype(np.int64), np.dtype(np.float64)


class Combination(NamedTuple):
    """What kernels need to combine parallel edges.

    Attributes
    ----------
    code : int
        What they do; one of the codes of ``combine_cpu``.
    weights : [k] or None
        The weights to combine, in a dtype that holds the results of all steps.
    limits : [2] or None
        The smallest and the largest number of that dtype.
    dtype : dtype or None
        The dtype of the results.
    """

    code: int
    weights: Array | None
    limits: Array | None
    dtype: np.dtype[Any] | None


def check_combine(combine: object) -> str | None:
    """Return ``combine``, or raise ``ArgumentError`` unless it is None or one of the choices."""
    return None if combine is None else check_choice("combine", combine, CHOICES)


def prepare(combine: str | None, weights: Array | None, edges: int) -> Combination:
    """Return what kernels need to combine ``edges`` edges with these weights.

    Sums of int32, uint32 and int64 are int64, those of other dtypes have that dtype; floats are added as float64.
    Means are float32 of float32 and float64 otherwise. Numbers of edges are int64.

    Raises
    ------
    ArgumentError
        There are no weights to add up.
    """
    if weights is None and combine == "sum":
        raise ArgumentError(
            "combine='sum' adds weights, and these edges have none: pass combine='count' for the number of parallel "
            "edges, or combine='first' to merge them"
        )
    if combine == "count":
        weights = np.ones(edges, _SIGNED)
    if weights is None:
        return Combination(combine_cpu.KEEP if combine is None else combine_cpu.FIRST, None, None, None)
    dtype = weights.dtype
    if combine == "sum" and dtype.kind in "iu" and dtype.itemsize < _SIGNED.itemsize:
        dtype = _SIGNED
    if combine == "mean" and dtype.kind in "iu":
        dtype = _FLOAT
    wide = _FLOAT if combine in ("sum", "mean") and dtype.kind == "f" else dtype
    limits: Any = np.iinfo(wide) if wide.kind in "iu" else None
    return Combination(
        _CODES[combine],
        weights.astype(wide, copy=False),
        np.array([-np.inf, np.inf] if limits is None else [limits.min, limits.max], wide),
        dtype,
    )


def check_order_known(combine: str | None, weights: Array | None) -> None:
    """Raise ``ArgumentError`` if ``combine`` needs the order of edges with weights, which rows of a CSR do not keep."""
    if combine == "first" and weights is not None:
        raise ArgumentError(
            "combine='first' needs the order of an edge list, and the rows of a graph are sorted by weight: pass "
            "combine='min' for the smallest weight, or combine='first' to the constructor or reader of an edge list"
        )

"""The fields of values and messages, a program's compiled functions, and helpers that read, write and compare fields.

Values and messages are stored as one array per field and passed to kernels as tuples of arrays. Each ``make_…`` takes
the decorator that compiles device functions for the CPU or for CUDA and returns a function that kernels call. Helpers
that depend on dtypes only are created once, and so compiled once, for the kernels of all programs.
"""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

Jit = Callable[[Any], Any]

VertexContext = namedtuple(
    "VertexContext", ["vertex", "superstep", "num_vertices", "out_degree", "in_degree", "aggregated"]
)


@dataclass(frozen=True)
class Fields:
    """The fields of a value or a message: one dtype, or one for each element of a tuple."""

    dtypes: tuple[np.dtype[Any], ...]
    is_tuple: bool

    @property
    def itemsize(self) -> int:
        """The number of bytes of all fields."""
        return sum(dtype.itemsize for dtype in self.dtypes)


@dataclass(frozen=True)
class Functions:
    """A program's functions, compiled as device functions, and the properties that determine its kernels."""

    value: Fields
    message: Fields
    identity: Any
    init: Callable[..., Any]
    initially_active: Callable[..., Any] | None
    send: Callable[..., Any]
    per_edge: bool
    combine: Callable[..., Any]
    absorbing: Any
    """The message that no other message changes, such as 0 for the minimum of unsigned integers, or None."""
    built_in: str | None
    """The name of a built-in combiner, for which an atomic instruction may exist; otherwise None."""
    apply: Callable[..., Any]
    receives: Callable[..., Any] | None
    """``receives(value, ctx)``, or None if every vertex takes messages."""
    is_active: Callable[..., Any] | None
    aggregators: tuple[tuple[str, Callable[..., Any], Callable[..., Any], np.dtype[Any], Any], ...]
    """The name, function of (old, new, ctx), combiner, dtype and identity of each aggregator."""

    @property
    def is_selective(self) -> bool:
        """Whether a pull need not read every row to its end: some vertices take no messages, or any message will do."""
        return self.receives is not None or self.takes_any

    @property
    def pulls_along_edges(self) -> bool:
        """Whether a pull computes messages edge by edge: if they differ, or only some edges are read."""
        return self.per_edge or self.is_selective

    @property
    def takes_any(self) -> bool:
        """Whether all messages to a vertex are equal."""
        return self.built_in == "any"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the aggregators."""
        return tuple(name for name, *_ in self.aggregators)


def generated(jit: Jit, name: str, source: str, **names: Any) -> Any:
    """Compile a helper from its source: Numba requires the number of each field to be a constant."""
    namespace = dict(names)
    exec(source, namespace)
    return jit(namespace[name])


def _tuple_of(parts: list[str], fields: Fields) -> str:
    return f"({', '.join(parts)},)" if fields.is_tuple else parts[0]


@functools.cache
def make_get(jit: Jit, fields: Fields) -> Any:
    """``get(arrays, i)``: the scalar or tuple at position i."""
    parts = [f"arrays[{k}][i]" for k in range(len(fields.dtypes))]
    return generated(jit, "get", f"def get(arrays, i):\n    return {_tuple_of(parts, fields)}\n")


@functools.cache
def make_put(jit: Jit, fields: Fields) -> Any:
    """``put(arrays, i, x)``: store a scalar or tuple at position i."""
    lines = [f"    arrays[{k}][i] = {f'x[{k}]' if fields.is_tuple else 'x'}\n" for k in range(len(fields.dtypes))]
    return generated(jit, "put", "def put(arrays, i, x):\n" + "".join(lines))


@functools.cache
def make_cast(jit: Jit, fields: Fields) -> Any:
    """``cast(x)``: convert each field to its declared dtype."""
    types = {f"type{k}": numba.from_dtype(dtype) for k, dtype in enumerate(fields.dtypes)}
    parts = [f"type{k}({f'x[{k}]' if fields.is_tuple else 'x'})" for k in range(len(fields.dtypes))]
    return generated(jit, "cast", f"def cast(x):\n    return {_tuple_of(parts, fields)}\n", **types)


@functools.cache
def make_differs(jit: Jit, fields: Fields) -> Any:
    """``differs(x, y)``: whether two messages differ in any field."""
    parts = [f"x[{k}] != y[{k}]" if fields.is_tuple else "x != y" for k in range(len(fields.dtypes))]
    return generated(jit, "differs", f"def differs(x, y):\n    return {' or '.join(parts)}\n")


@functools.cache
def make_changed(jit: Jit, fields: Fields, bits_of_float: Any) -> Any:
    """``changed(x, y)``: whether two values differ in any bit; a NaN equals itself, and 0 differs from -0."""
    parts = []
    for k, dtype in enumerate(fields.dtypes):
        x, y = (f"x[{k}]", f"y[{k}]") if fields.is_tuple else ("x", "y")
        if dtype.kind == "f":
            parts.append(f"bits_of_float({x}) != bits_of_float({y})")
        else:
            parts.append(f"{x} != {y}")
    source = f"def changed(x, y):\n    return {' or '.join(parts)}\n"
    return generated(jit, "changed", source, bits_of_float=bits_of_float)


@functools.cache
def aggregated_type(names: tuple[str, ...]) -> Any:
    """Return the type of ``ctx.aggregated``."""
    return namedtuple("Aggregated", names)


@functools.cache
def make_context(jit: Jit, names: tuple[str, ...]) -> Any:
    """``context(v, superstep, n, out_degree, in_degree, aggregates)``: the ``ctx`` of a program's functions."""
    if not names:
        aggregated = "None"
        namespace: dict[str, Any] = {}
    else:
        aggregated = f"Aggregated({', '.join(f'aggregates[{k}][0]' for k in range(len(names)))})"
        namespace = {"Aggregated": aggregated_type(names)}
    source = (
        "def context(v, superstep, n, out_degree, in_degree, aggregates):\n"
        "    v, n, out_degree, in_degree = int64(v), int64(n), int64(out_degree), int64(in_degree)\n"
        f"    return VertexContext(v, superstep, n, out_degree, in_degree, {aggregated})\n"
    )
    return generated(jit, "context", source, VertexContext=VertexContext, int64=numba.int64, **namespace)


def make_send_along(jit: Jit, functions: Functions) -> Any:
    """``send_along(value, weight, ctx)``: the message along an edge, whether or not it depends on the edge."""
    send = functions.send

    def send_along(value: Any, weight: Any, ctx: Any) -> Any:
        return send(value, ctx)

    return send if functions.per_edge else jit(send_along)


@functools.cache
def make_weight(jit: Jit, has_weights: bool) -> Any:
    """``weight_of(weights, e)``: the edge's weight, or 1, without a memory access, if the graph has none."""

    def loaded(weights: Any, e: Any) -> Any:
        return weights[e]

    def one(weights: Any, e: Any) -> Any:
        return np.float32(1)

    return jit(loaded if has_weights else one)

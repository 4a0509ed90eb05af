"""The fields of values and messages, and helpers that read, write and compare them.

Values and messages are stored as one array per field and passed to kernels as tuples of arrays. Each ``make_…`` takes
the decorator that compiles device functions for the CPU or for CUDA and returns a function that kernels call. Helpers
that depend on dtypes only are created once, and so compiled once, for the kernels of all programs.
"""

from __future__ import annotations

import copyreg
import functools
from collections import namedtuple
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numba
import numpy as np

from gpu_pregel.kernels.library.records import as_record

Jit = Callable[[Any], Any]


@dataclass(frozen=True)
class Fields:
    """The fields of a value or a message: one dtype, or one for each element of a tuple."""

    dtypes: tuple[np.dtype[Any], ...]
    is_tuple: bool
    names: tuple[str, ...] | None = None
    """The names of a tuple's elements, if they have names."""
    data: type | None = None
    """The class of a value that is no number."""

    def pack(self, parts: Sequence[Any]) -> Any:
        """Return a number, a tuple or a named tuple of one item for each field."""
        if self.names is not None:
            return named_type("Value", self.names)(*parts)
        return tuple(parts) if self.is_tuple else parts[0]

    @property
    def is_data(self) -> bool:
        """Whether it is no number, but an object."""
        return self.data is not None

    @property
    def itemsize(self) -> int:
        """The number of bytes of all fields."""
        return sum(dtype.itemsize for dtype in self.dtypes)


def generated(jit: Jit, name: str, source: str, **names: Any) -> Any:
    """Compile a helper from its source: Numba requires the number of each field to be a constant."""
    namespace = {"__package__": __package__, **names}
    exec(source, namespace)
    return jit(namespace[name])


@functools.cache
def named_type(name: str, names: tuple[str, ...]) -> Any:
    """Return the named tuple type of values, ``ctx.aggregated`` or ``ctx.parameters`` with these names."""
    made = as_record(cast(Any, namedtuple)(name, names))
    copyreg.pickle(made, _reduced)  # the class itself is no attribute of a module
    return made


def _reduced(value: Any) -> tuple[Any, ...]:
    return _restored, (type(value).__name__, value._fields, tuple(value))


def _restored(name: str, names: tuple[str, ...], parts: tuple[Any, ...]) -> Any:
    return named_type(name, names)._make(parts)


def packing(fields: Fields) -> tuple[Callable[[str], str], dict[str, Any]]:
    """Return a function that writes the source of a message made of the first items of a tuple, and its names."""

    def pack(name: str) -> str:
        return _packed([f"{name}[{k}]" for k in range(len(fields.dtypes))], fields)

    return pack, {} if fields.names is None else {"Value": named_type("Value", fields.names)}


def _packed(parts: list[str], fields: Fields) -> str:
    """Return the source of a number, a tuple or a named tuple."""
    result = f"({', '.join(parts)},)" if fields.is_tuple else parts[0]
    return result if fields.names is None else f"Value{result}"


def _returned(name: str, argument: str, parts: list[str], fields: Fields, jit: Jit, **names: Any) -> Any:
    """Compile a helper that returns the fields: as a number, a tuple or a named tuple."""
    names |= packing(fields)[1]
    return generated(jit, name, f"def {name}({argument}):\n    return {_packed(parts, fields)}\n", **names)


@functools.cache
def make_get(jit: Jit, fields: Fields) -> Any:
    """``get(arrays, i)``: the scalar or tuple at position i."""
    parts = [f"arrays[{k}][i]" for k in range(len(fields.dtypes))]
    return _returned("get", "arrays, i", parts, fields, jit)


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
    return _returned("cast", "x", parts, fields, jit, **types)


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
def make_weight(jit: Jit, has_weights: bool) -> Any:
    """``weight_of(weights, e)``: the edge's weight, or 1, without a memory access, if the graph has none."""

    def loaded(weights, e):
        return weights[e]

    def one(weights, e):
        return np.float32(1)

    return jit(loaded if has_weights else one)

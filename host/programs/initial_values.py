"""The values given as ``initial=`` of a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpu_pregel.errors import ArgumentError, ArgumentTypeError
from gpu_pregel.host.graphs.edge_arrays import as_numbers, find_rounded, inexact_number
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.graphs.vertex_values import by_vertex_number
from gpu_pregel.host.programs.program import VertexProgram, as_dtypes, is_data, names_of_fields

Array = np.ndarray[Any, Any]


def initial_values(graph: Graph, program: VertexProgram, given: Any) -> tuple[Array, ...]:
    """Return copies of the values given as ``initial=``, one array[n] per field, with the declared dtypes.

    Raises
    ------
    ArgumentError
        The number of fields or of values is wrong, or a value is out of range.
    ArgumentTypeError
        The values have the wrong type; floats are not converted to integers.
    """
    if is_data(program.value):
        return (_data(by_vertex_number(graph, "initial", given), graph.num_vertices),)
    names, dtypes = names_of_fields(program.value), as_dtypes(program.value)
    is_tuple = isinstance(program.value, (tuple, Mapping))
    if isinstance(given, Mapping):
        if names is None:
            raise ArgumentTypeError(
                "initial must be an array by vertex number, as the fields of the program's value have no names; "
                "graph.vertices(ids) finds the numbers of ids"
            )
        if set(given) != set(names):
            raise ArgumentError(f"initial has the fields {_listed(given)}, but the program's value {_listed(names)}")
        given = tuple(given[name] for name in names)
    parts = given if is_tuple else (given,)
    if not isinstance(parts, (tuple, list)):
        raise ArgumentTypeError(f"initial must be a tuple of {len(dtypes)} arrays, not {type(given).__name__}")
    if len(parts) != len(dtypes):
        raise ArgumentError(f"initial has {len(parts)} arrays, but the program's value {len(dtypes)} fields")
    labels = [f"initial[{name!r}]" for name in names or range(len(dtypes))] if is_tuple else ["initial"]
    return tuple(
        _field(label, by_vertex_number(graph, label, part), dtype, graph.num_vertices)
        for label, part, dtype in zip(labels, parts, dtypes, strict=True)
    )


def _data(given: Any, n: int) -> Array:
    """Return objects as an array."""
    if isinstance(given, (str, bytes, Mapping)) or not hasattr(given, "__len__"):
        raise ArgumentTypeError(f"initial must be a sequence of {n:,} values by vertex number, not {given!r:.80}")
    if len(given) != n:
        raise ArgumentError(f"initial has {len(given):,} values, but the graph has {n:,} vertices: pass one value each")
    result = np.empty(n, object)
    for v, value in enumerate(given):
        result[v] = value
    return result


def _listed(names: Any) -> str:
    return ", ".join(map(repr, names))


def _field(label: str, given: Any, dtype: np.dtype[Any], n: int) -> Array:
    """Return a copy of the values of a field, with the declared dtype."""
    array, rounded = as_numbers(given)
    if rounded >= 0:
        raise ArgumentError(f"{label} is, at vertex {rounded:,}, {inexact_number(given[rounded])}")
    if array.shape != (n,):
        raise ArgumentError(
            f"{label} has shape {array.shape}, but the graph has {n:,} vertices: pass one value each, "
            "by vertex number, or a Series with the ids as its index"
        )
    if array.dtype.kind not in {"b": "b", "f": "biuf"}.get(dtype.kind, "biu"):
        remedy = "convert it with astype"
        if array.dtype.kind not in "biufc":
            remedy = "pass one number each, by vertex number, or a Series with the ids as its index"
        raise ArgumentTypeError(f"{label} has dtype {array.dtype}, but {dtype} is declared: {remedy}")
    if dtype.kind in "iu" and n:
        limits = np.iinfo(dtype)
        wrong = np.flatnonzero((array < limits.min) | (array > limits.max)) if array.dtype != dtype else array[:0]
        if len(wrong):
            raise ArgumentError(
                f"{label} is {array[wrong[0]]:,} at vertex {wrong[0]:,}, but {dtype} ranges from {limits.min:,} to "
                f"{limits.max:,}"
            )
    rounded = find_rounded(array, dtype)
    if rounded >= 0:
        raise ArgumentError(
            f"{label} is {array[rounded]:,} at vertex {rounded:,}, which {dtype} cannot hold exactly: declare an "
            f"integer dtype, or pass astype({str(dtype)!r})"
        )
    with np.errstate(over="ignore"):
        result = array.astype(dtype)
    if dtype.kind == "f" and (beyond := np.flatnonzero(np.isinf(result) & np.isfinite(array))).size:
        raise ArgumentError(f"{label} is {array[beyond[0]]} at vertex {beyond[0]:,}, which does not fit {dtype}")
    return result

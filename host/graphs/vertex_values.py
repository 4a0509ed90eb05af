"""Arguments with one value per vertex: by vertex number, or by ids, as a Series of pandas and a result have them."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np

from gpu_pregel.errors import ArgumentError, UnknownVertexError
from gpu_pregel.host.graphs.edge_arrays import to_host
from gpu_pregel.host.graphs.graph import Graph

Array = np.ndarray[Any, Any]


def by_vertex_number(graph: Graph, name: str, given: Any, *, default: Any = None) -> Any:
    """Return the argument ``name`` by vertex number, if it is a Series or the result of another graph, else unchanged.

    The index of a Series holds ids. Vertices that it leaves out get ``default``, unless that is None.

    Raises
    ------
    ArgumentError
        An id is unknown, repeated or left out, or a value is missing or masked.

    Examples
    --------
    >>> import gpu_pregel as gp, pandas
    >>> graph = gp.Graph.from_edgelist(["ann"], ["bob"])
    >>> by_vertex_number(graph, "initial", pandas.Series([2, 1], index=["bob", "ann"])).tolist()
    [1, 2]
    """
    if _is_series(given):
        ids, values = given.index.to_numpy(), _series_values(name, given)
    elif hasattr(given, "_vertex_ids") and given.graph is not graph:
        ids, values = given._vertex_ids(), given.to_numpy()
    else:
        if isinstance(given, np.ma.MaskedArray) and np.any(given.mask):
            position = int(np.flatnonzero(np.ma.getmaskarray(given))[0])
            vertex = repr(_id(graph, position)) if given.shape == (graph.num_vertices,) else f"number {position}"
            raise ArgumentError(f"{name} is masked for the vertex {vertex}: pass a value, as with filled()")
        return given
    try:
        numbers = graph.vertices(ids)
    except UnknownVertexError as error:
        problem = "must have ids as its index" if _is_series(given) else "is the result of another graph"
        raise ArgumentError(f"{name} {problem}, but {error}; pass to_numpy() for values by vertex number") from None
    counts = np.bincount(numbers, minlength=graph.num_vertices)
    if (counts > 1).any():
        raise ArgumentError(f"{name} has the vertex {_id(graph, int((counts > 1).argmax()))!r} more than once")
    if default is None and not counts.all():
        left_out = graph.to_ids(np.flatnonzero(counts == 0)[:3]).tolist()
        rest = int((counts == 0).sum()) - len(left_out)
        shown = ", ".join(map(repr, left_out)) + (f" and {rest:,} others" if rest else "")
        raise ArgumentError(f"{name} has no value for the vertices {shown}: give one to each")
    result = np.full(graph.num_vertices, 0 if default is None else default, values.dtype)
    result[numbers] = values
    return result


def ids_remedy(graph: Graph, given: Any) -> str:
    """Return how to pass values by id, if what was given instead of one value per vertex are ids; else nothing."""
    if isinstance(given, (str, bytes)) or not hasattr(given, "__len__") or not 0 < len(given) <= graph.num_vertices:
        return ""
    try:
        ids = to_host(given).tolist()
        graph.vertices(ids)
    except (UnknownVertexError, TypeError, ValueError):
        return ""
    return f"; these are ids: pass {_as_mapping(ids)}"


def check_not_ids(graph: Graph, name: str, given: Any, values: Array) -> None:
    """Raise ``ArgumentError`` if a list or an array holds exactly the ids, unless these are the vertex numbers."""
    ids = graph.ids
    if ids is None or len(ids) < 2 or ids.dtype.kind not in "iu" or values.dtype.kind not in "iu":
        return
    if _is_series(given) or hasattr(given, "_vertex_ids"):
        return
    if values.shape == ids.shape and np.array_equal(np.sort(values), np.sort(ids)):
        raise ArgumentError(
            f"{name} has the ids of the vertices, not a number for each: pass {_as_mapping(values.tolist())}, or "
            "floats if they are numbers by vertex number"
        )


def _as_mapping(ids: list[Any]) -> str:
    return "{" + ", ".join(f"{one!r}: 1" for one in islice(ids, 3)) + (", ..." if len(ids) > 3 else "") + "}"


def _is_series(given: Any) -> bool:
    is_named = type(given).__module__.partition(".")[0] in ("pandas", "cudf")
    return is_named and hasattr(given, "index") and hasattr(given, "to_numpy") and given.ndim == 1


def _series_values(name: str, series: Any) -> Array:
    missing = series.isna().to_numpy()
    if missing.any():
        raise ArgumentError(f"{name} is missing for the vertex {series.index[missing].tolist()[0]!r}: fill or drop it")
    dtype = None if isinstance(series.dtype, np.dtype) else getattr(series.dtype, "numpy_dtype", None)
    values: Array = series.to_numpy(dtype=dtype)
    return values


def _id(graph: Graph, v: int) -> Any:
    return graph.to_ids(np.array([v])).tolist()[0]

"""Decides, before a graph is written, what a format cannot hold: ids, isolated vertices, weights, the direction."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from gpu_pregel.errors import FormatError
from gpu_pregel.host.graphs.csr import CSR
from gpu_pregel.host.graphs.edge_arrays import find_rounded
from gpu_pregel.host.graphs.edge_columns import END_NAMES
from gpu_pregel.io._columns import is_number
from gpu_pregel.io._files import suffixes

if TYPE_CHECKING:
    from gpu_pregel.host.graphs.graph import Graph

Array = np.ndarray[Any, Any]

DIRECTED = "save as .mtx, .parquet or .pregel, or build the graph with directed=False"
_NUMBERED = ("matrix-market", "metis", "gemini", "gemini-weighted", "gapbs")
"""Formats that hold vertex numbers, but no ids."""
_USUAL_NAMES = frozenset(name for pair in END_NAMES for name in pair)
_INT64 = np.iinfo(np.int64)
_PARQUET_KINDS = (bytes, float, bool, np.datetime64, Decimal)
"""Types of ids, other than integers and strings, that are the same when they are read back from Parquet."""


def without_losses(graph: Graph, path: str, format: str, *, lossy: bool) -> Graph:
    """Return the part of a graph that a format can hold; unless ``lossy``, raise if that is not everything.

    Raises
    ------
    FormatError
        Names what would be lost, and formats that can hold it.
    """
    suffix = suffixes(path)[0]
    keep_ids = graph.ids is None or not _lost(
        path, _ids_problem(graph, format, suffix), lossy, "write vertex numbers instead"
    )
    if format in ("edgelist", "gemini", "gemini-weighted") and has_isolated_vertices(graph):
        _lost(path, _isolated_problem(format, suffix, named=graph.ids is not None and keep_ids), lossy, "drop them")
    keep_weights = graph.weights is None or not _lost(
        path, _weights_problem(graph.weights, format, suffix), lossy, "drop them"
    )
    if graph.weights is not None and format == "gemini-weighted":
        _lost(path, _rounding_problem(graph.weights), lossy, "round the weights")
    if keep_ids and keep_weights:
        return graph
    from gpu_pregel.host.graphs.graph import Graph

    csr = CSR(graph.indptr, graph.indices, graph.weights if keep_weights else None)
    return Graph(csr, directed=graph.is_directed, ids=graph.ids if keep_ids else None)


def _lost(path: str, problem: str | None, lossy: bool, loss: str) -> bool:
    """Return whether there is a problem; raise it unless ``lossy``."""
    if problem is not None and not lossy:
        raise FormatError(path, f"{problem}, or pass lossy=True to {loss}")
    return problem is not None


def has_isolated_vertices(graph: Graph) -> bool:
    """Return whether some vertex has no edge."""
    met = np.diff(graph.indptr) > 0
    if graph.is_directed:
        met[graph.indices] = True
    return not met.all()


def integer_ids(ids: Array) -> Array | None:
    """Return ids as an integer array, or None if some are not integers of 64 bits."""
    if ids.dtype.kind in "iu":
        return ids
    if ids.dtype.kind != "O" or any(not _is_integer(one) for one in ids):
        return None
    if all(_INT64.min <= int(one) <= _INT64.max for one in ids):
        return ids.astype(np.int64)
    return None


def _is_integer(one: object) -> bool:
    """Return whether an id is an integer; a bool or an enum is none, nor is a timedelta64, one of NumPy's integers."""
    return type(one) is int or (isinstance(one, np.integer) and not isinstance(one, np.timedelta64))


def _is_text(one: object) -> bool:
    """Return whether an id is a string that can be encoded."""
    if not isinstance(one, str) or type(one) not in (str, np.str_):
        return False
    try:
        return one.isascii() or bool(one.encode())
    except UnicodeEncodeError:
        return False


def _ids_problem(graph: Graph, format: str, suffix: str) -> str | None:
    ids = graph.ids
    if ids is None or len(ids) == 0:
        return None
    if format in ("parquet", "pregel"):
        problem = (_parquet_problem if format == "parquet" else _pregel_problem)(ids)
        return problem and f"{problem}: {_remedy(graph)}"
    if format in _NUMBERED:
        return f"{format} files hold vertex numbers, not ids: {_remedy(graph)}"
    integers = integer_ids(ids)
    if integers is not None:
        largest = int(integers.max())
        if largest <= _INT64.max:
            return None
        return f"the id {largest} is larger than 64 bits (signed), which {format} files cannot hold: {_remedy(graph)}"
    if format == "graphalytics":
        return f"graphalytics files require integer ids: {_remedy(graph)}"
    problem = _text_problem(ids, suffix)
    return problem and f"{problem}: {_remedy(graph)}"


def _remedy(graph: Graph) -> str:
    """Name formats that hold the ids and the isolated vertices of a graph."""
    ids: Array = graph.ids  # type: ignore[assignment]
    suffixes = [".pregel"] if _pregel_problem(ids) is None else []
    suffixes += [".parquet"] if _parquet_problem(ids) is None else []
    if not suffixes:
        return "use integers or strings as ids"
    integers = integer_ids(ids)
    text = _text_problem(ids, ".csv") is None if integers is None else int(integers.max()) <= _INT64.max
    suffixes += [".csv"] if text and not has_isolated_vertices(graph) else []
    return "save as " + " or ".join(filter(None, (", ".join(suffixes[:-1]), suffixes[-1])))


def _pregel_problem(ids: Array) -> str | None:
    """Return why .pregel files cannot hold these ids; None if they can."""
    if integer_ids(ids) is not None or all(map(_is_text, ids)):
        return None
    return f".pregel files require ids that are all integers of 64 bits or all strings, not {_kinds(ids)}"


def _parquet_problem(ids: Array) -> str | None:
    """Return why ids would not be read back from a Parquet file as they are; None if they would be."""
    if ids.dtype != object or integer_ids(ids) is not None:
        return None
    if all(map(_is_text, ids)) or any(all(type(one) is kind for one in ids) for kind in _PARQUET_KINDS):
        return None
    return (
        f".parquet files require ids that are all integers of 64 bits, all strings, all floats or all datetime64, not "
        f"{_kinds(ids)}"
    )


def _kinds(ids: Array) -> str:
    """Return the types of ids that a format cannot hold; of a single type, also an example."""
    kinds = sorted({type(one).__name__ for one in ids})
    if len(kinds) > 1:
        return f"{', '.join(kinds[:-1])} and {kinds[-1]}"
    usual = (_is_text(one) or (_is_integer(one) and _INT64.min <= int(one) <= _INT64.max) for one in ids)
    example = next(one for one, is_usual in zip(ids, usual, strict=True) if not is_usual)
    return f"{kinds[0]} such as {example!r:.80}"


def _text_problem(ids: Array, suffix: str) -> str | None:
    """Return why a text file cannot hold these ids; None if it can."""
    table = suffix in (".csv", ".tsv")
    numbers = 0
    for one in ids:
        if not _is_text(one):
            return f"text files require ids that are all integers of 64 bits or all strings, not {_kinds(ids)}"
        # A file that begins with U+FEFF is read without this byte order mark.
        if not one or one != one.strip() or "\r" in one or "\0" in one or one[0] == "\ufeff":
            return f"the id {one!r:.80} is empty or has blanks or control characters"
        number = is_number(one)
        numbers += number
        if not table and (number or re.search(r"[\s,;\"#%]", one) or one.lower() in _USUAL_NAMES):
            return f"the id {one!r:.80} would be read from {suffix} files as something else"
    if numbers == len(ids):
        return f"the ids are strings such as {ids[0]!r:.80}, which would be read as numbers"
    return None


def _isolated_problem(format: str, suffix: str, *, named: bool) -> str | None:
    problem = "the graph has vertices without edges, which"
    if format != "edgelist":
        return f"{problem} {format} files cannot hold: save as .pregel, .parquet or .sg"
    if named:
        return f"{problem} text files with ids cannot hold: save as .pregel or .parquet"
    if suffix in (".csv", ".tsv"):
        return f"{problem} {suffix} files cannot hold: save as .pregel, .parquet or .txt"
    return None


def _weights_problem(weights: Array, format: str, suffix: str) -> str | None:
    if format == "gemini":
        other = ".wel" if _rounding_problem(weights) else ".wbin"
        return f"gemini files cannot hold weights: save as {other} or .pregel"
    if suffix == ".el":
        return ".el files cannot hold weights: save as .wel or .pregel"
    if format == "gapbs" and suffix == ".sg":
        other = ".wsg" if weights.dtype == np.int32 else ".wel"
        return f".sg files cannot hold weights: save as {other} or .pregel"
    return None


def _rounding_problem(weights: Array) -> str | None:
    if weights.dtype.kind == "f":
        with np.errstate(over="ignore"):
            inexact = weights.astype(np.float32) != weights
        first = int(inexact.argmax()) if inexact.any() else -1
    else:
        first = find_rounded(weights, np.dtype(np.float32))
    if first < 0:
        return None
    worst = weights[first]
    return f"the weight {worst} does not fit float32, the type of gemini-weighted files: save as .wel or .pregel"

"""Numbers ids that are names through Arrow dictionaries, without a Python object per edge."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpu_pregel.errors import FormatError
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.io._options import ReadOptions, graph_from_edges

if TYPE_CHECKING:
    import pyarrow

Array = np.ndarray[Any, Any]

_INTEGER = r"^[+-]?[0-9]+$"
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_SAMPLE = 100


class EncodedIds(NamedTuple):
    """Sources and destinations as positions in ``names`` (uint32), which are distinct."""

    src: Array
    dst: Array
    names: pyarrow.Array


def encode_ids(src: pyarrow.ChunkedArray, dst: pyarrow.ChunkedArray, *, trim: bool = False) -> EncodedIds:
    """Encode the ids of at least one edge by first appearance, each edge's source before its target.

    ``trim`` removes the blanks around them.
    """
    import pyarrow as pa
    import pyarrow.compute

    with ThreadPoolExecutor(2) as pool:
        encoded = pa.chunked_array(pool.map(_encode, (src, dst))).unify_dictionaries()
    names = encoded.chunk(0).dictionary
    # Arrow's to_numpy would import pandas.
    codes_src, codes_dst = (np.from_dlpack(chunk.indices) for chunk in encoded.chunks)
    if trim:
        trimmed = pa.compute.utf8_trim_whitespace(names)
        if not trimmed.equals(names):
            shorter = trimmed.dictionary_encode()
            names, rank = shorter.dictionary, np.from_dlpack(shorter.indices)
            codes_src, codes_dst = rank[codes_src], rank[codes_dst]
    return _by_first_appearance(codes_src, codes_dst, names)


def _encode(column: pyarrow.ChunkedArray) -> pyarrow.DictionaryArray:
    """Return a column with one dictionary and 32-bit indices."""
    import pyarrow as pa

    # Encoding gives all chunks the same dictionary.
    same = column.unify_dictionaries() if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    indices = pa.concat_arrays([chunk.indices for chunk in same.chunks]).cast(pa.int32())
    return pa.DictionaryArray.from_arrays(indices, same.chunk(0).dictionary)


def _by_first_appearance(src: Array, dst: Array, names: pyarrow.Array) -> EncodedIds:
    import pyarrow as pa

    ends = np.empty(2 * len(src), src.dtype)
    ends[0::2], ends[1::2] = src, dst
    first = np.empty(len(names), np.int64)
    # NumPy assigns in order, so the last assignment, that of the first appearance, remains.
    first[ends[::-1]] = np.arange(len(ends) - 1, -1, -1)
    is_first = np.zeros(len(ends), bool)
    is_first[first] = True
    order = ends[is_first]
    rank = np.empty(len(names), np.uint32)
    rank[order] = np.arange(len(names), dtype=np.uint32)
    return EncodedIds(rank[src], rank[dst], names.take(pa.array(order)))


def as_integers(names: pyarrow.Array) -> Array | None:
    """Return the values of the names (int64) if all are integers, or None if one is not a number.

    Raises ``ValueError`` if all are numbers, but not 64-bit integers.
    """
    import pyarrow as pa
    import pyarrow.compute

    for pattern in (_INTEGER, _NUMBER):
        for part in (names[:_SAMPLE], names):
            if not pa.compute.all(pa.compute.match_substring_regex(part, pattern)).as_py():
                break
        else:
            if pattern == _INTEGER:
                unsigned = pa.compute.replace_substring_regex(names, r"^\+", "")
                return np.from_dlpack(unsigned.cast(pa.int64()))
            raise ValueError("the ids are numbers, but not integers")
    return None


def graph_from_names(
    path: str, options: ReadOptions, ids: EncodedIds, weight: Array | None, *, directed: bool
) -> Graph:
    """Build a graph whose ids are ``ids.names``, in that order."""
    n = len(ids.names)
    shown = repr(ids.names[0].as_py()) if n else ""
    if options.renumber is False:
        raise FormatError(path, f"renumber=False requires integer ids, but the file has names such as {shown}")
    if options.num_vertices is not None:
        raise FormatError(path, f"num_vertices= requires integer ids, but the file has names such as {shown}: omit it")
    plain = replace(options, renumber="auto")
    graph = graph_from_edges(path, plain, ids.src, ids.dst, weight, directed=directed, num_vertices=n)
    values = np.empty(n, object)
    values[:] = ids.names.to_pylist()
    return Graph(graph.to_csr(), directed=directed, ids=values)

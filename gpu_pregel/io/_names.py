"""Encodes ids that are text through Arrow dictionaries, without a Python object per edge."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import pyarrow

Array = np.ndarray[Any, Any]

_INTEGER = r"^[+-]?[0-9]+$"
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_SAMPLE = 100


class EncodedIds(NamedTuple):
    """Sources and destinations as positions in ``names`` (int32), which are distinct."""

    src: Array
    dst: Array
    names: pyarrow.Array


def encode_ids(src: pyarrow.ChunkedArray, dst: pyarrow.ChunkedArray) -> EncodedIds:
    """Encode the ids of at least one edge; blanks around them are removed."""
    import pyarrow as pa
    import pyarrow.compute

    with ThreadPoolExecutor(2) as pool:
        encoded = pa.chunked_array(pool.map(_encode, (src, dst))).unify_dictionaries()
    names = encoded.chunk(0).dictionary
    # Arrow's to_numpy would import pandas.
    codes_src, codes_dst = (np.from_dlpack(chunk.indices) for chunk in encoded.chunks)
    trimmed = pa.compute.utf8_trim_whitespace(names)
    if not trimmed.equals(names):
        shorter = trimmed.dictionary_encode()
        names, rank = shorter.dictionary, np.from_dlpack(shorter.indices)
        codes_src, codes_dst = rank[codes_src], rank[codes_dst]
    return EncodedIds(codes_src, codes_dst, names)


def _encode(column: pyarrow.ChunkedArray) -> pyarrow.DictionaryArray:
    """Return a column of strings with one dictionary."""
    import pyarrow as pa

    # Encoding gives all chunks the same dictionary.
    chunks = column.dictionary_encode().chunks
    return pa.DictionaryArray.from_arrays(pa.concat_arrays([chunk.indices for chunk in chunks]), chunks[0].dictionary)


def as_integers(names: pyarrow.Array) -> Array | None:
    """Return the values of the names (int64) if all are integers, or None if one is not a number.

    Raises ``ValueError`` if all are numbers, but not 64-bit integers.
    """
    import pyarrow as pa
    import pyarrow.compute

    if not _all_match(names, _NUMBER):
        return None
    if not _all_match(names, _INTEGER):
        raise ValueError("the ids are numbers, but not integers")
    unsigned = pa.compute.replace_substring_regex(names, r"^\+", "")
    return np.from_dlpack(unsigned.cast(pa.int64()))


def _all_match(names: pyarrow.Array, pattern: str) -> bool:
    import pyarrow.compute

    parts = (names[:_SAMPLE], names)
    match = pyarrow.compute.match_substring_regex
    return all(pyarrow.compute.all(match(part, pattern)).as_py() for part in parts)

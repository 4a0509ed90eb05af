"""Encodes ids that are text through Arrow dictionaries, without a Python object per edge."""

from __future__ import annotations

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

    # Encoding gives all chunks the same dictionary.
    encoded = pa.chunked_array(src.chunks + dst.chunks).dictionary_encode()
    names = encoded.chunk(0).dictionary
    # Arrow's to_numpy would import pandas.
    codes = np.concatenate([np.from_dlpack(chunk.indices) for chunk in encoded.chunks if len(chunk)])
    trimmed = pa.compute.utf8_trim_whitespace(names)
    if not trimmed.equals(names):
        shorter = trimmed.dictionary_encode()
        names, rank = shorter.dictionary, np.from_dlpack(shorter.indices)
        codes = rank[codes]
    return EncodedIds(codes[: len(src)], codes[len(src) :], names)


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

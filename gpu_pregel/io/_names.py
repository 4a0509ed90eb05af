"""Numbers ids that are text without a Python object per edge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpu_pregel.host.graphs.string_table import StringTable

if TYPE_CHECKING:
    import pyarrow

Array = np.ndarray[Any, Any]

_INTEGER = r"^[+-]?[0-9]+$"
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_SAMPLE = 100


class NumberedIds(NamedTuple):
    """Sources and destinations as positions in ``names`` (uint32), which are distinct, by first appearance."""

    src: Array
    dst: Array
    names: pyarrow.Array


def number_ids(table: StringTable, src: Array, dst: Array) -> NumberedIds:
    """Number the ids of at least one edge, given by their codes; blanks around them are removed."""
    import pyarrow as pa
    import pyarrow.compute

    names = table.finish(src, dst)
    names.validate(full=True)
    trimmed = pa.compute.utf8_trim(names, " \t\r\n")
    if not trimmed.equals(names):
        shorter = trimmed.dictionary_encode()
        names, rank = shorter.dictionary, np.from_dlpack(shorter.indices).astype(np.uint32)
        src, dst = rank[src], rank[dst]
    return NumberedIds(src, dst, names)


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


def has_odd_integers(names: pyarrow.Array) -> bool:
    """Return whether one of these integers is written with leading zeros or a plus sign, or is minus zero."""
    import pyarrow.compute

    match = pyarrow.compute.match_substring_regex(names, r"^([+-]?0[0-9]|[+]|-0)")
    return bool(pyarrow.compute.any(match).as_py())


def _all_match(names: pyarrow.Array, pattern: str) -> bool:
    import pyarrow.compute

    parts = (names[:_SAMPLE], names)
    match = pyarrow.compute.match_substring_regex
    return all(pyarrow.compute.all(match(part, pattern)).as_py() for part in parts)

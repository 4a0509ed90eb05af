"""Arrays in a store: as named blobs of a base, and as changed blocks in the commits after it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Blobs = Mapping[str, bytes | bytearray]
BlockChange = tuple[int, bytes, bytes]
"""The size of a blob, the numbers of its changed blocks as int64, and their contents; the last may be short."""

BLOCK = 1 << 12
"""Bytes of a block: a page of SQLite, so that a change of one number costs about as much as a row."""
HEADER = "header"
"""The blob that has the dtypes of the others, and what else is known of them, as JSON."""


class ArrayHistory:
    """The arrays as they are in the store, to find what has changed since.

    Parameters
    ----------
    blobs : mapping of str to bytes, optional
        What the store has.
    """

    def __init__(self, blobs: Blobs | None = None) -> None:
        self._stored = {name: np.frombuffer(bytes(data), np.uint8) for name, data in (blobs or {}).items()}

    def changes(self, arrays: Mapping[str, Array]) -> dict[str, BlockChange]:
        """Return the changed blocks of those arrays that differ from what is stored."""
        found = {}
        for name, array in arrays.items():
            change = find_change(self._stored.get(name), _bytes_of(array))
            if change is not None:
                found[name] = change
        return found

    def find(self, names: Sequence[str]) -> Blobs | None:
        """Return what is stored of some arrays; None unless the store has all of them."""
        stored = self._stored
        return {name: stored[name].tobytes() for name in names} if all(name in stored for name in names) else None

    def keep(self, arrays: Mapping[str, Array], changes: Mapping[str, BlockChange] | None = None) -> None:
        """Note that the store has these arrays now; with ``changes``, that only they differ from before."""
        for name in arrays if changes is None else changes:
            data, stored = _bytes_of(arrays[name]), self._stored.get(name)
            if stored is None or len(stored) != len(data) or not stored.flags.writeable:
                self._stored[name] = data.copy()
            else:
                stored[:] = data


def find_change(before: Array | None, after: Array) -> BlockChange | None:
    """Return the blocks of bytes that differ, or None if none does."""
    is_new = before is None
    before = after[:0] if before is None else before
    whole = min(len(before), len(after)) // BLOCK
    size = whole * BLOCK
    shape = whole, BLOCK // 8
    words = [array[:size].view(np.uint64).reshape(shape) for array in (before, after)]
    changed = np.flatnonzero((words[0] != words[1]).any(axis=1))
    if len(before) != len(after) or (before[size:] != after[size:]).any():
        changed = np.concatenate([changed, np.arange(whole, -(-len(after) // BLOCK))])
    elif not len(changed) and not is_new:
        return None
    contents = b"".join(after[k * BLOCK : (k + 1) * BLOCK].tobytes() for k in changed.tolist())
    return len(after), changed.astype(np.int64).tobytes(), contents


def apply_changes(blobs: dict[str, bytearray], changes: Mapping[str, BlockChange]) -> None:
    """Apply the changes of a commit to blobs, which are modified.

    Raises
    ------
    ValueError
        The changes do not fit the blobs.
    """
    for name, (size, numbers, contents) in changes.items():
        data = blobs.setdefault(name, bytearray())
        if size < 0:
            raise ValueError(f"the size of {name!r} is {size}")
        del data[size:]
        data.extend(bytes(size - len(data)))
        place = 0
        for number in np.frombuffer(numbers, np.int64).tolist():
            first, last = number * BLOCK, min(size, (number + 1) * BLOCK)
            if not 0 <= first < last or place + last - first > len(contents):
                raise ValueError(f"block {number} of {name!r} is beyond its end")
            data[first:last] = contents[place : place + last - first]
            place += last - first


def with_header(arrays: Mapping[str, Array], facts: Mapping[str, Any]) -> dict[str, Array]:
    """Return arrays with a header of their dtypes and other facts."""
    header = {"arrays": {name: array.dtype.str for name, array in arrays.items()}, **facts}
    return {**arrays, HEADER: np.frombuffer(json.dumps(header).encode(), np.uint8)}


def read_arrays(blobs: Blobs) -> tuple[dict[str, Array], dict[str, Any]]:
    """Return arrays and the other facts of a header; both are empty if there is no blob.

    Raises
    ------
    ValueError
        The blobs are not what :func:`with_header` returns.
    """
    if not blobs:
        return {}, {}
    try:
        facts = json.loads(bytes(blobs[HEADER]))
        dtypes = {str(name): np.dtype(str(code)) for name, code in facts.pop("arrays").items()}
        if any(dtype.kind not in "biuf" for dtype in dtypes.values()):
            raise ValueError("an array is not of numbers")
        arrays = {name: np.frombuffer(bytes(blobs[name]), dtype) for name, dtype in dtypes.items()}
    except (LookupError, AttributeError, TypeError, RecursionError) as error:
        raise ValueError(f"the arrays have no valid header ({error!r})") from error
    return arrays, facts


def _bytes_of(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)

"""Differences between two encoded values, and encoded values in pieces.

A difference has the size of the old value and the replaced ranges of it; it begins with a version byte of its own, so
that it is never taken for a value. It describes bytes, and so applies to values of every type.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate

from gpu_pregel.errors import CodecError
from gpu_pregel.host.agents.codec.format import DIFFERENCE

Edit = tuple[int, int, bytes]
"""Replace the bytes from ``start`` to ``end`` of the old value; edits are in order and do not overlap."""

_HEAD = struct.Struct("<BQQ")
"""The version byte, the size of the old value, and the number of edits; then their numbers, then their bytes."""
LARGE = 1 << 14
"""Smaller values are always bytes: to decode and encode them takes less time than to find out what has changed."""
_MAX_PIECES = 64
_MIN_MATCH = 32
"""Shorter runs of equal bytes between two replaced ranges are replaced together with them."""
_GAP = 16
"""A changed length or number takes at most this many bytes; beyond them the old and the new bytes align again."""
_MAX_GAPS = 16


class PiecedValue:
    """An encoded value as consecutive pieces; it shares those that did not change with the value it was made from."""

    __slots__ = ("_ends", "_pieces")

    def __init__(self, pieces: list[bytes | memoryview]) -> None:
        self._pieces = pieces
        self._ends = list(accumulate(map(len, pieces)))

    def __len__(self) -> int:
        return self._ends[-1]

    def __bytes__(self) -> bytes:
        if len(self._pieces) > 1 or type(self._pieces[0]) is not bytes:
            self._pieces = [b"".join(self._pieces)]
            self._ends = self._ends[-1:]
        return self._pieces[0]  # type: ignore[return-value]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (bytes, PiecedValue)):
            return NotImplemented
        return bytes(self) == bytes(other)

    __hash__ = None  # type: ignore[assignment]

    def edited(self, edits: Iterable[Edit]) -> PiecedValue:
        """Return the value after edits; few pieces are kept, so that each further edit stays cheap."""
        pieces: list[bytes | memoryview] = []
        position = 0
        for start, end, data in edits:
            pieces += self._between(position, start)
            if data:
                pieces.append(data)
            position = end
        pieces += self._between(position, len(self))
        if len(pieces) > _MAX_PIECES:
            pieces = [b"".join(pieces)]
        return PiecedValue(pieces)

    def _between(self, start: int, end: int) -> Sequence[bytes | memoryview]:
        """Return the pieces from one position to another, without copying their bytes."""
        if start >= end:
            return ()
        pieces, ends = self._pieces, self._ends
        first, last = bisect_right(ends, start), bisect_right(ends, end - 1)
        found = pieces[first : last + 1]
        before = ends[last] - end
        if before:
            found[-1] = memoryview(found[-1])[: len(found[-1]) - before]
        skipped = start - (ends[first - 1] if first else 0)
        if skipped:
            found[0] = memoryview(found[0])[skipped:]
        return found


EncodedValue = bytes | PiecedValue


def joined(value: EncodedValue) -> bytes:
    """Return a value as bytes, but keep its pieces, so that another thread may use it meanwhile."""
    return b"".join(value._pieces) if isinstance(value, PiecedValue) else value


def find_edits(old: bytes, new: bytes) -> list[Edit]:
    """Return edits that turn one encoded value into another; they are small if few parts of it differ."""
    same = _common_suffix(old, new)
    end, new_end = len(old) - same, len(new) - same
    start = _common_prefix(old, 0, end, new, 0, new_end)
    new_start = start
    edits: list[Edit] = []
    while start < end and new_start < new_end and len(edits) < _MAX_GAPS:
        gap = min(_GAP, end - start, new_end - new_start)
        after = _common_prefix(old, start + gap, end, new, new_start + gap, new_end)
        if after < _MIN_MATCH:
            break
        edits.append((start, start + gap, new[new_start : new_start + gap]))
        start, new_start = start + gap + after, new_start + gap + after
    if start < end or new_start < new_end:
        edits.append((start, end, new[new_start:new_end]))
    return edits


def _common_prefix(old: bytes, i: int, end: int, new: bytes, j: int, new_end: int) -> int:
    """Return the number of equal bytes from ``old[i]`` and ``new[j]`` on; ranges to compare double, then halve."""
    most = min(end - i, new_end - j)
    low, step = 0, 64
    while low < most and old[i + low : i + min(low + step, most)] == new[j + low : j + min(low + step, most)]:
        low = min(low + step, most)
        step *= 2
    high = min(low + step, most)
    while low < high:
        middle = (low + high + 1) // 2
        if old[i + low : i + middle] == new[j + low : j + middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_suffix(old: bytes, new: bytes) -> int:
    """Return the number of equal bytes at the end."""
    m, n = len(old), len(new)
    most = min(m, n)
    low, step = 0, 64
    while low < most and old[m - min(low + step, most) : m - low] == new[n - min(low + step, most) : n - low]:
        low = min(low + step, most)
        step *= 2
    high = min(low + step, most)
    while low < high:
        middle = (low + high + 1) // 2
        if old[m - middle : m - low] == new[n - middle : n - low]:
            low = middle
        else:
            high = middle - 1
    return low


def pack_difference(size: int, edits: Sequence[Edit]) -> bytes:
    """Encode edits of a value of ``size`` bytes."""
    numbers = [n for start, end, new in edits for n in (start, end, len(new))]
    head = struct.pack(f"<BQQ{len(numbers)}Q", DIFFERENCE, size, len(edits), *numbers)
    return b"".join((head, *[new for _, _, new in edits]))


def changed_value(old: EncodedValue, data: bytes) -> EncodedValue:
    """Return the new value, given the old one and either the new one or the difference between them.

    Raises
    ------
    CodecError
        The data are the difference from another value, or damaged.
    """
    if data[0] != DIFFERENCE:
        return data
    global _latest
    latest, before, after = _latest
    if latest is data and before is old:
        return after
    size, edits = _read(data)
    if size != len(old):
        raise CodecError(f"is the difference from a value of {size:,} bytes, not {len(old):,}", "value")
    pieced = (PiecedValue([old]) if isinstance(old, bytes) else old).edited(edits)
    new = bytes(pieced) if len(pieced) < LARGE else pieced
    _latest = data, old, new
    return new


_latest: tuple[bytes, EncodedValue, EncodedValue] = b"", b"", b""
"""The latest difference, and the values before and after: without workers, the master asks for it again."""


def changed_size(data: bytes) -> int:
    """Return the size of the new value, given that value or the difference from the old one."""
    if data[0] != DIFFERENCE:
        return len(data)
    size, edits = _read(data)
    return size + sum(len(new) - (end - start) for start, end, new in edits)


def _read(data: bytes) -> tuple[int, list[Edit]]:
    """Decode the size of the old value, and the edits."""
    try:
        _, size, count = _HEAD.unpack_from(data)
        if count > len(data):
            raise _damage()
        numbers = struct.unpack_from(f"<{3 * count}Q", data, _HEAD.size)
    except struct.error:
        raise _damage() from None
    edits: list[Edit] = []
    position, at = 0, _HEAD.size + 24 * count
    for start, end, length in zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True):
        if not position <= start <= end <= size:
            raise _damage()
        edits.append((start, end, data[at : at + length]))
        position, at = end, at + length
    if at != len(data):
        raise _damage()
    return size, edits


def _damage() -> CodecError:
    return CodecError("is damaged: its edits are not in order, or too short", "difference")

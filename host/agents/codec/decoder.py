"""Bytes to data: the built-in types, and the table to which the codec's other modules add theirs."""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection
from itertools import repeat
from typing import Any

from gpu_pregel.host.agents.codec.encoder import int_bytes, without_tags
from gpu_pregel.host.agents.codec.format import (
    ARRAY,
    BIG_NEGATIVE,
    BIG_POSITIVE,
    BYTEARRAY,
    BYTES,
    DATE,
    DATETIME,
    DECIMAL,
    DICT,
    FALSE,
    FLOAT,
    FLOAT_LIST,
    FLOAT_TUPLE,
    FROZENSET,
    INT_LIST,
    INT_TUPLE,
    KEYS_KEPT,
    LEAST,
    LIST,
    LONGEST_KEYS,
    MOST,
    NEGATIVE,
    NONE,
    POSITIVE,
    SCALAR,
    SET,
    SMALL,
    STR,
    TIME,
    TIMEDELTA,
    TRUE,
    TUPLE,
    UNTAGGED,
    UUID,
    ZERO,
    Refused,
    too_deep,
)

_CONSTANTS = (None, None, False, True)
_unpack_float = struct.Struct("<d").unpack_from
_unpack_int = struct.Struct(">q").unpack_from
_unpack_length = struct.Struct(">Q").unpack_from
_keys: dict[bytes, tuple[str, ...]] = {}

Reader = Callable[[bytes, int, int], tuple[Any, int]]


def _unknown(data: bytes, i: int, _depth: int) -> tuple[Any, int]:
    raise Refused(f"has the unknown tag {data[i - 1]:#04x}: it is damaged, or was written by a newer version")


def _read_numpy(data: bytes, i: int, depth: int) -> tuple[Any, int]:
    """Replace itself in the table by what ``codec_arrays`` has: NumPy is loaded when it is needed."""
    from gpu_pregel.host.agents.codec import arrays as codec_arrays

    readers[ARRAY], readers[SCALAR] = codec_arrays.read_array, codec_arrays.read_scalar
    return readers[data[i - 1]](data, i, depth)


def _read_extra(data: bytes, i: int, depth: int) -> tuple[Any, int]:
    """Let ``codec_extras`` put its readers into the table, this one's place included."""
    from gpu_pregel.host.agents.codec import extras  # noqa: F401

    return readers[data[i - 1]](data, i, depth)


readers: list[Reader] = [_unknown] * 256
"""By tag: from the place after the tag, the value and the place after it."""


def read_items(data: bytes, i: int, n: int, depth: int) -> tuple[list[Any], int]:
    """Read so many values that follow each other; a refusal is given the index of the one at fault."""
    if depth == 0:
        raise too_deep()
    size = len(data)
    if n > size - i:
        raise cut_short()
    items: list[Any] = []
    append = items.append
    try:
        for _ in repeat(None, n):
            tag = data[i]
            i += 1
            if tag < POSITIVE:
                if tag >= SMALL:
                    append(tag - ZERO)
                elif tag == FLOAT:
                    append(_unpack_float(data, i)[0])
                    i += 8
                elif NONE <= tag <= TRUE:
                    append(_CONSTANTS[tag])
                else:
                    item, i = readers[tag](data, i, depth)
                    append(item)
            elif STR <= tag <= BYTES:
                length = data[i]
                i += 1
                if length == 255:
                    length, i = _read_long(data, i)
                end = i + length
                if end > size:
                    raise cut_short()
                append(data[i:end].decode() if tag == STR else data[i:end])
                i = end
            elif tag == POSITIVE:
                item = _unpack_int(data, i)[0]
                if item <= MOST:
                    raise not_canonical()
                append(item)
                i += 8
            else:
                item, i = readers[tag](data, i, depth - 1)
                append(item)
    except Refused as refused:
        refused.steps.append(len(items))
        raise
    except (IndexError, struct.error):
        raise cut_short(len(items)) from None
    except UnicodeDecodeError as error:
        raise not_utf8(error, len(items)) from None
    return items, i


def cut_short(*steps: int) -> Refused:
    """What is said where the data end too early."""
    return Refused("is cut short: the data end before it does", *steps)


def not_utf8(error: UnicodeDecodeError, *steps: int) -> Refused:
    """What is said of bytes that are to be text and are not."""
    return Refused(f"is text that is not UTF-8: {error.reason} at byte {error.start}", *steps)


def _read_length(data: bytes, i: int) -> tuple[int, int]:
    """A length, and the place after it."""
    n = data[i]
    return (n, i + 1) if n < 255 else _read_long(data, i + 1)


def _read_long(data: bytes, i: int) -> tuple[int, int]:
    n = _unpack_length(data, i)[0]
    if n < 255:
        raise not_canonical()
    return n, i + 8


def not_canonical() -> Refused:
    """What is said of bytes that would decode, but that encoding never writes."""
    return Refused("is not in the one form that encoding writes")


def _read_constant(data: bytes, i: int, _depth: int) -> tuple[bool | None, int]:
    return _CONSTANTS[data[i - 1]], i


def _read_small(data: bytes, i: int, _depth: int) -> tuple[int, int]:
    return data[i - 1] - ZERO, i


def _read_float(data: bytes, i: int, _depth: int) -> tuple[float, int]:
    return _unpack_float(data, i)[0], i + 8


def _read_str(data: bytes, i: int, _depth: int) -> tuple[str, int]:
    n = data[i]
    i += 1
    if n == 255:
        n, i = _read_long(data, i)
    end = i + n
    if end > len(data):
        raise cut_short()
    try:
        return data[i:end].decode(), end
    except UnicodeDecodeError as error:
        raise not_utf8(error) from None


def read_bytes(data: bytes, i: int, _depth: int = 0) -> tuple[bytes, int]:
    """A length and as many bytes."""
    n = data[i]
    i += 1
    if n == 255:
        n, i = _read_long(data, i)
    end = i + n
    if end > len(data):
        raise cut_short()
    return data[i:end], end


def _read_positive(data: bytes, i: int, _depth: int) -> tuple[int, int]:
    x = _unpack_int(data, i)[0]
    if x <= MOST:
        raise not_canonical()
    return x, i + 8


def _read_negative(data: bytes, i: int, _depth: int) -> tuple[int, int]:
    x = _unpack_int(data, i)[0]
    if x >= LEAST:
        raise not_canonical()
    return x, i + 8


def _read_big(data: bytes, i: int, _depth: int) -> tuple[int, int]:
    n = _unpack_length(data, i)[0]
    start = i - 1
    if data[start] == BIG_NEGATIVE:
        n ^= (1 << 64) - 1
    i += 8
    if n > len(data) - i:
        raise cut_short()
    x = int.from_bytes(data[i : i + n], "big", signed=True)
    if n < 8 or int_bytes(x) != data[start : i + n]:
        raise not_canonical()
    return x, i + n


def _list_reader(as_tuple: bool) -> Reader:
    def read(data: bytes, i: int, depth: int) -> tuple[Any, int]:
        n = data[i]
        i += 1
        if n == 255:
            n, i = _read_long(data, i)
        items, i = read_items(data, i, n, depth)
        if n >= UNTAGGED and without_tags(items) is not None:
            raise not_canonical()
        return tuple(items) if as_tuple else items, i

    return read


def _untagged_reader(code: str, as_tuple: bool) -> Reader:
    def read(data: bytes, i: int, depth: int) -> tuple[Any, int]:
        if depth == 0:
            raise too_deep()
        n, i = _read_length(data, i)
        if n < UNTAGGED:
            raise not_canonical()
        if 8 * n > len(data) - i:
            raise cut_short()
        items = struct.unpack_from(f"<{n}{code}", data, i)
        return items if as_tuple else list(items), i + 8 * n

    return read


def _read_dict(data: bytes, i: int, depth: int) -> tuple[dict[Any, Any], int]:
    n, size = data[i], data[i + 1]
    i += 2
    if n == 255 or size == 255:
        n, i = _read_length(data, i - 2)
        size, i = _read_length(data, i)
    end = i + size
    if end > len(data):
        raise cut_short()
    keys = _keys.get(data[i:end]) if size <= LONGEST_KEYS else None
    if keys is None or len(keys) != n:
        keys = _parse_keys(data, i, end, n, depth)
    try:
        values, i = read_items(data, end, n, depth)
    except Refused as refused:
        refused.name_key(keys)
        raise
    return dict(zip(keys, values)), i  # noqa: B905


def _parse_keys(data: bytes, i: int, end: int, n: int, depth: int) -> tuple[Any, ...]:
    """The keys of a dict, all different."""
    try:
        items, stop = read_items(data, i, n, depth)
    except Refused as refused:
        if refused.steps:
            refused.steps.append(".keys()")
        raise
    keys = tuple(items)
    if stop != end:
        raise Refused("has keys that do not take the bytes said")
    if count_distinct(keys) != n:
        raise Refused("has a key twice")
    if n <= 64 and end - i <= LONGEST_KEYS and list(map(type, keys)).count(str) == n:
        if len(_keys) >= KEYS_KEPT:
            _keys.clear()
        _keys[data[i:end]] = keys
    return keys


def count_distinct(elements: Collection[Any]) -> int:
    """How many different ones there are."""
    try:
        return len(set(elements))
    except Exception as error:  # The __hash__ of a registered type may raise anything.
        raise Refused(f"holds as key or element what cannot be hashed: {error}") from None


def _set_reader(cls: type[set[Any]] | type[frozenset[Any]]) -> Reader:
    def read(data: bytes, i: int, depth: int) -> tuple[Any, int]:
        n, i = _read_length(data, i)
        if depth == 0:
            raise too_deep()
        if n > len(data) - i:
            raise cut_short()
        elements: list[Any] = []
        last = b""
        for _ in repeat(None, n):
            start = i
            try:
                (element,), i = read_items(data, i, 1, depth)
            except Refused as refused:
                refused.steps[-1:] = [f"{{{len(elements)}}}"]
                raise
            latest = data[start:i]
            if latest <= last:
                raise Refused("is a set whose elements are not sorted, or repeat")
            last = latest
            elements.append(element)
        if count_distinct(elements) != n:
            raise Refused("is a set with an element twice")
        return cls(elements), i

    return read


def _read_bytearray(data: bytes, i: int, _depth: int) -> tuple[bytearray, int]:
    content, i = read_bytes(data, i)
    return bytearray(content), i


readers[NONE] = readers[FALSE] = readers[TRUE] = _read_constant
readers[SMALL:POSITIVE] = [_read_small] * (POSITIVE - SMALL)
readers[FLOAT], readers[STR], readers[BYTES] = _read_float, _read_str, read_bytes
readers[POSITIVE] = _read_positive
readers[NEGATIVE] = _read_negative
readers[BIG_POSITIVE] = readers[BIG_NEGATIVE] = _read_big
readers[LIST], readers[TUPLE] = _list_reader(False), _list_reader(True)
readers[FLOAT_LIST], readers[FLOAT_TUPLE] = _untagged_reader("d", False), _untagged_reader("d", True)
readers[INT_LIST], readers[INT_TUPLE] = _untagged_reader("q", False), _untagged_reader("q", True)
readers[DICT] = _read_dict
readers[SET], readers[FROZENSET] = _set_reader(set), _set_reader(frozenset)
readers[BYTEARRAY] = _read_bytearray
readers[ARRAY] = readers[SCALAR] = _read_numpy
for _tag in (DATE, TIME, DATETIME, TIMEDELTA, DECIMAL, UUID):
    readers[_tag] = _read_extra

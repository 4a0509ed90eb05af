"""Decoding of built-in types, and the table of readers to which the codec's other modules add theirs."""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection
from itertools import repeat
from typing import Any

from gpu_pregel.host.agents.codec.encoder import int_bytes, without_tags
from gpu_pregel.host.agents.codec.format import (
    BIG_NEGATIVE,
    BIG_POSITIVE,
    BYTEARRAY,
    BYTES,
    CACHED_KEYS,
    DICT,
    FALSE,
    FLOAT,
    FLOAT_LIST,
    FLOAT_TUPLE,
    FROZENSET,
    INT_LIST,
    INT_TUPLE,
    LIST,
    MAX_KEY_BYTES,
    MAX_SMALL,
    MIN_SMALL,
    MIN_UNTAGGED,
    NEGATIVE,
    NONE,
    POSITIVE,
    SET,
    SMALL,
    STR,
    TRUE,
    TUPLE,
    ZERO,
    InvalidDataError,
    check_hashes,
    depth_error,
)

_BYTES = bytes((BYTES,))
_CONSTANTS = (None, None, False, True)
_unpack_float = struct.Struct("<d").unpack_from
_unpack_int = struct.Struct(">q").unpack_from
_unpack_length = struct.Struct(">Q").unpack_from
_keys: dict[bytes, tuple[str, ...]] = {}

Reader = Callable[[bytes, int, int], tuple[Any, int]]


def _unknown(data: bytes, i: int, _depth: int) -> tuple[Any, int]:
    raise InvalidDataError(f"has the unknown tag {data[i - 1]:#04x}: it is damaged, or was written by a newer version")


readers: list[Reader] = [_unknown] * 256
"""By tag: from the position after the tag, returns the value and the position after it."""


def read_items(data: bytes, i: int, n: int, depth: int) -> tuple[list[Any], int]:
    """Read ``n`` consecutive values; an error gets the index of the invalid one."""
    if depth == 0:
        raise depth_error()
    size = len(data)
    if n > size - i:
        raise truncation_error()
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
                    raise truncation_error()
                append(data[i:end].decode() if tag == STR else data[i:end])
                i = end
            elif tag == POSITIVE:
                item = _unpack_int(data, i)[0]
                if item <= MAX_SMALL:
                    raise canonical_error()
                append(item)
                i += 8
            else:
                item, i = readers[tag](data, i, depth - 1)
                append(item)
    except InvalidDataError as error:
        error.steps.append(len(items))
        raise
    except (IndexError, struct.error):
        raise truncation_error(len(items)) from None
    except UnicodeDecodeError as error:
        raise utf8_error(error, len(items)) from None
    return items, i


def truncation_error(*steps: int) -> InvalidDataError:
    """Return the error for data that end too early."""
    return InvalidDataError("is truncated: the data end too early", *steps)


def utf8_error(error: UnicodeDecodeError, *steps: int) -> InvalidDataError:
    """Return the error for a string that is not UTF-8."""
    return InvalidDataError(f"is not valid UTF-8: {error.reason} at byte {error.start}", *steps)


def _read_length(data: bytes, i: int) -> tuple[int, int]:
    """Read a length and return it with the position after it."""
    n = data[i]
    return (n, i + 1) if n < 255 else _read_long(data, i + 1)


def _read_long(data: bytes, i: int) -> tuple[int, int]:
    n = _unpack_length(data, i)[0]
    if n < 255:
        raise canonical_error()
    return n, i + 8


def canonical_error() -> InvalidDataError:
    """Return the error for bytes that could be decoded but that ``encode`` never writes."""
    return InvalidDataError("is not in canonical form")


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
        raise truncation_error()
    try:
        return data[i:end].decode(), end
    except UnicodeDecodeError as error:
        raise utf8_error(error) from None


def read_bytes(data: bytes, i: int, _depth: int = 0) -> tuple[bytes, int]:
    """Read a length and that many bytes."""
    n = data[i]
    i += 1
    if n == 255:
        n, i = _read_long(data, i)
    end = i + n
    if end > len(data):
        raise truncation_error()
    return data[i:end], end


def _read_positive(data: bytes, i: int, _depth: int) -> tuple[int, int]:
    x = _unpack_int(data, i)[0]
    if x <= MAX_SMALL:
        raise canonical_error()
    return x, i + 8


def _read_negative(data: bytes, i: int, _depth: int) -> tuple[int, int]:
    x = _unpack_int(data, i)[0]
    if x >= MIN_SMALL:
        raise canonical_error()
    return x, i + 8


def _read_big(data: bytes, i: int, _depth: int) -> tuple[int, int]:
    n = _unpack_length(data, i)[0]
    start = i - 1
    if data[start] == BIG_NEGATIVE:
        n ^= (1 << 64) - 1
    i += 8
    if n > len(data) - i:
        raise truncation_error()
    x = int.from_bytes(data[i : i + n], "big", signed=True)
    if n < 8 or int_bytes(x) != data[start : i + n]:
        raise canonical_error()
    return x, i + n


def _read_equal_lengths(data: bytes, i: int, n: int) -> tuple[list[bytes], int] | None:
    """Read values that are all bytes of one length, in a third of the time; return None for other values."""
    head = data[i : i + 2]
    step = head[-1] + 2
    end = i + n * step
    if head[-1] == 255 or end > len(data):
        return None
    if data[i:end:step] != head[:1] * n or data[i + 1 : end : step] != head[1:] * n:
        return None
    return [data[k : k + step - 2] for k in range(i + 2, end + 1, step)], end


def _list_reader(as_tuple: bool) -> Reader:
    def read(data: bytes, i: int, depth: int) -> tuple[Any, int]:
        n = data[i]
        i += 1
        if n == 255:
            n, i = _read_long(data, i)
        if n >= MIN_UNTAGGED and depth and data[i : i + 1] == _BYTES and (equal := _read_equal_lengths(data, i, n)):
            return tuple(equal[0]) if as_tuple else equal[0], equal[1]
        items, i = read_items(data, i, n, depth)
        if n >= MIN_UNTAGGED and without_tags(items) is not None:
            raise canonical_error()
        return tuple(items) if as_tuple else items, i

    return read


def _untagged_reader(code: str, as_tuple: bool) -> Reader:
    def read(data: bytes, i: int, depth: int) -> tuple[Any, int]:
        if depth == 0:
            raise depth_error()
        n, i = _read_length(data, i)
        if n < MIN_UNTAGGED:
            raise canonical_error()
        if 8 * n > len(data) - i:
            raise truncation_error()
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
        raise truncation_error()
    keys = _keys.get(data[i:end]) if size <= MAX_KEY_BYTES else None
    if keys is None or len(keys) != n:
        keys = _parse_keys(data, i, end, n, depth)
    try:
        values, i = read_items(data, end, n, depth)
    except InvalidDataError as error:
        error.name_key(keys)
        raise
    return dict(zip(keys, values)), i  # noqa: B905


def _parse_keys(data: bytes, i: int, end: int, n: int, depth: int) -> tuple[Any, ...]:
    """Read the keys of a dict, which must be distinct."""
    try:
        items, stop = read_items(data, i, n, depth)
    except InvalidDataError as error:
        if error.steps:
            error.steps.append(".keys()")
        raise
    keys = tuple(items)
    if stop != end:
        raise InvalidDataError("has keys that do not take the stated size")
    if count_distinct(keys) != n:
        raise InvalidDataError("has a duplicate key")
    if n <= 64 and end - i <= MAX_KEY_BYTES and list(map(type, keys)).count(str) == n:
        if len(_keys) >= CACHED_KEYS:
            _keys.clear()
        _keys[data[i:end]] = keys
    return keys


def count_distinct(elements: Collection[Any]) -> int:
    """Return the number of distinct elements."""
    try:
        check_hashes(elements)
        return len(set(elements))
    except InvalidDataError:
        raise
    except Exception as error:  # The __hash__ of a registered type may raise anything.
        raise InvalidDataError(f"contains an unhashable key or element: {error}") from None


def _set_reader(cls: type[set[Any]] | type[frozenset[Any]]) -> Reader:
    def read(data: bytes, i: int, depth: int) -> tuple[Any, int]:
        n, i = _read_length(data, i)
        if depth == 0:
            raise depth_error()
        if n > len(data) - i:
            raise truncation_error()
        elements: list[Any] = []
        last = b""
        for _ in repeat(None, n):
            start = i
            try:
                (element,), i = read_items(data, i, 1, depth)
            except InvalidDataError as error:
                error.steps[-1:] = [f"{{{len(elements)}}}"]
                raise
            latest = data[start:i]
            if latest <= last:
                raise InvalidDataError("is a set with unsorted or duplicate elements")
            last = latest
            elements.append(element)
        if count_distinct(elements) != n:
            raise InvalidDataError("is a set with duplicate elements")
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

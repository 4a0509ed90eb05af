"""Encoding of built-in types, and the table of writers to which the codec's other modules add theirs."""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Sequence
from typing import Any

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
    LIST,
    MAX_KEY_BYTES,
    MAX_SMALL,
    MIN_SMALL,
    MIN_UNTAGGED,
    NEGATIVE,
    NONE,
    POSITIVE,
    SET,
    STR,
    TRUE,
    TUPLE,
    ZERO,
    DataTooLargeError,
    InvalidDataError,
    check_hashes,
    depth_error,
)

_CHUNK = 256
"""Maximum number of items written between two checks of the limit."""
_SHORT_STR, _SHORT_BYTES = ([bytes((tag, n)) for n in range(255)] for tag in (STR, BYTES))
_SMALL_INTS = {x: bytes((ZERO + x,)) for x in range(MIN_SMALL, MAX_SMALL + 1)}
_NONE, _FALSE, _TRUE = bytes((NONE,)), bytes((FALSE,)), bytes((TRUE,))
_pack_float = struct.Struct("<Bd").pack
_pack_int = struct.Struct(">Bq").pack
_pack_length = struct.Struct(">BQ").pack
_keys: dict[tuple[str, ...], bytes] = {}


class Output(list[Any]):
    """The pieces written so far; with a limit, ``room`` is what remains for the pieces from ``seen`` on."""

    limit: int | None = None
    room = 0
    seen = 0

    def check(self) -> None:
        """Count the latest pieces and raise if they exceed the limit."""
        if self.limit is not None:
            self.room -= sum(map(len, self[self.seen :]))
            self.seen = len(self)
            self.check_room(0)

    def check_room(self, size: int) -> None:
        """Raise if ``size`` more bytes would exceed the limit."""
        if self.limit is not None and size > self.room:
            raise DataTooLargeError(f"exceeds the limit of {self.limit:,} bytes")


Writer = Callable[[Any, Output, int], None]


class _Writers(dict[type, Writer]):
    """Writers by exact type; ``load`` is called for an unknown type and may add its writer."""

    load: Callable[[type], None]

    def __missing__(self, cls: type) -> Writer:
        self.load(cls)
        if cls in self:
            return self[cls]
        raise InvalidDataError(_type_problem(cls))


writers = _Writers()
"""By exact type: writes a value's tag and content; the last argument is the remaining nesting depth."""


def type_name(cls: type) -> str:
    """Return the name of a class in messages."""
    return f"{cls.__module__}.{cls.__qualname__}".removeprefix("builtins.")


def _type_problem(cls: type) -> str:
    """Return why instances of a class cannot be encoded, and the remedy."""
    if cls is memoryview:
        return "is of type memoryview, which cannot be encoded: use bytes"
    base = next((base for base in cls.__mro__[1:] if base in writers), None)
    if base is not None:
        return (
            f"is of type {type_name(cls)}, a subclass of {base.__name__}: convert it to {base.__name__}, or register "
            f"its type if it is a dataclass, pydantic model, enum or namedtuple"
        )
    if hasattr(cls, "__dataclass_fields__") or hasattr(cls, "__pydantic_validator__") or hasattr(cls, "__members__"):
        return (
            f"is of type {type_name(cls)}, which is not registered: put @gp.agents.register above the class, or call "
            f"gp.agents.register({cls.__name__})"
        )
    return (
        f"is of type {type_name(cls)}, which cannot be encoded: use built-in types, date and time types, Decimal, UUID "
        f"or NumPy arrays, or register a dataclass, pydantic model, enum or namedtuple with gp.agents.register"
    )


def write_items(items: Sequence[Any], out: Output, depth: int) -> None:
    """Write consecutive values; an error gets the index of the invalid one."""
    if depth == 0:
        raise depth_error()
    if out.limit is not None:
        if len(items) > _CHUNK:
            return _write_chunks(items, out, depth)
        if len(out) - out.seen > _CHUNK:
            out.check()
    append = out.append
    item = None
    try:
        for item in items:
            kind = type(item)
            if kind is str:
                data = item.encode()
                n = len(data)
                if n < 255:
                    append(_SHORT_STR[n] + data)
                else:
                    _write_long(STR, data, out)
            elif kind is int:
                append(_SMALL_INTS.get(item) or int_bytes(item))
            elif kind is float:
                append(_pack_float(FLOAT, item))
            elif kind is bytes:
                n = len(item)
                if n < 255:
                    append(_SHORT_BYTES[n] + item)
                else:
                    _write_long(BYTES, item, out)
            elif kind is bool:
                append(_TRUE if item else _FALSE)
            elif item is None:
                append(_NONE)
            else:
                writers[kind](item, out, depth - 1)
    except InvalidDataError as error:
        error.steps.append(_index(items, item))
        raise
    except UnicodeEncodeError as error:
        surrogate = f"the lone surrogate {error.object[error.start]!r} at index {error.start}"
        problem = f"contains {surrogate}: replace it, or use bytes"
        raise InvalidDataError(problem, _index(items, item)) from None
    return None


def _index(items: Sequence[Any], item: Any) -> int:
    return next(k for k, other in enumerate(items) if other is item)


def _write_chunks(items: Sequence[Any], out: Output, depth: int) -> None:
    """Write many values, and check the limit after each chunk."""
    out.check_room(len(items))
    for start in range(0, len(items), _CHUNK):
        try:
            write_items(items[start : start + _CHUNK], out, depth)
        except InvalidDataError as error:
            if error.steps and isinstance(step := error.steps[-1], int):
                error.steps[-1] = start + step
            raise
    out.check()


def tag_and_length(tag: int, n: int) -> bytes:
    """Return the start of a value with a length."""
    return bytes((tag, n)) if n < 255 else bytes((tag,)) + length_bytes(n)


def length_bytes(n: int) -> bytes:
    """Encode a length as one byte, or 255 and eight bytes."""
    return bytes((n,)) if n < 255 else _pack_length(255, n)


def _write_long(tag: int, data: bytes, out: Output) -> None:
    out.append(tag_and_length(tag, len(data)))
    out.append(data)
    out.check()


def int_bytes(x: int) -> bytes:
    """Encode an integer without a tag of its own."""
    try:
        return _pack_int(POSITIVE if x > 0 else NEGATIVE, x)
    except struct.error:
        n = (x.bit_length() + 8) // 8
        tag, length = (BIG_POSITIVE, n) if x > 0 else (BIG_NEGATIVE, n ^ (1 << 64) - 1)
        return bytes((tag,)) + length.to_bytes(8, "big") + x.to_bytes(n, "big", signed=True)


def without_tags(items: Sequence[Any]) -> tuple[int, bytes] | None:
    """Return 0 and the content of items that are all floats, or 1 and that of 64-bit integers; otherwise None."""
    n = len(items)
    kind = type(items[0])
    if (kind is not float and kind is not int) or list(map(type, items)).count(kind) != n:
        return None
    try:
        return (0, struct.pack(f"<{n}d", *items)) if kind is float else (1, struct.pack(f"<{n}q", *items))
    except struct.error:
        return None


def _sequence_writer(general: int, special: int) -> Writer:
    empty = bytes((general, 0))

    def write(x: Sequence[Any], out: Output, depth: int) -> None:
        if not x and depth:
            out.append(empty)
            return
        x = x[:]  # a copy of a list, as another thread may modify it
        n = len(x)
        if n > _CHUNK:
            out.check_room(n)
        if n >= MIN_UNTAGGED and depth and (packed := without_tags(x)) is not None:
            out.append(tag_and_length(special + packed[0], n))
            out.append(packed[1])
            out.check()
            return
        out.append(bytes((general, n)) if n < 255 else tag_and_length(general, n))
        if n < MIN_UNTAGGED or type(x[0]) is not bytes or not depth or not _write_equal_lengths(x, out):
            write_items(x, out, depth)

    return write


def _write_equal_lengths(items: Sequence[Any], out: Output) -> bool:
    """Write items that are all bytes of one length, in a third of the time; return whether they are."""
    n = len(items[0])
    if n >= 255 or list(map(type, items)).count(bytes) != len(items) or len(set(map(len, items))) > 1:
        return False
    start = _SHORT_BYTES[n]
    out.append(start + start.join(items))
    out.check()
    return True


def _write_dict(x: dict[Any, Any], out: Output, depth: int) -> None:
    keys = tuple(x)
    n = len(keys)
    if n <= 64 and list(map(type, keys)).count(str) == n:
        block = _keys.get(keys)
        if block is None:
            block = _remember_keys(keys, write_key_block(keys, out, depth))
        out.append(block)
    else:
        check_hashes(keys)
        out.append(write_key_block(keys, out, depth))
    values = tuple(x.values())
    if len(values) != n:
        raise InvalidDataError("was modified by another thread while it was encoded")
    try:
        write_items(values, out, depth)
    except InvalidDataError as error:
        error.name_key(keys)
        raise


def write_key_block(keys: tuple[Any, ...], out: Output, depth: int) -> bytes:
    """Return the bytes of a dict before its values."""
    try:
        block = write_separately(keys, out, depth)
    except InvalidDataError as error:
        if error.steps:
            error.steps.append(".keys()")
        raise
    return tag_and_length(DICT, len(keys)) + length_bytes(len(block)) + block


def _remember_keys(keys: tuple[str, ...], block: bytes) -> bytes:
    if len(block) <= MAX_KEY_BYTES:
        if len(_keys) >= CACHED_KEYS:
            _keys.clear()
        _keys[keys] = block
    return block


def _set_writer(tag: int) -> Writer:
    def write(x: Collection[Any], out: Output, depth: int) -> None:
        if depth == 0:
            raise depth_error()
        check_hashes(x)
        elements: list[bytes] = []
        size = 0
        for element in x:
            leaf = leaf_encoders.get(type(element))
            piece = leaf(element) if leaf is not None else None
            if piece is None:
                try:
                    piece = write_separately((element,), out, depth)
                except InvalidDataError as error:
                    error.steps[-1:] = [f"{{{len(elements)}}}"]
                    raise
            elements.append(piece)
            size += len(piece)
            out.check_room(size)
        elements.sort()
        if len(set(elements)) < len(elements):
            raise InvalidDataError("contains unequal elements with the same bytes, such as NaNs")
        out.append(tag_and_length(tag, len(elements)))
        out.extend(elements)

    return write


def write_separately(items: Sequence[Any], out: Output, depth: int) -> bytes:
    """Return the bytes of items that are added to ``out`` later."""
    start = len(out)
    write_items(items, out, depth)
    piece = b"".join(out[start:])
    if out.limit is not None:
        out.check()
        out.room += len(piece)
    del out[start:]
    out.seen = min(out.seen, start)
    return piece


def _write_leaf(x: Any, out: Output, _depth: int) -> None:
    """Write a value that ``write_items`` encodes itself."""
    try:
        write_items((x,), out, 1)
    except InvalidDataError as error:
        error.steps.clear()
        raise


def _str_leaf(x: str) -> bytes | None:
    try:
        data = x.encode()
    except UnicodeEncodeError:
        return None
    n = len(data)
    return _SHORT_STR[n] + data if n < 255 else None


def _bytes_leaf(x: bytes) -> bytes | None:
    n = len(x)
    return _SHORT_BYTES[n] + x if n < 255 else None


leaf_encoders: dict[type, Callable[[Any], bytes | None]] = {
    type(None): {None: _NONE}.get,
    bool: {False: _FALSE, True: _TRUE}.get,
    int: lambda x: _SMALL_INTS.get(x) or int_bytes(x),
    float: lambda x: _pack_float(FLOAT, x),
    str: _str_leaf,
    bytes: _bytes_leaf,
}
"""By exact type: encodes a value without parts; returns None if it is long or invalid."""


def _write_bytearray(x: bytearray, out: Output, _depth: int) -> None:
    out.check_room(len(x))
    _write_long(BYTEARRAY, bytes(x), out)


_BUILT_IN: dict[type, Writer] = {
    **dict.fromkeys(leaf_encoders, _write_leaf),
    list: _sequence_writer(LIST, FLOAT_LIST),
    tuple: _sequence_writer(TUPLE, FLOAT_TUPLE),
    dict: _write_dict,
    set: _set_writer(SET),
    frozenset: _set_writer(FROZENSET),
    bytearray: _write_bytearray,
}
writers.update(_BUILT_IN)

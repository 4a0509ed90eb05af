"""Encoding of agent data: ``decode(encode(x))`` has the type and value of ``x``, or encoding fails with the path to the
invalid part. Decoding never imports anything named in the bytes, and calls nothing but the ``migrate`` functions of
registered types. ``format`` describes the bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from numbers import Integral
from operator import is_
from typing import Any
from zlib import crc32

from gpu_pregel.errors import ArgumentTypeError, CodecError
from gpu_pregel.host.agents.codec import lazy_types as _lazy_types  # noqa: F401 - sets up lazy loading
from gpu_pregel.host.agents.codec import objects as _objects  # noqa: F401 - adds the reader of registered types
from gpu_pregel.host.agents.codec.decoder import readers, truncation_error
from gpu_pregel.host.agents.codec.encoder import Output, leaf_encoders, type_name, writers
from gpu_pregel.host.agents.codec.format import (
    MAX_DEPTH,
    MAX_SMALL,
    POSITIVE,
    VERSION,
    DataTooLargeError,
    InvalidDataError,
)
from gpu_pregel.host.agents.codec.types import register as register
from gpu_pregel.host.agents.codec.types import registered as registered

_VERSION = bytes((VERSION,))
_pack_id = struct.Struct(">Hq").pack
_START_OF_INT, _MAX_PLAIN = VERSION << 8 | POSITIVE, (1 << 63) - 1


def encode(x: Any, limit: int | None = None, *, name: str = "value") -> bytes:
    """Encode a value as bytes: the same in every process, and equal only for equal values of equal types.

    None, bool, int, float, str, bytes, bytearray, list, tuple, dict, set, frozenset, date, time, datetime, timedelta,
    Decimal, UUID, NumPy arrays and scalars, and registered types can be encoded; subclasses of them cannot. The exact
    bits are preserved: -0.0 and NaNs differ from 0.0 and each other, as do ``Decimal("1.0")`` and ``Decimal("1")``.
    Dicts keep their order. An object that occurs twice is encoded twice.

    Parameters
    ----------
    x
        The value.
    limit : int, optional
        Maximum number of bytes.
    name : str, default "value"
        The start of the path in an error.

    Raises
    ------
    CodecError
        A part of ``x`` cannot be encoded, contains itself or is nested more than 200 levels deep, or the encoded value
        exceeds the limit.

    Examples
    --------
    >>> decode(encode({"name": "Ada", "seen": (1, 2.5, {3})}))
    {'name': 'Ada', 'seen': (1, 2.5, {3})}
    >>> encode({"items": [1, max]})
    Traceback (most recent call last):
    gpu_pregel.errors.CodecError: value['items'][1] is of type builtin_function_or_method, which cannot be encoded: ...
    """
    kind = type(x)
    leaf = leaf_encoders.get(kind)
    if leaf is not None and (piece := leaf(x)) is not None and (limit is None or len(piece) < limit):
        return _VERSION + piece
    out = Output((_VERSION,))
    if limit is not None:
        out.limit = out.room = limit
    try:
        writers[kind](x, out, MAX_DEPTH)
        data = b"".join(out)
        if limit is not None and len(data) > limit:
            out.check()
    except InvalidDataError as error:
        raise _error(error, name) from None
    except RecursionError:
        raise _error(_stack_error(), name) from None
    return data


def decode(data: bytes | bytearray | memoryview, *, name: str = "value") -> Any:
    """Decode the bytes that ``encode`` returned.

    Parameters
    ----------
    data : bytes
    name : str, default "value"
        The start of the path in an error.

    Raises
    ------
    CodecError
        The bytes are damaged, continue after the value, or contain a type or fields not registered in this process.

    Examples
    --------
    >>> decode(encode([1, 2]) + b"?")
    Traceback (most recent call last):
    gpu_pregel.errors.CodecError: value is followed by 1 extra byte
    """
    if type(data) is not bytes:
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise ArgumentTypeError(f"decode takes bytes, not {data!r:.80}")
        data = bytes(data)
    if not data.startswith(_VERSION):
        raise CodecError(f"does not begin with {VERSION}, the format version", name)
    try:
        x, end = readers[data[1]](data, 2, MAX_DEPTH)
    except InvalidDataError as error:
        raise _error(error, name) from None
    except (IndexError, struct.error):
        raise _error(truncation_error(), name) from None
    except RecursionError:
        raise _error(_stack_error(), name) from None
    if end != len(data):
        more = len(data) - end
        raise CodecError(f"is followed by {more:,} extra byte{'s' if more > 1 else ''}", name)
    return x


def _error(error: InvalidDataError, name: str) -> CodecError:
    return CodecError(error.problem, name if isinstance(error, DataTooLargeError) else error.path(name))


def _stack_error() -> InvalidDataError:
    return InvalidDataError("is nested too deeply for the stack of this program: call sys.setrecursionlimit")


# Ids

_MAX_ID_BITS = 8192
"""Maximum bits of an integer in an id; Python refuses to convert larger ones to decimal digits in error messages."""
_SHORT = 256
"""Longer encodings of an integer or a short string are those of integers that must be checked."""


def id_key(x: Any, *, name: str = "id") -> bytes:
    """Encode an id: a str, int, bytes, or tuple of ids; integers of NumPy are taken as int.

    The bytes sort ids by type (int, str, bytes, tuple), and integers by value.

    Raises
    ------
    CodecError
        ``x`` is not an id.

    Examples
    --------
    >>> sorted(["b", 10, -3, (1, "a"), 9, b"a"], key=id_key)
    [-3, 9, 10, 'b', b'a', (1, 'a')]
    >>> id_key(True)
    Traceback (most recent call last):
    gpu_pregel.errors.CodecError: id is of type bool: ids are str, int, bytes or tuples of them, so convert it
    """
    kind = type(x)
    if kind is int and MAX_SMALL < x <= _MAX_PLAIN:
        return _pack_id(_START_OF_INT, x)
    if (kind is int or kind is str) and (piece := leaf_encoders[kind](x)) is not None and len(piece) <= _SHORT:
        return _VERSION + piece
    if kind is tuple:
        key = encode(x, name=name)
        plain = _plain_id(x, name)
        return key if plain is x else encode(plain, name=name)
    if kind is str or kind is bytes:
        return encode(x, name=name)
    return encode(_plain_id(x, name), name=name)


def _plain_id(x: Any, name: str) -> Any:
    """Return an id whose parts are str, int or bytes: ``x`` itself, or a copy with integers of NumPy as int."""
    kind = type(x)
    if kind is str or kind is bytes:
        return x
    if kind is int:
        if x.bit_length() > _MAX_ID_BITS:
            bits = f"{x.bit_length():,} bits: in ids they have at most {_MAX_ID_BITS:,}"
            raise CodecError(f"is an integer of {bits}, so use bytes", name)
        return x
    if kind is tuple:
        parts = tuple([_plain_id(part, f"{name}[{k}]") for k, part in enumerate(x)])
        return x if all(map(is_, parts, x)) else parts
    if kind.__module__ == "numpy" and issubclass(kind, Integral) and hasattr(kind, "__index__"):
        return int(x)
    remedy = "so pass one" if x is None else "so convert it"
    raise CodecError(f"is of type {type_name(kind)}: ids are str, int, bytes or tuples of them, {remedy}", name)


def place_of_key(key: bytes, workers: int) -> int:
    """Return the worker, counted from 0, that owns the vertex with an encoded id; the same in every process.

    Examples
    --------
    >>> [place_of_key(id_key(vertex), 3) for vertex in ("a", "b", "c", 1, 2)]
    [2, 2, 0, 2, 1]
    """
    return places_of_keys((key,), workers)[0]


def places_of_keys(keys: Iterable[bytes], workers: int) -> list[int]:
    """Return the place of each of many ids."""
    return [(crc32(key) * 0x9E3779B1 & 0xFFFFFFFF) * workers >> 32 for key in keys]

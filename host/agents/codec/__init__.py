"""Agent data as bytes: what is encoded comes back with the same type and value, or is refused with the path to the part
at fault. Decoding imports nothing and calls nothing that the bytes name. ``codec_format`` says what they look like.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

from gpu_pregel.errors import ArgumentTypeError, CodecError
from gpu_pregel.host.agents.codec.decoder import cut_short, readers
from gpu_pregel.host.agents.codec.encoder import Out, leaves, name_of, writers
from gpu_pregel.host.agents.codec.format import MAX_DEPTH, VERSION, Refused, TooLarge
from gpu_pregel.host.agents.codec.types import register as register
from gpu_pregel.host.agents.codec.types import registered as registered

_VERSION = bytes((VERSION,))


def encode(x: Any, limit: int | None = None, *, name: str = "value") -> bytes:
    """The bytes of a value: the same in every process, and equal only for equal values of equal types.

    None, bool, int, float, str, bytes, bytearray, list, tuple, dict, set, frozenset, date, time, datetime, timedelta,
    Decimal, UUID, NumPy arrays and scalars, and registered types are data; subclasses of them are not. Bits are kept:
    -0.0 and NaNs differ from 0.0 and each other, as do ``Decimal("1.0")`` and ``Decimal("1")``. Dicts keep their order.
    An object that occurs twice is written twice.

    Parameters
    ----------
    x
        The value.
    limit : int, optional
        Refuse what takes more bytes.
    name : str, default "value"
        How a path in an error begins.

    Raises
    ------
    CodecError
        Something in ``x`` is no data, holds itself or is nested more than 200 deep, or the whole is too large.

    Examples
    --------
    >>> decode(encode({"name": "Ada", "seen": (1, 2.5, {3})}))
    {'name': 'Ada', 'seen': (1, 2.5, {3})}
    >>> encode({"items": [1, max]})
    Traceback (most recent call last):
    gpu_pregel.errors.CodecError: value['items'][1] is of type builtin_function_or_method, which is no data: ...
    """
    kind = type(x)
    leaf = leaves.get(kind)
    if leaf is not None and (piece := leaf(x)) is not None and (limit is None or len(piece) < limit):
        return _VERSION + piece
    out = Out((_VERSION,))
    if limit is not None:
        out.limit = out.room = limit
    try:
        writers[kind](x, out, MAX_DEPTH)
        data = b"".join(out)
        if limit is not None and len(data) > limit:
            out.check()
    except Refused as refused:
        raise _error(refused, name) from None
    except RecursionError:
        raise _error(_no_stack(), name) from None
    return data


def decode(data: bytes | bytearray | memoryview, *, name: str = "value") -> Any:
    """The value that ``encode`` made bytes of.

    Parameters
    ----------
    data : bytes
    name : str, default "value"
        How a path in an error begins.

    Raises
    ------
    CodecError
        The bytes are damaged, go on after the value, or hold a type or fields that are not registered here.

    Examples
    --------
    >>> decode(encode([1, 2]) + b"?")
    Traceback (most recent call last):
    gpu_pregel.errors.CodecError: value is followed by 1 byte that is not part of it
    """
    if type(data) is not bytes:
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise ArgumentTypeError(f"decode takes bytes, not {data!r:.80}")
        data = bytes(data)
    if not data.startswith(_VERSION):
        raise CodecError(f"does not begin with {VERSION}, the version of the format", name)
    try:
        x, end = readers[data[1]](data, 2, MAX_DEPTH)
    except Refused as refused:
        raise _error(refused, name) from None
    except (IndexError, struct.error):
        raise _error(cut_short(), name) from None
    except RecursionError:
        raise _error(_no_stack(), name) from None
    if end != len(data):
        more = len(data) - end
        raise CodecError(f"is followed by {more:,} byte{'s that are' if more > 1 else ' that is'} not part of it", name)
    return x


def _error(refused: Refused, name: str) -> CodecError:
    return CodecError(refused.problem, name if isinstance(refused, TooLarge) else refused.path(name))


def _no_stack() -> Refused:
    return Refused("is nested deeper than this program's stack has room for: raise sys.setrecursionlimit")


# Ids


def check_id(x: Any, *, name: str = "id") -> None:
    """Refuse what cannot be the id of a vertex: ids are str, int, bytes, or tuples of ids.

    Raises
    ------
    CodecError

    Examples
    --------
    >>> check_id(("room", 3))
    >>> check_id(True)
    Traceback (most recent call last):
    gpu_pregel.errors.CodecError: id is of type bool: ids are str, int, bytes or tuples of them
    """
    id_key(x, name=name)


def id_key(x: Any, *, name: str = "id") -> bytes:
    """The bytes of an id. Sorted by them, ids are sorted by type (int, str, bytes, tuple), and integers by value.

    Raises
    ------
    CodecError
        It is no id.

    Examples
    --------
    >>> sorted(["b", 10, -3, (1, "a"), 9, b"a"], key=id_key)
    [-3, 9, 10, 'b', b'a', (1, 'a')]
    """
    kind = type(x)
    if kind is tuple:
        key = encode(x, name=name)
        _check_parts(x, name)
        return key
    if kind is str or kind is int or kind is bytes:
        return encode(x, name=name)
    raise CodecError(f"is of type {name_of(kind)}: ids are str, int, bytes or tuples of them", name)


def _check_parts(x: tuple[Any, ...], name: str) -> None:
    for k, part in enumerate(x):
        kind = type(part)
        if kind is tuple:
            _check_parts(part, f"{name}[{k}]")
        elif kind is not str and kind is not int and kind is not bytes:
            raise CodecError(f"is of type {name_of(kind)}: ids are str, int, bytes or tuples of them", f"{name}[{k}]")


def place(x: Any, workers: int) -> int:
    """The worker, from 0 on, that owns the vertex with an id: the same in every process.

    Examples
    --------
    >>> [place(vertex, 3) for vertex in ("a", "b", "c", 1, 2)]
    [2, 2, 0, 2, 1]
    """
    return place_of_key(id_key(x), workers)


def place_of_key(key: bytes, workers: int) -> int:
    """``place`` of an id that is encoded already."""
    return (zlib.crc32(key) * 0x9E3779B1 & 0xFFFFFFFF) * workers >> 32

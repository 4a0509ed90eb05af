"""NumPy arrays and scalars as data; loaded only when there are some.

An array is the description of its dtype, its shape and its bytes in C order; a scalar lacks the shape. A dtype is
described by its ``str``, a structured one by its size, alignment and fields, a subarray by its dtype and shape. Bytes
between fields are written as zeros.
"""

from __future__ import annotations

import math
import re
import sys
from typing import Any

import numpy as np

from gpu_pregel.host.agents.codec.decoder import (
    cut_short,
    not_canonical,
    read_bytes,
    read_items,
    readers,
)
from gpu_pregel.host.agents.codec.encoder import Out, length_bytes, write_items, writers
from gpu_pregel.host.agents.codec.format import ARRAY, SCALAR, Refused

Array = np.ndarray[Any, Any]
DType = np.dtype[Any]

_SIMPLE = re.compile(r"[<>|]([biufcSUV][0-9]{1,10}|[mM]8(\[([1-9][0-9]{0,8})?[a-zA-Z]{1,2}\])?)")
"""NumPy divides by the number of units in a dtype of dates: 0, or what overflows to it, ends the process."""
_NESTED = 64
"""So deep may the description of a dtype be."""
_LARGEST = 2**31 - 1
"""No dtype takes more bytes."""
_KEPT = 256
_NAMED: dict[str, type] = {"str": np.str_, "bytes": np.bytes_, "longlong": np.longlong, "ulonglong": np.ulonglong}
"""Scalar types that their dtype does not tell: text loses zeros at its end, ``longlong`` has the dtype of ``int64``."""

_written: dict[tuple[str, type], bytes] = {}
_read: dict[bytes, DType] = {}
"""The latest dtypes as they are written, and back."""


def _describe(dtype: DType) -> Any:
    """A dtype as data."""
    if dtype.metadata is not None:
        raise Refused(f"is of a dtype with metadata, {dtype}, which would be lost: use one without")
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return [_describe(base), shape]
    if dtype.fields is not None and dtype.names is not None and dtype.type is np.void:
        fields = []
        for name in dtype.names:
            field, offset, *title = dtype.fields[name]
            if title and type(title[0]) is not str:
                raise Refused(f"is of dtype {dtype}, whose field {name!r} has a title that is no text: leave it out")
            if field.itemsize == 0:
                raise Refused(f"is of dtype {dtype}, whose field {name!r} takes no bytes: leave it out")
            fields.append((name, title[0] if title else None, offset, _describe(field)))
        return dtype.itemsize, dtype.isalignedstruct, fields
    if dtype.kind == "O":
        raise Refused("is of dtype object: use a list, or an array of another dtype")
    if dtype.char in "gG":
        way_out = "complex128" if dtype.char == "G" else "float64"
        raise Refused(f"is of dtype {dtype}, which differs between machines: use {way_out}")
    if not _SIMPLE.fullmatch(dtype.str) or np.dtype(dtype.str) != dtype or dtype.type.__module__ != "numpy":
        raise Refused(f"is of dtype {dtype}, which is no data: use a list, or an array of another dtype")
    return dtype.str


def _as_dtype(x: Any) -> DType:
    """The dtype of a description. NumPy does not check all that it is given, and some of it ends the process."""
    if type(x) is str and _SIMPLE.fullmatch(x):
        return np.dtype(x)
    if type(x) is list:
        base, shape = _as_dtype(x[0]), x[1]
        if type(shape) is not tuple or not all(type(n) is int and 0 < n <= _LARGEST for n in shape):
            raise ValueError
        if base.itemsize * math.prod(shape) > _LARGEST:
            raise ValueError
        return np.dtype((base, shape))
    itemsize, aligned, fields = x
    if type(itemsize) is not int or not 0 <= itemsize <= _LARGEST or type(aligned) is not bool:
        raise ValueError
    names, titles, offsets, formats = zip(*fields, strict=True) if fields else ((), (), (), ())
    dtypes = [_as_dtype(one) for one in formats]
    for name, title, offset, dtype in zip(names, titles, offsets, dtypes, strict=True):
        if type(name) is not str or (title is not None and type(title) is not str):
            raise ValueError
        if type(offset) is not int or not 0 <= offset <= itemsize - dtype.itemsize:
            raise ValueError
    spec: Any = {"names": names, "offsets": offsets, "formats": dtypes, "itemsize": itemsize, "aligned": aligned}
    if any(title is not None for title in titles):
        spec["titles"] = titles
    made: DType = np.dtype(spec)
    return made


def _pack(description: Any) -> bytes:
    out = Out()
    try:
        write_items((description,), out, _NESTED)
    except Refused as refused:
        raise Refused(f"is of a dtype that {refused.problem}") from None
    packed = b"".join(out)
    return length_bytes(len(packed)) + packed


def _pack_dtype(dtype: DType) -> bytes:
    key = dtype.str, dtype.type
    packed = _written.get(key) if dtype.kind != "V" and dtype.metadata is None else None
    if packed is None:
        packed = _pack(_describe(dtype))
        if dtype.kind != "V":
            if len(_written) >= _KEPT:
                _written.clear()
            _written[key] = packed
    return packed


def _dtype_of(packed: bytes) -> DType:
    dtype = _read.get(packed)
    if dtype is None:
        dtype = _parse_dtype(packed)
        if len(_read) >= _KEPT:
            _read.clear()
        if len(packed) <= _KEPT:
            _read[packed] = dtype
    return dtype


def _parse_dtype(packed: bytes) -> DType:
    try:
        (description,), _ = read_items(packed, 0, 1, _NESTED)
        dtype: DType = _as_dtype(description)
        again = _describe(dtype)
    except Refused as refused:
        raise Refused(f"is of a dtype that cannot be read: it {refused.problem}") from None
    except Exception:  # NumPy raises many kinds for what is no dtype.
        raise Refused("is of an unknown dtype") from None
    if dtype.subdtype is not None or _pack(again) != length_bytes(len(packed)) + packed:
        raise not_canonical()
    return dtype


def _content(array: Array) -> Any:
    """The bytes of an array in C order."""
    if array.nbytes == 0:
        return b""
    _check_text(array)
    if array.dtype.names is not None:
        clean = np.zeros(array.shape, array.dtype)
        _copy_fields(clean, array)
        array = clean
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _check_text(array: Array) -> None:
    """Refuse numbers that are no characters: NumPy fails when it looks at them."""
    for name in array.dtype.names or ():
        _check_text(array[name])
    if array.dtype.kind == "U" and array.nbytes:
        codes = np.ascontiguousarray(array).reshape(-1).view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
        if codes.max() > sys.maxunicode:
            raise Refused(f"is an array of text with the number {codes.max():#x}, which is no character")


def _copy_fields(target: Array, source: Array) -> None:
    if target.dtype.names is None:
        target[...] = source
    else:
        for name in target.dtype.names:
            _copy_fields(target[name], source[name])


def _write_array(x: Array, out: Out, _depth: int) -> None:
    out.append(_TAG_ARRAY + _pack_dtype(x.dtype))
    write_items((x.shape,), out, 2)
    out.want(x.nbytes)
    out.append(_content(x))
    out.check()


def read_array(data: bytes, i: int, _depth: int) -> tuple[Array, int]:
    """The reader of arrays; they own their memory and can be written to."""
    packed, i = read_bytes(data, i)
    dtype = _dtype_of(packed)
    try:
        (shape,), i = read_items(data, i, 1, 2)
    except Refused as refused:
        refused.steps[:] = [".shape"]
        raise
    if type(shape) is not tuple or any(type(n) is not int or n < 0 for n in shape):
        raise Refused("is an array of no shape")
    return _fill(data, i, shape, dtype)


def _fill(data: bytes, i: int, shape: tuple[int, ...], dtype: DType) -> tuple[Array, int]:
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes > len(data) - i:
        raise cut_short()
    try:
        array: Array = np.ndarray(shape, dtype)
    except (ValueError, MemoryError) as error:
        raise Refused(f"is an array that cannot be: {error}") from None
    if nbytes:
        array.reshape(-1).view(np.uint8)[...] = np.frombuffer(data, np.uint8, nbytes, i)
        _check_text(array)
        if dtype.names is not None and bytes(_content(array)) != data[i : i + nbytes]:
            raise not_canonical()
    return array, i + nbytes


def _write_scalar(x: Any, out: Out, _depth: int) -> None:
    array = np.asarray(x)
    out.append(_TAG_SCALAR + _pack_dtype(array.dtype))
    out.append(bytes(_content(array)))


def _write_number(x: Any, out: Out, _depth: int) -> None:
    out.append(_heads[type(x)] + x.tobytes())


def _write_text(x: Any, out: Out, _depth: int) -> None:
    out.append(_heads[type(x)])
    write_items((x[:],), out, 1)


def read_scalar(data: bytes, i: int, _depth: int) -> tuple[Any, int]:
    """The reader of scalars."""
    start = i - 1
    packed, i = read_bytes(data, i)
    cls = _types.get(data[start:i])
    if cls is np.str_ or cls is np.bytes_:
        (text,), i = read_items(data, i, 1, 1)
        if type(text) is not (str if cls is np.str_ else bytes):
            raise not_canonical()
        return cls(text), i
    dtype = _dtype_of(packed) if cls is None else _number_dtypes[cls]
    if cls is None and dtype.kind not in "mMV":
        raise not_canonical()
    array, end = _fill(data, i, (), dtype)
    x = array[()]
    if x.dtype != dtype or (cls is np.bool_ and data[i] > 1):
        raise not_canonical()
    return x, end


_TAG_ARRAY, _TAG_SCALAR = bytes((ARRAY,)), bytes((SCALAR,))
_NUMBERS = [cls for cls in set(np.sctypeDict.values()) if np.dtype(cls).char in "?bBhHiIlLqQefdFD"]
_number_dtypes: dict[type, DType] = {cls: np.dtype(cls) for cls in _NUMBERS}
_heads: dict[type, bytes] = {
    **{cls: _TAG_SCALAR + _pack(dtype.str) for cls, dtype in _number_dtypes.items()},
    **{cls: _TAG_SCALAR + _pack(name) for name, cls in _NAMED.items()},
}
"""What scalars of a type begin with."""
_types = {head: cls for cls, head in _heads.items()}
writers.update(dict.fromkeys(np.sctypeDict.values(), _write_scalar))
writers.update(dict.fromkeys(_NUMBERS, _write_number))
writers[np.str_] = writers[np.bytes_] = _write_text
writers[np.ndarray] = _write_array
readers[ARRAY], readers[SCALAR] = read_array, read_scalar

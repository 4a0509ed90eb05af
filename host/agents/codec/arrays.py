"""Encoding of NumPy arrays and scalars; loaded on first use.

An array is the description of its dtype, its shape and its bytes in C order; a scalar has no shape. Padding bytes
between fields are written as zeros.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from gpu_pregel.host.agents.codec.decoder import (
    canonical_error,
    read_bytes,
    read_items,
    readers,
    truncation_error,
)
from gpu_pregel.host.agents.codec.dtypes import DType, decode_dtype, encode_description, encode_dtype
from gpu_pregel.host.agents.codec.encoder import Output, write_items, writers
from gpu_pregel.host.agents.codec.format import ARRAY, SCALAR, InvalidDataError

Array = np.ndarray[Any, Any]

_NAMED: dict[str, type] = {"str": np.str_, "bytes": np.bytes_, "longlong": np.longlong, "ulonglong": np.ulonglong}
"""Scalar types not determined by a dtype: strings lose trailing zeros, ``longlong`` has the dtype of ``int64``."""


def _content(array: Array) -> Any:
    """Return the bytes of an array in C order."""
    if array.nbytes == 0:
        return b""
    _check_characters(array)
    if array.dtype.names is not None:
        clean = np.zeros(array.shape, array.dtype)
        _copy_fields(clean, array)
        array = clean
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _check_characters(array: Array) -> None:
    """Raise for strings with invalid character codes, on which NumPy fails later."""
    for name in array.dtype.names or ():
        _check_characters(array[name])
    if array.dtype.kind == "U" and array.nbytes:
        codes = np.ascontiguousarray(array).reshape(-1).view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
        if codes.max() > sys.maxunicode:
            raise InvalidDataError(f"is an array of strings with the invalid character code {codes.max():#x}")


def _copy_fields(target: Array, source: Array) -> None:
    if target.dtype.names is None:
        target[...] = source
    else:
        for name in target.dtype.names:
            _copy_fields(target[name], source[name])


def _write_array(x: Array, out: Output, _depth: int) -> None:
    out.append(_TAG_ARRAY + encode_dtype(x.dtype))
    write_items((x.shape,), out, 2)
    out.check_room(x.nbytes)
    out.append(_content(x))
    out.check()


def read_array(data: bytes, i: int, _depth: int) -> tuple[Array, int]:
    """Read an array, which owns its memory and is writable."""
    packed, i = read_bytes(data, i)
    dtype = decode_dtype(packed)
    try:
        (shape,), i = read_items(data, i, 1, 2)
    except InvalidDataError as error:
        error.steps[:] = [".shape"]
        raise
    if type(shape) is not tuple or any(type(n) is not int or n < 0 for n in shape):
        raise InvalidDataError("is an array with an invalid shape")
    return _read_content(data, i, shape, dtype)


def _read_content(data: bytes, i: int, shape: tuple[int, ...], dtype: DType) -> tuple[Array, int]:
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes > len(data) - i:
        raise truncation_error()
    try:
        array: Array = np.ndarray(shape, dtype)
    except (ValueError, MemoryError) as error:
        raise InvalidDataError(f"is an array that cannot be created: {error}") from None
    if nbytes:
        array.reshape(-1).view(np.uint8)[...] = np.frombuffer(data, np.uint8, nbytes, i)
        _check_characters(array)
        if dtype.names is not None and bytes(_content(array)) != data[i : i + nbytes]:
            raise canonical_error()
    return array, i + nbytes


def _write_scalar(x: Any, out: Output, _depth: int) -> None:
    array = np.asarray(x)
    out.append(_TAG_SCALAR + encode_dtype(array.dtype))
    out.append(bytes(_content(array)))


def _write_number(x: Any, out: Output, _depth: int) -> None:
    out.append(_heads[type(x)] + x.tobytes())


def _write_string(x: Any, out: Output, _depth: int) -> None:
    out.append(_heads[type(x)])
    write_items((x[:],), out, 1)


def read_scalar(data: bytes, i: int, _depth: int) -> tuple[Any, int]:
    """Read a scalar."""
    start = i - 1
    packed, i = read_bytes(data, i)
    cls = _types.get(data[start:i])
    if cls is np.str_ or cls is np.bytes_:
        (text,), i = read_items(data, i, 1, 1)
        if type(text) is not (str if cls is np.str_ else bytes):
            raise canonical_error()
        return cls(text), i
    dtype = decode_dtype(packed) if cls is None else _number_dtypes[cls]
    if cls is None and dtype.kind not in "mMV":
        raise canonical_error()
    array, end = _read_content(data, i, (), dtype)
    x = array[()]
    if x.dtype != dtype or (cls is np.bool_ and data[i] > 1):
        raise canonical_error()
    return x, end


_TAG_ARRAY, _TAG_SCALAR = bytes((ARRAY,)), bytes((SCALAR,))
_NUMBERS = [cls for cls in set(np.sctypeDict.values()) if np.dtype(cls).char in "?bBhHiIlLqQefdFD"]
_number_dtypes: dict[type, DType] = {cls: np.dtype(cls) for cls in _NUMBERS}
_heads: dict[type, bytes] = {
    **{cls: _TAG_SCALAR + encode_description(dtype.str) for cls, dtype in _number_dtypes.items()},
    **{cls: _TAG_SCALAR + encode_description(name) for name, cls in _NAMED.items()},
}
"""The start of the encoding of scalars by type."""
_types = {head: cls for cls, head in _heads.items()}
writers.update(dict.fromkeys(np.sctypeDict.values(), _write_scalar))
writers.update(dict.fromkeys(_NUMBERS, _write_number))
writers[np.str_] = writers[np.bytes_] = _write_string
writers[np.ndarray] = _write_array
readers[ARRAY], readers[SCALAR] = read_array, read_scalar

"""Encoding of NumPy dtypes.

The description of a dtype is its ``str``; of a structured one its size, alignment and fields; of a subarray its dtype
and shape.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from gpu_pregel.host.agents.codec.decoder import canonical_error, read_items
from gpu_pregel.host.agents.codec.encoder import Output, length_bytes, write_items
from gpu_pregel.host.agents.codec.format import InvalidDataError

DType = np.dtype[Any]

_SIMPLE = re.compile(r"[<>|]([biufcSUV][0-9]{1,10}|[mM]8(\[([1-9][0-9]{0,8})?[a-zA-Z]{1,2}\])?)")
"""NumPy divides by the number of units in a date dtype; 0, or a number that overflows to 0, crashes the process."""
_MAX_DEPTH = 64
"""Maximum nesting depth of a description."""
_MAX_BYTES = 2**31 - 1
"""Maximum item size of a dtype in NumPy."""
_CACHED = 256

_encoded: dict[tuple[str, type], bytes] = {}
_decoded: dict[bytes, DType] = {}
"""Caches of encoded and decoded dtypes."""


def _describe(dtype: DType) -> Any:
    """Return the description of a dtype."""
    if dtype.metadata is not None:
        raise InvalidDataError(f"has dtype {dtype} with metadata, which would be lost: remove the metadata")
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return [_describe(base), shape]
    if dtype.fields is not None and dtype.names is not None and dtype.type is np.void:
        return dtype.itemsize, dtype.isalignedstruct, [_describe_field(dtype, name) for name in dtype.names]
    if dtype.kind == "O":
        raise InvalidDataError("has dtype object: use a list, or an array of another dtype")
    if dtype.char in "gG":
        portable = "complex128" if dtype.char == "G" else "float64"
        raise InvalidDataError(f"has dtype {dtype}, which differs between machines: use {portable}")
    if not _SIMPLE.fullmatch(dtype.str) or np.dtype(dtype.str) != dtype or dtype.type.__module__ != "numpy":
        raise InvalidDataError(f"has dtype {dtype}, which cannot be encoded: use a list, or an array of another dtype")
    return dtype.str


def _describe_field(dtype: DType, name: str) -> tuple[str, str | None, int, Any]:
    """Return the name, title, offset and description of a field."""
    assert dtype.fields is not None
    field, offset, *title = dtype.fields[name]
    if title and type(title[0]) is not str:
        raise InvalidDataError(f"has dtype {dtype}, whose field {name!r} has a title that is not a string: remove it")
    if field.itemsize == 0:
        raise InvalidDataError(f"has dtype {dtype}, whose field {name!r} has no bytes: remove it")
    return name, title[0] if title else None, offset, _describe(field)


def _build(description: Any) -> DType:
    """Return the dtype of a description; check what NumPy does not, as invalid values may crash the process."""
    if type(description) is str and _SIMPLE.fullmatch(description):
        return np.dtype(description)
    if type(description) is list:
        return _build_subarray(*description[:2])
    return _build_structure(*description)


def _build_subarray(base: Any, shape: Any) -> DType:
    item = _build(base)
    if type(shape) is not tuple or not all(_is_size(n) and n > 0 for n in shape):
        raise ValueError
    if item.itemsize * math.prod(shape) > _MAX_BYTES:
        raise ValueError
    return np.dtype((item, shape))


def _build_structure(itemsize: Any, aligned: Any, fields: Any) -> DType:
    if not _is_size(itemsize) or type(aligned) is not bool:
        raise ValueError
    names, titles, offsets, formats = zip(*fields, strict=True) if fields else ((), (), (), ())
    dtypes = [_build(one) for one in formats]
    for name, title, offset, field in zip(names, titles, offsets, dtypes, strict=True):
        if type(name) is not str or (title is not None and type(title) is not str):
            raise ValueError
        if not _is_size(offset) or offset > itemsize - field.itemsize:
            raise ValueError
    spec: Any = {"names": names, "offsets": offsets, "formats": dtypes, "itemsize": itemsize, "aligned": aligned}
    if any(title is not None for title in titles):
        spec["titles"] = titles
    dtype: DType = np.dtype(spec)
    return dtype


def _is_size(n: Any) -> bool:
    return type(n) is int and 0 <= n <= _MAX_BYTES


def encode_description(description: Any) -> bytes:
    """Encode a description, with its length."""
    out = Output()
    try:
        write_items((description,), out, _MAX_DEPTH)
    except InvalidDataError as error:
        raise InvalidDataError(f"has a dtype that {error.problem}") from None
    packed = b"".join(out)
    return length_bytes(len(packed)) + packed


def encode_dtype(dtype: DType) -> bytes:
    """Encode a dtype, with its length."""
    key = dtype.str, dtype.type
    packed = _encoded.get(key) if dtype.kind != "V" and dtype.metadata is None else None
    if packed is None:
        packed = encode_description(_describe(dtype))
        if dtype.kind != "V":
            if len(_encoded) >= _CACHED:
                _encoded.clear()
            _encoded[key] = packed
    return packed


def decode_dtype(packed: bytes) -> DType:
    """Decode a dtype, without its length."""
    dtype = _decoded.get(packed)
    if dtype is None:
        dtype = _parse(packed)
        if len(_decoded) >= _CACHED:
            _decoded.clear()
        if len(packed) <= _CACHED:
            _decoded[packed] = dtype
    return dtype


def _parse(packed: bytes) -> DType:
    try:
        (description,), _ = read_items(packed, 0, 1, _MAX_DEPTH)
        dtype: DType = _build(description)
        again = _describe(dtype)
    except InvalidDataError as error:
        raise InvalidDataError(f"has an invalid dtype, which {error.problem}") from None
    except Exception:  # NumPy raises many types of errors for invalid dtypes.
        raise InvalidDataError("has an unknown dtype") from None
    if dtype.subdtype is not None or encode_description(again) != length_bytes(len(packed)) + packed:
        raise canonical_error()
    return dtype

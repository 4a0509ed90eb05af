"""Columns of vertex ids as users give them, and numbering of ids of any hashable type by first appearance."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import chain
from typing import Any

import numpy as np

from gpu_pregel.errors import ArgumentTypeError, GraphError
from gpu_pregel.host.arguments import require
from gpu_pregel.host.graphs.edge_arrays import as_vector
from gpu_pregel.host.graphs.string_table import StringTable

Array = np.ndarray[Any, Any]
Columns = dict[str, Any]
"""Ids by the name of the argument: ``vertices``, ``src`` and ``dst``, as returned by :func:`as_ids`."""
DISTINCT = {str, int, bytes}
"""Types of which no value equals one of another of them."""
_STRING_DTYPES = {"str", "string", "string[pyarrow]", "String"}


def as_ids(name: str, values: Any) -> Any:
    r"""Return a column of ids as an array of an integer dtype, an array of objects, or a column of Arrow with strings.

    Only columns without anything but integers of at most 64 bits get an integer dtype. NumPy would convert the integer
    of the list ``[1, "1"]`` to a string, and strip the NUL from the string ``"b\0"``.
    """
    strings = _arrow_strings(values)
    if strings is not None:
        return strings
    if (times := _arrow_zoned(values)) is not None:
        return np.fromiter(times, object, len(times))
    if _is_sequence_of_objects(values):
        return _as_integers(np.fromiter(values, object, len(values)))
    array = as_vector(name, values)
    if array.dtype.kind in "iu":
        return array
    if len(array) == 0:
        return array.astype(np.int64)
    if array.dtype.kind == "O":
        return _as_integers(array)
    # Python has no equal of a time in nanoseconds, so that tolist would return integers.
    return np.fromiter(array if array.dtype.kind in "mM" else array.tolist(), object, len(array))


def _arrow_strings(values: Any) -> Any:
    """Return a chunked array of Arrow with strings; None if there are none."""
    is_arrow = type(values).__module__.partition(".")[0] == "pyarrow"
    # Columns of strings of pandas and Polars.
    is_series = hasattr(values, "__arrow_c_stream__") and str(getattr(values, "dtype", "")) in _STRING_DTYPES
    if not is_arrow and not is_series:
        return None
    import pyarrow as pa

    strings = values if is_arrow else pa.chunked_array(values)
    if pa.types.is_dictionary(getattr(strings, "type", None)):
        strings = strings.cast(strings.type.value_type)
    kind = getattr(strings, "type", None)
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return None
    return strings if isinstance(strings, pa.ChunkedArray) else pa.chunked_array([strings])


def _arrow_zoned(values: Any) -> list[Any] | None:
    """Return an Arrow array of times with a time zone, which NumPy has not, as Python objects; None for any other."""
    if type(values).__module__.partition(".")[0] != "pyarrow":
        return None
    import pyarrow as pa

    kind: Any = getattr(values, "type", None)
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if not pa.types.is_timestamp(kind) or kind.tz is None:
        return None
    if kind.unit == "ns":
        require("pandas", "Nanoseconds with a time zone")
    times: list[Any] = values.to_pylist()
    return times


def to_list(column: Any) -> list[Any]:
    """Return a column as a list of Python objects."""
    values: list[Any] = column.tolist() if isinstance(column, np.ndarray) else column.to_pylist()
    return values


def as_strings(objects: Array) -> Any:
    """Return an array of objects as a column of Arrow; None if one is no string, or one that Arrow cannot hold."""
    import pyarrow as pa

    if objects.dtype.kind != "O" or set(map(type, objects)) != {str}:
        return None
    try:
        return pa.chunked_array([pa.array(objects, pa.large_string())])
    except UnicodeEncodeError:  # half of a surrogate pair
        return None


def _is_sequence_of_objects(values: object) -> bool:
    """Return whether ``values`` is a list, a range or the like, and has no buffer that NumPy can use."""
    if not isinstance(values, Sequence) or isinstance(values, str):
        return False
    try:
        memoryview(values)  # type: ignore[arg-type]
    except TypeError:
        return True
    return False


def _as_integers(objects: Array) -> Array:
    """Return an array of objects as int64 or uint64 if all of them are integers that fit."""
    kinds = set(map(type, objects))
    if all(kind is int or (issubclass(kind, np.integer) and not issubclass(kind, np.timedelta64)) for kind in kinds):
        for dtype in (np.int64, np.uint64) if not len(objects) or min(objects) >= 0 else (np.int64,):
            with suppress(OverflowError):
                return np.fromiter(map(int, objects), dtype, len(objects))
    return objects


def number_by_appearance(columns: Columns, threads: int) -> tuple[dict[str, Array], Array]:
    """Number ids of any hashable type: first those of ``vertices``, then each edge's source before its destination.

    Returns the numbers of each column and the ids, as an array of objects. Ids that are all integers are numbered in
    ascending order.
    """
    encoded = _number_strings(columns, threads)
    if encoded is not None:
        return encoded
    objects = {name: to_list(column) for name, column in columns.items()}
    vertices = objects.get("vertices", [])
    numbers, ids = _number_objects(
        [*vertices, *chain.from_iterable(zip(objects["src"], objects["dst"], strict=True))], len(vertices)
    )
    if all(type(value) is int for value in ids):
        order = sorted(range(len(ids)), key=ids.__getitem__)
        ids, numbers = [ids[number] for number in order], _ranks(order)[numbers]
    ends = numbers[len(vertices) :]
    parts = {"vertices": numbers[: len(vertices)], "src": ends[0::2].copy(), "dst": ends[1::2].copy()}
    return parts, np.fromiter(ids, object, len(ids))


def _number_objects(values: list[Any], listed: int) -> tuple[Array, list[Any]]:
    """Number the ids of the first ``listed`` vertices, then of sources and destinations in turn."""
    seen: dict[Hashable, int] = {}
    ids: list[Any] = []
    numbers = np.empty(len(values), np.uint32)
    for position, value in enumerate(values):
        plain = identity = value
        if type(value) not in DISTINCT:
            end = position - listed
            name = "vertices" if end < 0 else "dst" if end % 2 else "src"
            plain, identity = identify(value, name, position if end < 0 else end // 2)
        number = seen.setdefault(identity, len(ids))
        if number == len(ids):
            ids.append(plain)
        numbers[position] = number
    return numbers, ids


def _ranks(order: Sequence[int] | Array) -> Array:
    """Return the position of each number in ``order``, uint32."""
    ranks = np.empty(len(order), np.uint32)
    ranks[order] = np.arange(len(order), dtype=np.uint32)
    return ranks


def _number_strings(columns: Columns, threads: int) -> tuple[dict[str, Array], Array] | None:
    """Number columns of strings by a hash table; None if any id is no string, or one that Arrow cannot hold."""
    import pyarrow as pa

    strings = {}
    for name, column in columns.items():
        if isinstance(column, np.ndarray):
            column = as_strings(column) if len(column) else pa.chunked_array([], pa.string())
        if column is None:
            return None
        if column.null_count:
            raise GraphError(_missing(name, int(np.asarray(column.is_null()).argmax()), None))
        strings[name] = column
    table = StringTable(threads)
    listed = len(strings.get("vertices", ()))
    # The position of the first string, and the distance of the next one.
    places = {"vertices": (0, 1), "src": (listed, 2), "dst": (listed + 1, 2)}
    parts = {name: table.add(column, *places[name]) for name, column in strings.items()}
    names = table.finish(*parts.values())
    return parts, np.fromiter(names.to_pylist(), object, len(names))


def identify(value: Any, name: str, position: int) -> tuple[Any, Hashable]:
    """Return an id as a Python object, and its :func:`key`. Errors say that the id is ``name[position]``.

    Raises
    ------
    GraphError
        The id is missing: None, NaN, NaT or pandas.NA.
    ArgumentTypeError
        The id is not hashable.
    """
    kind = type(value)
    if kind in DISTINCT:
        return value, value
    if isinstance(value, np.generic) and value.dtype.kind not in "mM":
        value = value.item()
    try:
        hash(value)
    except TypeError:
        raise ArgumentTypeError(
            f"{name}[{position:,}] is of type {kind.__name__}, which is not hashable: use strings or tuples as ids"
        ) from None
    if is_missing(value):
        raise GraphError(_missing(name, position, value))
    return value, key(value)


def key(value: Any) -> Hashable:
    """Return what identifies an id: its value and its type, also of elements. In Python ``1 == 1.0 == True``."""
    if isinstance(value, np.generic) and value.dtype.kind not in "mM":
        value = value.item()
    kind = type(value)
    if kind in DISTINCT:
        return value  # type: ignore[no-any-return]
    if isinstance(value, tuple):
        return kind, tuple(map(key, value))
    if isinstance(value, frozenset):
        return kind, frozenset(map(key, value))
    if kind is datetime and value.utcoffset() is not None:
        # Python ignores `fold` where it compares times of one zone.
        return kind, value.astimezone(UTC)
    return kind, value


def is_missing(value: Any) -> bool:
    """Return whether ``value`` is None, NaN or pandas.NA, or a tuple or set that contains one of the last two."""
    if value is None:
        return True
    if isinstance(value, (tuple, frozenset)):
        return any(one is not None and is_missing(one) for one in value)
    differs = value != value
    return type(value).__name__ == "NAType" or (isinstance(differs, (bool, np.bool_)) and bool(differs))


def _missing(name: str, position: int, value: object) -> str:
    return f"{name}[{position:,}] is missing ({value!r}): drop the row, or fill in an id"


def check_ids(values: Any, n: int) -> Array | None:
    """Return ``n`` distinct ids as int64, uint64 or objects, maybe ``values``; None if they are 0 to n - 1.

    Raises
    ------
    GraphError
        Their number is not ``n``, or one is missing or repeated.
    """
    ids = as_ids("ids", values)
    if not isinstance(ids, np.ndarray):
        ids = np.fromiter(to_list(ids), object, len(ids))
    if len(ids) != n:
        raise GraphError(f"ids has {len(ids):,} entries for {n:,} vertices: pass one per vertex")
    if ids.dtype.kind != "O":
        ascending = np.sort(ids)
        same = ascending[1:] == ascending[:-1]
        if same.any():
            raise GraphError(_repeated(ascending[int(same.argmax())].item()))
        beyond = n > 0 and ids.dtype.kind == "u" and int(ascending[-1]) > np.iinfo(np.int64).max
        return None if np.array_equal(ids, np.arange(n)) else np.asarray(ids, np.uint64 if beyond else np.int64)
    if set(map(type, ids)) == {str} and len(set(ids)) == n:
        return np.asarray(ids)
    seen: set[Hashable] = set()
    plain: list[Any] = []
    for position, value in enumerate(ids):
        found, identity = identify(value, "ids", position)
        if identity in seen:
            raise GraphError(_repeated(value))
        seen.add(identity)
        plain.append(found)
    return np.fromiter(plain, object, n)


def _repeated(value: object) -> str:
    return f"ids contains {value!r} more than once: give each vertex a distinct id"

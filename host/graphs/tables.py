"""Tables of pandas and Arrow, whose columns hold ids and values exactly or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from gpu_pregel.errors import ArgumentTypeError
from gpu_pregel.host.graphs.id_columns import key

if TYPE_CHECKING:
    import pandas
    import pyarrow

Array = np.ndarray[Any, Any]

_EXACT = {str, int, bytes, bool, float}
"""Types whose values Arrow keeps."""
_UNITS = ("s", "ms", "us", "ns")
"""Units of times, from the coarsest to the finest."""


def as_table(columns: Mapping[str, Array | list[Any]]) -> pyarrow.Table:
    """Build an Arrow table; raise ``ArgumentTypeError`` if a column holds ids that Arrow cannot represent."""
    import pyarrow as pa

    arrays = {}
    for name, values in columns.items():
        try:
            arrays[name] = _as_arrow(values)
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            raise ArgumentTypeError(
                f"the ids in column {name!r} cannot be stored in a table ({error}): use 64-bit integers or strings"
            ) from error
    return pa.table(arrays)


def as_frame(columns: Mapping[str, Array]) -> pandas.DataFrame:
    """Build a data frame; ids that no dtype holds exactly are a column of objects."""
    import pandas

    return pandas.DataFrame({name: _as_series(values) for name, values in columns.items()})


def _as_series(values: Array) -> Any:
    """Return a column for pandas: integers, strings, floats and times by a dtype, anything else as it is."""
    import pandas
    import pyarrow as pa

    is_masked = isinstance(values, np.ma.MaskedArray)
    if values.dtype.kind != "O":
        return pandas.arrays.IntegerArray(values.data, np.ma.getmaskarray(values)) if is_masked else values
    objects = values.filled(None) if isinstance(values, np.ma.MaskedArray) else values
    try:
        array = _as_arrow(values)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return pandas.Series(objects, dtype=object)
    if pa.types.is_integer(array.type) and array.null_count:
        return pandas.arrays.IntegerArray(array.fill_null(0).to_numpy(), np.ma.getmaskarray(values))
    if pa.types.is_date(array.type) and isinstance(next(filter(None, objects)), np.datetime64):
        array = array.cast(pa.timestamp("s"))
    kinds = (
        pa.types.is_integer,
        pa.types.is_boolean,
        pa.types.is_floating,
        pa.types.is_string,
        pa.types.is_timestamp,
        pa.types.is_duration,
    )
    return array.to_pandas() if any(kind(array.type) for kind in kinds) else pandas.Series(objects, dtype=object)


def _as_arrow(values: Array | list[Any]) -> pyarrow.Array:
    """Return a column as an Arrow array, or raise ``TypeError`` or an error of Arrow if it cannot hold all values."""
    import pyarrow as pa

    if isinstance(values, list):
        values = np.fromiter(values, object, len(values))
    if values.dtype.kind != "O":
        return pa.array(values)
    if set(map(type, values)) == {str}:
        return pa.array(values)
    is_missing = np.ma.getmaskarray(values)
    present = [_plain(one) for one in np.ma.getdata(values)[~is_missing]]
    array = _exact(present) if present else pa.nulls(0)
    if not is_missing.any():
        return array
    places = np.cumsum(~is_missing) - 1
    return array.take(pa.array(places, mask=is_missing)) if present else pa.nulls(len(values))


def _plain(value: Any) -> Any:
    """Return a scalar of NumPy as a Python object, except times, of which Python has no equal."""
    return value.item() if isinstance(value, np.generic) and value.dtype.kind not in "mM" else value


def _exact(values: list[Any]) -> pyarrow.Array:
    """Return values of one type as an Arrow array that holds them exactly."""
    import pyarrow as pa

    first, kind = values[0], type(values[0])
    for other in values:
        if type(other) is not kind:
            raise TypeError(f"{first!r:.80} is of type {kind.__name__}, {other!r:.80} of type {type(other).__name__}")
    if isinstance(first, (np.datetime64, np.timedelta64)):
        return pa.array(_numpy_times(values))
    array = pa.array(values, _arrow_type(values))
    if kind in _EXACT:
        return array
    for value, held in zip(values, array.to_pylist(), strict=True):
        # Python's equal of a time of pandas has another type.
        if held != value if _is_pandas(value) else key(_tuples(held)) != key(value):
            raise TypeError(f"{value!r:.80} would be stored as {held!r:.80}")
    return array


def _arrow_type(values: list[Any]) -> pyarrow.DataType | None:
    """Return the type of a column of integers or times; None lets Arrow choose one."""
    import pyarrow as pa

    first = values[0]
    if type(first) is int:
        lowest, highest = min(values), max(values)
        if lowest >= -(1 << 63) and highest < 1 << 63:
            return pa.int64()
        if lowest >= 0 and highest < 1 << 64:
            return pa.uint64()
        worst = highest if highest >= 1 << 63 else lowest
        raise TypeError(f"{worst} is beyond 64 bits, or beside a negative id")
    if isinstance(first, datetime):
        zones = {str(one.tzinfo) for one in values}
        if len(zones) > 1:
            raise TypeError(f"{first!r:.80} has another time zone than others")
        unit = _finest(values) if _is_pandas(first) else "us"
        return pa.timestamp(unit, pa.array([first]).type.tz)
    if _is_pandas(first) and type(first).__name__ == "Timedelta":
        return pa.duration(_finest(values))
    return None


def _finest(values: list[Any]) -> str:
    """Return the finest unit of times of pandas."""
    return _UNITS[max(_UNITS.index(one.unit) for one in values)]


def _numpy_times(values: list[Any]) -> Array:
    """Return times of NumPy as an array, in a unit that Arrow has."""
    times = np.array(values)
    unit = np.datetime_data(times.dtype)[0]
    kind = times.dtype.kind
    coarse = {"h": "s", "m": "s"} | (dict.fromkeys("YMW", "D") if kind == "M" else dict.fromkeys("WD", "s"))
    times = times.astype(f"{kind}8[{coarse.get(unit, unit)}]")
    for value, held in zip(values, times, strict=True):
        if held != value:
            raise TypeError(f"{value!r} would be stored as {held!r}")
    return times


def _tuples(value: Any) -> Any:
    """Return a value of Arrow with tuples instead of lists."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _is_pandas(value: object) -> bool:
    return type(value).__module__.partition(".")[0] == "pandas"

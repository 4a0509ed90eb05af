"""Encoding of date and time types, Decimal and UUID; loaded on first use.

- date, time, datetime: their numbers, fold, and time zone: None, the key of a ``ZoneInfo``, or a tuple of the offset in
  microseconds and, if the zone has one, its name
- timedelta: days, seconds, microseconds; Decimal: its string; UUID: its 16 bytes
"""

from __future__ import annotations

import re
import struct
import uuid
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal, DecimalException
from typing import Any
from zoneinfo import ZoneInfo

from gpu_pregel.host.agents.codec.decoder import canonical_error, read_bytes, read_items, readers, truncation_error
from gpu_pregel.host.agents.codec.encoder import Output, length_bytes, type_name, write_items, writers
from gpu_pregel.host.agents.codec.format import DATE, DATETIME, DECIMAL, TIME, TIMEDELTA, UUID, InvalidDataError

_DATE = struct.Struct(">HBB")
_TIME = struct.Struct(">BBBIB")
_DATETIME = struct.Struct(">HBBBBBIB")
_TIMEDELTA = struct.Struct(">iiI")
_ZONE_KEY = re.compile(r"\w[\w+-]*(/\w[\w+-]*)*", re.ASCII)
_MICROSECOND = timedelta(microseconds=1)


def _write_date(x: date, out: Output, _depth: int) -> None:
    out.append(_TAG_DATE + _DATE.pack(x.year, x.month, x.day))


def _read_date(data: bytes, i: int, _depth: int) -> tuple[date, int]:
    try:
        return date(*_DATE.unpack_from(data, i)), i + _DATE.size
    except ValueError as error:
        raise InvalidDataError(f"is not a date: {error}") from None


def _write_time(x: time, out: Output, _depth: int) -> None:
    out.append(_TAG_TIME + _TIME.pack(x.hour, x.minute, x.second, x.microsecond, x.fold))
    _write_zone(x.tzinfo, out)


def _read_time(data: bytes, i: int, _depth: int) -> tuple[time, int]:
    hour, minute, second, microsecond, fold = _TIME.unpack_from(data, i)
    zone, i = _read_zone(data, i + _TIME.size)
    try:
        return time(hour, minute, second, microsecond, zone, fold=fold), i
    except (ValueError, OverflowError) as error:
        raise InvalidDataError(f"is not a time: {error}") from None


def _write_datetime(x: datetime, out: Output, _depth: int) -> None:
    numbers = _DATETIME.pack(x.year, x.month, x.day, x.hour, x.minute, x.second, x.microsecond, x.fold)
    out.append(_TAG_DATETIME + numbers)
    _write_zone(x.tzinfo, out)


def _read_datetime(data: bytes, i: int, _depth: int) -> tuple[datetime, int]:
    year, month, day, hour, minute, second, microsecond, fold = _DATETIME.unpack_from(data, i)
    zone, i = _read_zone(data, i + _DATETIME.size)
    try:
        return datetime(year, month, day, hour, minute, second, microsecond, zone, fold=fold), i
    except (ValueError, OverflowError) as error:
        raise InvalidDataError(f"is not a datetime: {error}") from None


def _write_zone(zone: tzinfo | None, out: Output) -> None:
    """Write a time zone."""
    x: Any
    if zone is None:
        x = None
    elif type(zone) is timezone:
        offset, *name = zone.__getinitargs__()  # type: ignore[attr-defined]
        x = (offset // _MICROSECOND, *name)
    elif type(zone) is ZoneInfo and zone.key is not None:
        x = zone.key
    else:
        raise InvalidDataError(
            f"has a tzinfo of type {type_name(type(zone))} without a key: use datetime.timezone, or ZoneInfo with a key"
        )
    try:
        write_items((x,), out, 2)
    except InvalidDataError as error:
        error.steps[:] = [".tzinfo"]
        raise


def _read_zone(data: bytes, i: int) -> tuple[tzinfo | None, int]:
    try:
        (x,), i = read_items(data, i, 1, 2)
        return _as_zone(x), i
    except InvalidDataError as error:
        error.steps[:] = [".tzinfo"]
        raise


def _as_zone(x: Any) -> tzinfo | None:
    if x is None:
        return None
    if type(x) is str and _ZONE_KEY.fullmatch(x):
        try:
            return ZoneInfo(x)
        except (LookupError, ValueError, OSError, ImportError):
            raise InvalidDataError(f"is the unknown time zone {x!r}: install the package tzdata") from None
    if type(x) is tuple and list(map(type, x)) in ([int], [int, str]):
        try:
            return timezone(x[0] * _MICROSECOND, *x[1:])
        except (ValueError, OverflowError):
            pass
    raise InvalidDataError("is not a time zone")


def _write_timedelta(x: timedelta, out: Output, _depth: int) -> None:
    out.append(_TAG_TIMEDELTA + _TIMEDELTA.pack(x.days, x.seconds, x.microseconds))


def _read_timedelta(data: bytes, i: int, _depth: int) -> tuple[timedelta, int]:
    numbers = _TIMEDELTA.unpack_from(data, i)
    try:
        x = timedelta(*numbers)
    except OverflowError as error:
        raise InvalidDataError(f"is not a timedelta: {error}") from None
    if (x.days, x.seconds, x.microseconds) != numbers:
        raise canonical_error()
    return x, i + _TIMEDELTA.size


def _decimal_text(x: Decimal) -> bytes:
    """Return the string of a Decimal, independent of the letter for exponents in its context."""
    return str(x).replace("e", "E").encode()


def _write_decimal(x: Decimal, out: Output, _depth: int) -> None:
    text = _decimal_text(x)
    out.append(_TAG_DECIMAL + length_bytes(len(text)) + text)


def _read_decimal(data: bytes, i: int, _depth: int) -> tuple[Decimal, int]:
    text, i = read_bytes(data, i)
    try:
        x = Decimal(text.decode("ascii"))
    except (UnicodeDecodeError, DecimalException, ValueError, OverflowError):
        raise InvalidDataError("is not a Decimal") from None
    if _decimal_text(x) != text:
        raise canonical_error()
    return x, i


def _write_uuid(x: uuid.UUID, out: Output, _depth: int) -> None:
    out.append(_TAG_UUID + x.bytes)


def _read_uuid(data: bytes, i: int, _depth: int) -> tuple[uuid.UUID, int]:
    if i + 16 > len(data):
        raise truncation_error()
    return uuid.UUID(bytes=data[i : i + 16]), i + 16


_TAG_DATE, _TAG_TIME, _TAG_DATETIME, _TAG_TIMEDELTA, _TAG_DECIMAL, _TAG_UUID = (
    bytes((tag,)) for tag in (DATE, TIME, DATETIME, TIMEDELTA, DECIMAL, UUID)
)
writers.update(
    {
        date: _write_date,
        time: _write_time,
        datetime: _write_datetime,
        timedelta: _write_timedelta,
        Decimal: _write_decimal,
        uuid.UUID: _write_uuid,
    }
)
readers[DATE], readers[TIME], readers[DATETIME] = _read_date, _read_time, _read_datetime
readers[TIMEDELTA], readers[DECIMAL], readers[UUID] = _read_timedelta, _read_decimal, _read_uuid

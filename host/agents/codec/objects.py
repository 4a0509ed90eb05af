"""Decoding of registered types, and of data that former versions of them have written."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from gpu_pregel.host.agents.codec.decoder import read_bytes, read_items, readers
from gpu_pregel.host.agents.codec.encoder import Output, type_name, write_items
from gpu_pregel.host.agents.codec.format import MAX_DEPTH, OBJECT, InvalidDataError
from gpu_pregel.host.agents.codec.types import MODEL_PARTS, RegisteredType, by_head, by_name

_ENUM, _MODEL = "e", "p"


@dataclass(frozen=True, eq=False)
class UnregisteredObject:
    """An object whose type is not registered in this process, as the data describe it."""

    type_name: str
    fields: dict[str, Any]


class _Mode(threading.local):
    shows_unregistered = False


_mode = _Mode()


@contextmanager
def showing_unregistered() -> Iterator[None]:
    """Let ``decode`` return ``UnregisteredObject`` in this thread where it would refuse a type, to show the data."""
    before, _mode.shows_unregistered = _mode.shows_unregistered, True
    try:
        yield
    finally:
        _mode.shows_unregistered = before


def _read_object(data: bytes, i: int, depth: int) -> tuple[Any, int]:
    start = i - 1
    _, i = read_bytes(data, i)
    kind = by_head.get(data[start:i])
    if kind is None:
        return _read_former(data[start:i], data, i, depth)
    values, i = _read_parts(kind.parts, data, i, depth)
    if kind.migrate is not None and _letter(kind.head) == _ENUM:
        values = _known_member(kind, values)
    return kind.build(values), i


def _read_parts(parts: tuple[str, ...], data: bytes, i: int, depth: int) -> tuple[list[Any], int]:
    try:
        return read_items(data, i, len(parts), depth)
    except InvalidDataError as error:
        error.name_field(parts)
        raise


def _read_former(head: bytes, data: bytes, i: int, depth: int) -> tuple[Any, int]:
    """Read an object whose type had other fields."""
    letter, name, *fields = _unpack_head(head)
    kind = by_name.get(name)
    if kind is None and _mode.shows_unregistered:
        names = (*fields, *{_MODEL: MODEL_PARTS, _ENUM: ("name",)}.get(letter, ()))
        values, i = _read_parts(names, data, i, depth)
        shown = {field: value for field, value in zip(names, values, strict=True) if field not in MODEL_PARTS}
        return UnregisteredObject(name, shown), i
    if kind is None:
        raise InvalidDataError(
            f"has the type {name[:80]!r}, which is not registered: import the module that registers it"
        )
    current = _letter(kind.head)
    if letter != current and (kind.migrate is None or _MODEL in (letter, current)):
        raise InvalidDataError(f"is of a different kind than {type_name(kind.type)}: register it under another name")
    rest = {_MODEL: MODEL_PARTS, _ENUM: ("name",)}.get(letter, ())
    values, i = _read_parts((*fields, *rest), data, i, depth)
    given = dict(zip(fields or rest, values, strict=False))
    known = kind.parts[: -len(MODEL_PARTS)] if current == _MODEL else kind.parts
    if kind.migrate is not None:
        given = _migrated(kind, given)
    parts = _with_defaults(kind, known, given)
    if current == _MODEL:
        was_set, private = values[len(fields) :]
        parts += [_renumbered(was_set, fields, known, given), private]
    return kind.build(parts), i


def _unpack_head(head: bytes) -> list[str]:
    """Return the letter of the kind of an encoded type, its name and its fields."""
    packed, _ = read_bytes(head, 1)
    parts: list[Any] = []
    i = 0
    while i < len(packed):
        (part,), i = read_items(packed, i, 1, 1)
        parts.append(part)
    if len(parts) < 2 or not all(type(part) is str for part in parts):
        raise InvalidDataError("has a type without a name")
    return parts


@lru_cache(maxsize=1024)
def _letter(head: bytes) -> str:
    return _unpack_head(head)[0]


def _migrated(kind: RegisteredType, given: dict[str, Any]) -> dict[str, Any]:
    """Return the current fields for those of a former version."""
    assert kind.migrate is not None
    name = type_name(kind.type)
    try:
        fields: Any = kind.migrate(given)
    except (Exception, SystemExit) as error:
        raise InvalidDataError(f"cannot be read: migrate of {name} raised {type(error).__name__}: {error}") from error
    if type(fields) is not dict:
        raise InvalidDataError(f"cannot be read: migrate of {name} returned {type(fields).__name__}, not a dict")
    try:
        write_items(tuple(fields.values()), Output(), MAX_DEPTH)
    except InvalidDataError as error:
        error.name_field(tuple(map(str, fields)))
        problem = f"cannot be read: migrate of {name} returned fields{error.path('')}, which {error.problem}"
        raise InvalidDataError(problem) from None
    return fields


def _with_defaults(kind: RegisteredType, known: tuple[str, ...], given: dict[str, Any]) -> list[Any]:
    """Return the values of the current fields, with defaults for those that are not given."""
    name = type_name(kind.type)
    unexpected = next((field for field in given if field not in known), None)
    if unexpected is not None:
        raise InvalidDataError(
            f"has a field {str(unexpected)[:80]!r} that {name} does not have: pass migrate= to register"
        )
    values = []
    for field in known:
        try:
            values.append(given[field] if field in given else kind.default(field))
        except KeyError:
            raise InvalidDataError(
                f"has no field {field!r}, which {name} has: give it a default, or pass migrate= to register"
            ) from None
        except (Exception, SystemExit) as error:
            raise InvalidDataError(
                f"cannot be read: the default of {name}.{field} raised {type(error).__name__}: {error}"
            ) from error
    return values


def _renumbered(was_set: Any, fields: list[str], known: tuple[str, ...], given: dict[str, Any]) -> int:
    """Return which current fields of a pydantic model were set, given the same of its former fields."""
    if type(was_set) is not int or not 0 <= was_set < 1 << len(fields):
        raise InvalidDataError("does not record which of its fields were set")
    names = {field for k, field in enumerate(fields) if was_set >> k & 1} | (given.keys() - set(fields))
    return sum(1 << k for k, field in enumerate(known) if field in names)


def _known_member(kind: RegisteredType, values: list[Any]) -> list[Any]:
    """Return the name of an enum's member, as migrated if it is unknown."""
    try:
        kind.build(values)
    except InvalidDataError:
        return _with_defaults(kind, ("name",), _migrated(kind, {"name": values[0]}))
    return values


readers[OBJECT] = _read_object

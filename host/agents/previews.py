"""Values to look at: trees of bounded size that JSON can hold, and what differs between two values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from itertools import islice
from operator import itemgetter
from typing import Any

from gpu_pregel.errors import CodecError
from gpu_pregel.host.agents.codec import decode
from gpu_pregel.host.agents.codec.objects import UnregisteredObject, showing_unregistered

Node = list[Any]
"""The type of a value, its text and, if it has parts, a list of (name, node), and how many more there are."""
_SCALARS = (type(None), bool, int, float, str, bytes, bytearray)
_MISSING: Any = object()
_SHOWN_PARTS = 60
_MAX_DEPTH = 8
_LARGE = 4 << 20
"""Bytes of an encoded value beyond which only its size is shown."""


def cut(text: str, limit: int) -> str:
    """Return a text, cut to a number of characters with the number of those left out."""
    return text if len(text) <= limit else f"{text[:limit]}… [{len(text) - limit:,} more characters]"


def whole_text(value: Any, convert: Callable[[Any], str] = repr) -> str:
    """Return the whole text of a value, or its outline if it has an integer of more digits than Python converts.

    Examples
    --------
    >>> whole_text([1, 10**5000])
    '[1, an integer of 16,610 bits]'
    """
    try:
        return convert(value)
    except ValueError:
        return one_line(show(value))


class Budget:
    """How much of a value is shown: the number of its parts, and the characters of each text."""

    def __init__(self, parts: int = 300, characters: int = 2_000) -> None:
        self.parts, self.characters = parts, characters

    def take(self) -> bool:
        """Use up one part; return whether there was one."""
        self.parts -= 1
        return self.parts >= 0


def show_encoded(data: bytes, budget: Budget | None = None) -> Node:
    """Return the tree of an encoded value; types need not be registered."""
    if len(data) > _LARGE:
        return ["large", f"{len(data):,} bytes"]
    try:
        return show(decode_to_show(data), budget)
    except CodecError as error:
        return ["unreadable", cut(str(error), 500)]


def decode_to_show(data: bytes) -> Any:
    """Decode a value of which some types may not be registered in this process."""
    with showing_unregistered():
        return decode(bytes(data))


def show(value: Any, budget: Budget | None = None) -> Node:
    """Return the tree of a value."""
    return _show(value, budget or Budget(), _MAX_DEPTH)


def _show(value: Any, budget: Budget, depth: int) -> Node:
    kind = _kind_of(value)
    parts = _parts(value)
    if parts is None:
        return [kind, _text(value, budget.characters)]
    count = len(parts)
    text = f"{count:,}"
    if depth == 0:
        return [kind, text, [], count]
    shown: list[list[Any]] = []
    for name, part in islice(parts.items(), _SHOWN_PARTS):
        if not budget.take():
            break
        shown.append([name, _show(part, budget, depth - 1)])
    return [kind, text, shown, max(0, len(parts) - len(shown))]


def _kind_of(value: Any) -> str:
    return value.type_name if isinstance(value, UnregisteredObject) else type(value).__name__


def _text(value: Any, limit: int) -> str:
    """Return the text of a value without parts, whatever its methods do."""
    if isinstance(value, str):
        return cut(value, limit)
    if isinstance(value, (bytes, bytearray)):
        return cut(bytes(value[:limit]).decode("utf-8", "backslashreplace"), limit)
    if type(value) is int and value.bit_length() > 4 * limit:
        return f"an integer of {value.bit_length():,} bits"
    try:
        return cut(str(value), limit)
    except Exception as error:
        return f"<no text: {type(error).__name__}>"


def _parts(value: Any) -> dict[str, Any] | None:
    """Return the parts of a value by name, or None if it has none; of a set, in the order of their texts."""
    if isinstance(value, (*_SCALARS, Enum)):
        return None
    if isinstance(value, UnregisteredObject):
        return dict(value.fields)
    if isinstance(value, Mapping):
        return {_name(key): part for key, part in value.items()}
    if isinstance(value, (set, frozenset)):
        return dict(sorted([(_name(part), part) for part in value], key=itemgetter(0)))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return dict(zip(value._fields, value, strict=False))
    if isinstance(value, (list, tuple)):
        return {str(number): part for number, part in enumerate(value)}
    if is_dataclass(value):
        return {field.name: getattr(value, field.name, None) for field in fields(value)}
    if hasattr(type(value), "model_fields"):
        return {name: getattr(value, name, None) for name in type(value).model_fields}
    return None


def _name(key: Any) -> str:
    return cut(key, 200) if isinstance(key, str) else _text(key, 200)


Difference = list[Any]
"""The path as a list of names; "added", "removed", "changed" or "appended"; the trees before and after, None if there
is none."""


def find_encoded_differences(before: bytes, after: bytes) -> tuple[list[Difference], int]:
    """Return the parts that differ between two encoded values, whose types need not be registered."""
    if max(len(before), len(after)) > _LARGE:
        return [[[], "changed", show_encoded(before), show_encoded(after)]], 0
    try:
        return find_differences(decode_to_show(before), decode_to_show(after))
    except CodecError:
        return [[[], "changed", show_encoded(before), show_encoded(after)]], 0


def find_differences(before: Any, after: Any, *, most: int = 40, characters: int = 400) -> tuple[list[Difference], int]:
    """Return the parts that differ between two values, in the order of the new one, and how many more there are.

    Lists are compared by position, so that an item appended to a list is one difference; texts that continue an old one
    are shown as what was appended.
    """
    found: list[Difference] = []
    count = 0
    for path, old, new in _walk((), before, after, _MAX_DEPTH):
        count += 1
        if count > most:
            continue
        kind = "added" if old is _MISSING else "removed" if new is _MISSING else "changed"
        if kind == "changed" and isinstance(old, str) and isinstance(new, str) and old and new.startswith(old):
            kind, old, new = "appended", _MISSING, new[len(old) :]
        trees = [None if one is _MISSING else show(one, Budget(60, characters)) for one in (old, new)]
        found.append([list(path), kind, *trees])
    return found, max(0, count - most)


def _walk(path: tuple[str, ...], old: Any, new: Any, depth: int) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    if _are_equal(old, new):
        return
    parts: Callable[[Any], dict[str, Any] | None] = _parts
    if depth == 0 or _kind_of(old) != _kind_of(new) or (before := parts(old)) is None or (after := parts(new)) is None:
        yield path, old, new
        return
    for name in _in_order(after, before):
        one, other = before.get(name, _MISSING), after.get(name, _MISSING)
        if one is _MISSING or other is _MISSING:
            yield (*path, name), one, other
        else:
            yield from _walk((*path, name), one, other, depth - 1)


def _in_order(first: Iterable[str], second: Iterable[str]) -> Iterable[str]:
    return dict.fromkeys([*first, *second])


def _are_equal(old: Any, new: Any) -> bool:
    """Whether two values are the same to somebody who looks at them, whatever their methods do."""
    if old is new:
        return True
    if type(old) is not type(new):
        return False
    if isinstance(old, float):
        return bool(old == new) or (math.isnan(old) and math.isnan(new))
    if isinstance(old, UnregisteredObject):
        return False  # its fields are compared
    if hasattr(old, "tobytes"):  # an array
        return bool(old.dtype == new.dtype and old.shape == new.shape and old.tobytes() == new.tobytes())
    try:
        return bool(old == new)
    except Exception:
        return False


def one_line(node: Node, limit: int = 400) -> str:
    """Return a tree as text on one line.

    Examples
    --------
    >>> one_line(show({"question": "publish?", "pages": [1, 2]}))
    "{question: 'publish?', pages: [1, 2]}"
    """
    if len(node) == 2:
        return cut(repr(node[1]) if node[0] == "str" else str(node[1]), limit)
    kind, _, parts, left = node
    items = [
        one_line(part, limit) if kind in ("list", "tuple") else f"{name}: {one_line(part, limit)}"
        for name, part in parts
    ]
    if left:
        items.append(f"… {left:,} more")
    opening, closing = {"list": ("[", "]"), "tuple": ("(", ")")}.get(kind, ("{", "}"))
    name = "" if kind in ("dict", "list", "tuple", "set") else kind
    return cut(f"{name}{opening}{', '.join(items)}{closing}", limit)

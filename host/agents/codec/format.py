"""The format of encoded data: tags, and errors with the path to the invalid part.

The first byte is the version. A value is a tag byte followed by its content. A length is one byte, or 255 and eight
bytes. Each value has one canonical encoding, and only that is decoded. The tags of id types are in the order of the
types, and integers sort by value.

- int: from -16 to 111 a tag of its own; otherwise eight bytes; otherwise the number of bytes (complemented if negative)
  and the bytes
- float: eight bytes; str (UTF-8), bytes, bytearray: length and content
- list, tuple: length and items; eight or more items that are all floats, or all 64-bit integers, have no tags
- dict: length, size of the keys, keys, values; set, frozenset: length and elements, sorted by their bytes
- date and time types, Decimal, UUID: see ``standard_types``; NumPy arrays and scalars: description of the dtype, shape,
  bytes; registered types: the name of the type and its fields as one piece, then the values of the fields
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

VERSION = 1
DIFFERENCE = 2
"""The first byte of the difference between two values; see ``differences``."""
MAX_DEPTH = 200
"""Maximum nesting depth of containers."""
MAX_EQUAL_HASHES = 256
"""Maximum number of keys of a dict, or elements of a set, with the same hash: each is compared with all others."""

NONE, FALSE, TRUE, FLOAT = 0x01, 0x02, 0x03, 0x04
BIG_NEGATIVE, NEGATIVE, SMALL, POSITIVE, BIG_POSITIVE = 0x10, 0x11, 0x20, 0xA0, 0xA1
STR, BYTES, TUPLE, FLOAT_TUPLE, INT_TUPLE = 0xA8, 0xA9, 0xAA, 0xAB, 0xAC
LIST, FLOAT_LIST, INT_LIST, DICT, SET, FROZENSET, BYTEARRAY = 0xB0, 0xB1, 0xB2, 0xB3, 0xB4, 0xB5, 0xB6
DATE, TIME, DATETIME, TIMEDELTA, DECIMAL, UUID, ARRAY, SCALAR, OBJECT = range(0xC0, 0xC9)

MIN_SMALL, MAX_SMALL = -16, 111
"""The range of integers with tags of their own."""
ZERO = SMALL - MIN_SMALL
"""The tag of the integer 0."""
MIN_UNTAGGED = 8
"""Minimum length of lists of only floats, or only integers, that are written without tags."""
CACHED_KEYS, MAX_KEY_BYTES = 1024, 1024
"""Limits of the caches of encoded and decoded keys: messages tend to be dicts with few sets of keys."""


class InvalidDataError(Exception):
    """A part is invalid; ``steps`` is the path to it, innermost first. Callers get a ``CodecError`` instead."""

    def __init__(self, problem: str, *steps: int | str) -> None:
        self.problem = problem
        self.steps: list[int | str] = list(steps)
        super().__init__(problem)

    def path(self, name: str) -> str:
        """Return the path, such as ``value.items[3].name``."""
        steps = [f"[{step}]" if isinstance(step, int) else step for step in reversed(self.steps)]
        if len(steps) > 16:
            steps[8:-4] = ["…"]
        return name + "".join(steps)

    def name_key(self, keys: tuple[object, ...]) -> None:
        """Replace the last step, the index of a value in a dict, by its key."""
        if self.steps and isinstance(step := self.steps[-1], int):
            self.steps[-1] = f"[{_short_repr(keys[step]) or f'key {step}'}]"

    def name_field(self, names: tuple[str, ...]) -> None:
        """Replace the last step, the index of a field, by its name."""
        if self.steps and isinstance(step := self.steps[-1], int):
            self.steps[-1] = f".{names[step]}"


def _short_repr(key: object) -> str | None:
    """Return a key as a path shows it, or None for types whose ``repr`` may be slow or fail."""
    if isinstance(key, (str, bytes)) and type(key) in (str, bytes):
        return repr(key) if len(key) <= 40 else f"{key[:36]!r}…"
    if type(key) in (bool, float, type(None)) or (type(key) is int and key.bit_length() <= 128):
        return repr(key)
    return None


class DataTooLargeError(InvalidDataError):
    """The encoded value exceeds the limit."""


def check_hashes(elements: Collection[Any]) -> None:
    """Refuse keys or elements from which a dict or a set is built in quadratic time, such as multiples of 2**61 - 1."""
    n = len(elements)
    if n <= MAX_EQUAL_HASHES or n - len(set(map(hash, elements))) < MAX_EQUAL_HASHES:
        return
    from collections import Counter

    ((_, most),) = Counter(map(hash, elements)).most_common(1)
    if most > MAX_EQUAL_HASHES:
        raise InvalidDataError(
            f"has {most:,} keys or elements with equal hashes, which take quadratic time, and at most "
            f"{MAX_EQUAL_HASHES} are allowed: use strings"
        )


def depth_error() -> InvalidDataError:
    """Return the error for data nested beyond ``MAX_DEPTH``."""
    return InvalidDataError(f"is nested more than {MAX_DEPTH} levels deep, or contains itself")

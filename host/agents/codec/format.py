"""The format of encoded data: tags, and how a refusal finds its way out.

A first byte says the version. A value is a tag byte and what the tag asks for. A length is one byte, or 255 and eight
bytes. There is one way to write a value, and only that is read. The tags of what ids are made of stand in the order of
their types, and integers sort by value.

- int: a tag of its own from -16 to 111; else eight bytes; else their number (its complement if negative) and the bytes
- float: eight bytes; str (UTF-8), bytes, bytearray: length and content
- list, tuple: length and items; eight or more items that are all floats, or all integers of 64 bits: without tags
- dict: length, size of the keys, keys, values; set, frozenset: length and elements, sorted by their bytes
- date and time types, Decimal, UUID: see ``codec_extras``; NumPy arrays and scalars: a description of the dtype, the
  shape, the bytes; registered types: the name and the fields' names as one piece, then the fields' values
"""

from __future__ import annotations

VERSION = 1
MAX_DEPTH = 200
"""So many containers may stand within each other."""

NONE, FALSE, TRUE, FLOAT = 0x01, 0x02, 0x03, 0x04
BIG_NEGATIVE, NEGATIVE, SMALL, POSITIVE, BIG_POSITIVE = 0x10, 0x11, 0x20, 0xA0, 0xA1
STR, BYTES, TUPLE, FLOAT_TUPLE, INT_TUPLE = 0xA8, 0xA9, 0xAA, 0xAB, 0xAC
LIST, FLOAT_LIST, INT_LIST, DICT, SET, FROZENSET, BYTEARRAY = 0xB0, 0xB1, 0xB2, 0xB3, 0xB4, 0xB5, 0xB6
DATE, TIME, DATETIME, TIMEDELTA, DECIMAL, UUID, ARRAY, SCALAR, OBJECT = range(0xC0, 0xC9)

LEAST, MOST = -16, 111
"""Integers from here to there have tags of their own."""
ZERO = SMALL - LEAST
"""The tag of the integer 0."""
UNTAGGED = 8
"""From so many items on, floats alone and integers alone are written without tags."""
KEYS_KEPT, LONGEST_KEYS = 1024, 1024
"""The keys of the latest dicts are kept as they are written, and back: messages tend to be dicts of few shapes."""


class Refused(Exception):  # noqa: N818 - no error that a caller sees
    """Something cannot be encoded or decoded; ``steps`` leads to it from the value, innermost first."""

    def __init__(self, problem: str, *steps: int | str) -> None:
        self.problem = problem
        self.steps: list[int | str] = list(steps)
        super().__init__(problem)

    def path(self, name: str) -> str:
        """Such as ``value.items[3].name``."""
        steps = [f"[{step}]" if isinstance(step, int) else step for step in reversed(self.steps)]
        if len(steps) > 16:
            steps[8:-4] = ["…"]
        return name + "".join(steps)

    def name_key(self, keys: tuple[object, ...]) -> None:
        """Let the last step, the index of a dict's value, name its key."""
        if self.steps and isinstance(step := self.steps[-1], int):
            self.steps[-1] = f"[{_shown(keys[step]) or f'key {step}'}]"

    def name_field(self, names: tuple[str, ...]) -> None:
        """Let the last step, the index of a field, name it."""
        if self.steps and isinstance(step := self.steps[-1], int):
            self.steps[-1] = f".{names[step]}"


def _shown(key: object) -> str | None:
    """A key of a dict in a path, unless it is of a type whose ``repr`` may take long or fail."""
    if isinstance(key, (str, bytes)) and type(key) in (str, bytes):
        return repr(key) if len(key) <= 40 else f"{key[:36]!r}…"
    if type(key) in (bool, float, type(None)) or (type(key) is int and key.bit_length() <= 128):
        return repr(key)
    return None


class TooLarge(Refused):
    """The whole takes more bytes than allowed."""


def too_deep() -> Refused:
    """What is said beyond the greatest depth."""
    return Refused(f"is nested more than {MAX_DEPTH} deep, or holds itself")

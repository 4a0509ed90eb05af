"""Analysis of one function's pointers: which of them point into the thread's stack or into constant tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from gpu_pregel.host.emulator.compile.ir_text import NAME, size_and_alignment, split, typed_value

_POINTER = re.compile(
    rf"\s*(?P<name>%{NAME}) = (?:(?P<alloca>alloca) .*|getelementptr .*?, (?P<base>ptr [^,]+)(?:,.*)?"
    rf"|phi ptr (?P<incoming>.*)|select i1 [^,]+, (?P<first>ptr .+), (?P<second>ptr .+)"
    rf"|(?:bitcast|freeze) (?P<operand>ptr .*?)(?: to ptr)?)$"
)
_SUFFIX = re.compile(r",? !\w.*$")
_CONSTANT = re.compile(rf"(@{NAME}) = .*?\bconstant (\[.*?\](?= [^x])|\{{.*?\}}|\w+)")


def constant_tables(lines: Iterable[str]) -> dict[str, int]:
    """Return the size in bytes of each global constant of a module."""
    matches = [match for line in lines if line[:1] == "@" and (match := _CONSTANT.match(line))]
    return {match[1]: _byte_size(match[2]) for match in matches}


class StackArrays:
    """The local arrays of a function, and the pointers derived from them and from constant tables.

    Parameters
    ----------
    lines : iterable of str
        The function's text.
    constants : mapping of str to int
        Sizes of the module's constants.
    """

    def __init__(self, lines: Iterable[str], constants: Mapping[str, int]) -> None:
        self.sizes: dict[str, int] = {}
        """Bytes of each local array, by the name of its pointer."""
        self._constants = constants
        self._sources: dict[str, list[str]] = {}
        for line in lines:
            match = _POINTER.match(_SUFFIX.sub("", line)) if " = " in line else None
            if match is not None:
                self._add(match, line)
        self._own = self._pointers()

    def _add(self, match: re.Match[str], line: str) -> None:
        name = match["name"]
        if match["alloca"]:
            self.sizes[name] = _byte_size(split(line.split(" alloca ", 1)[1])[0])
            self._sources[name] = []
        elif match["incoming"]:
            self._sources[name] = re.findall(rf"\[ ([^,]+), %{NAME} \]", match["incoming"])
        else:
            operands = (match["base"], match["first"], match["second"], match["operand"])
            self._sources[name] = [typed_value(one)[1] for one in operands if one is not None]

    def _pointers(self) -> set[str]:
        """Return the pointers all of whose sources are on the stack or constant, as the greatest fixed point."""
        known = self._sources.keys() | self._constants.keys()
        while bad := {name for name in known & self._sources.keys() if not known.issuperset(self._sources[name])}:
            known -= bad
        return known & self._sources.keys()

    def __contains__(self, pointer: str) -> bool:
        """Whether ``pointer`` points into the stack or into a constant table."""
        if pointer.startswith("%"):
            return pointer in self._own
        if pointer.startswith("@"):
            return pointer in self._constants
        match = re.search(rf"@{NAME}", pointer)
        return "getelementptr" in pointer and match is not None and match[0] in self._constants

    def array_of(self, pointer: str) -> str | None:
        """Return the array that ``pointer`` is derived from, or None if several are possible."""
        seen = {pointer}
        pending = [pointer]
        found = set()
        while pending:
            name = pending.pop()
            found |= {name} & (self.sizes.keys() | self._constants.keys())
            if not name.startswith("%"):  # a constant expression, of an index that is a constant
                found |= set(re.findall(rf"@{NAME}", name)) & self._constants.keys()
            pending += [one for one in self._sources.get(name, []) if one not in seen]
            seen.update(pending)
        return found.pop() if len(found) == 1 else None

    def size_of(self, array: str) -> int:
        """Return the size of a local array or a constant table in bytes."""
        return self.sizes.get(array) or self._constants.get(array, 0)


def _byte_size(kind: str) -> int:
    """Return the size of a type; for an unknown type, a size larger than any array."""
    try:
        return size_and_alignment(kind)[0]
    except ValueError:
        return 1 << 40

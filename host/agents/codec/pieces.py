"""The parts of a value's encoding: groups of consecutive items, and branches for large containers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from gpu_pregel.host.agents.codec.fingerprints import are_flat, are_immutable

GROUP_SIZE, GROUP_ITEMS = 1 << 17, 256
"""Bytes and items from which a group is full."""
IMMUTABLE, FLAT, NESTED = range(3)


def mutability(items: Sequence[Any]) -> int:
    """Return whether items are immutable, or containers of immutable values, or other."""
    return FLAT if are_flat(items) else IMMUTABLE if are_immutable(items) else NESTED


class Group:
    """Consecutive items of a container: their number, bytes, fingerprint, identities, and whether they are mutable."""

    __slots__ = ("_data", "count", "fingerprint", "ids", "mutability", "size")

    def __init__(self, items: Sequence[Any], data: list[bytes], fingerprint: bytes) -> None:
        self.count, self.size, self.fingerprint = len(items), sum(map(len, data)), fingerprint
        self.ids, self.mutability = tuple(map(id, items)), mutability(items)
        self._data = data

    def append(self, items: Sequence[Any], data: bytes, fingerprint: bytes) -> None:
        """Append items; the fingerprint is that of all items."""
        self.count += len(items)
        self.size += len(data)
        self.fingerprint = fingerprint
        self.ids += tuple(map(id, items))
        if self.mutability != mutability(items):
            self.mutability = NESTED
        self._data.append(data)

    def pieces(self) -> Iterable[bytes]:
        """Return the encoded pieces."""
        return self._data


class Branch:
    """A container: its type, the bytes before its items, the fingerprint of its keys, and its groups and branches."""

    __slots__ = ("head", "ids", "keys", "parts", "size", "type")
    count = 1

    def __init__(self, x: Any) -> None:
        self.type = type(x)
        self.size = 0

    def set(self, x: Any, head: bytes, keys: bytes, parts: list[Group | Branch]) -> None:
        """Describe a container, the same one or another of its type."""
        self.ids, self.head, self.keys, self.parts = (id(x),), head, keys, parts
        self.size = len(head) + sum([part.size for part in parts])

    def pieces(self) -> Iterator[bytes]:
        """Return the encoded pieces."""
        yield self.head
        for part in self.parts:
            yield from part.pieces()


Part = Group | Branch


class Cursor:
    """The items of a container beside the parts of its branch.

    Attributes
    ----------
    old : list
        The old parts; those before ``index`` are done, and the others begin at ``position`` of the old encoding.
    items : sequence
        The items; those before ``done`` are done, and are in ``parts``.
    holders : int
        Number of lists, besides the container, that refer to an item in a slice of ``items``.
    depth : int
        The remaining depth of nesting.
    """

    __slots__ = ("depth", "done", "holders", "index", "items", "old", "parts", "position")

    def __init__(self, old: list[Part], items: Sequence[Any], holders: int, depth: int, position: int) -> None:
        self.old, self.items, self.holders, self.depth, self.position = old, items, holders, depth, position
        self.index = self.done = 0
        self.parts: list[Part] = []

    def advance(self, new: list[Part], parts: int, items: int, size: int) -> None:
        """Move past old parts of ``size`` bytes and items, which ``new`` has."""
        self.parts += new
        self.index += parts
        self.done += items
        self.position += size

    def data(self, first: int, last: int) -> bytes:
        """Return the bytes of some old parts."""
        return joined(self.old[first:last])


def joined(parts: Iterable[Part]) -> bytes:
    """Return the bytes of parts."""
    return b"".join([piece for part in parts for piece in part.pieces()])


def are_small(parts: Sequence[Part]) -> bool:
    """Whether most parts are small, after many items have been added or removed one by one."""
    return 4 * sum([part.size for part in parts]) < len(parts) * GROUP_SIZE and (
        4 * sum([part.count for part in parts]) < len(parts) * GROUP_ITEMS
    )


def mergeable_runs(parts: Sequence[Part]) -> Iterator[list[Part]]:
    """Divide parts into runs of neighbouring groups that fit into one."""
    run: list[Part] = []
    for part in parts:
        if run and not _fit([*run, part]):
            yield run
            run = []
        run.append(part)
    yield run


def _fit(run: Sequence[Part]) -> bool:
    if any(type(part) is not Group for part in run):
        return False
    return sum([part.count for part in run]) <= GROUP_ITEMS and sum([part.size for part in run]) <= GROUP_SIZE

"""A value that stays decoded, and its encoding in pieces; after the value has changed, only what changed is encoded.

A tree has a branch for each large container and, between these, groups of consecutive items. A group whose fingerprint
is the same as before is neither encoded nor copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpu_pregel.host.agents.codec.differences import Edit, find_edits
from gpu_pregel.host.agents.codec.encoder import Output, tag_and_length, without_tags, write_items, write_key_block
from gpu_pregel.host.agents.codec.fingerprints import Fingerprinter, are_flat_private, are_private
from gpu_pregel.host.agents.codec.format import LIST, MAX_DEPTH, MIN_UNTAGGED, TUPLE, VERSION
from gpu_pregel.host.agents.codec.pieces import (
    FLAT,
    GROUP_ITEMS,
    GROUP_SIZE,
    NESTED,
    Branch,
    Cursor,
    Group,
    Part,
    are_small,
    joined,
    mergeable_runs,
)
from gpu_pregel.host.agents.codec.types import plain_type

_BRANCH_SIZE, _WIDE = 1 << 14, 64
"""Minimum bytes of a branch, except for the root, and minimum items of a container in it."""
_MANY_PARTS = 16
_SHORT = 64
"""Pieces of fewer bytes are replaced as a whole."""
_SEQUENCES: dict[type, int] = {list: LIST, tuple: TUPLE}


class OtherStructureError(Exception):
    """A container cannot have a branch, or no longer the one that it had."""


def _items_of(x: Any) -> tuple[Sequence[Any], int]:
    """Return the encoded items of a container in order, and the number of lists besides it that hold them.

    They are a copy, as another thread may modify the container.
    """
    kind = type(x)
    if kind is tuple:
        return x, 0
    if kind is list:
        return x[:], 1
    if kind is dict:
        return list(x.values()), 1
    known = plain_type(kind)
    if known is None:
        raise OtherStructureError
    return known.values(x), 1


def _is_wide(x: Any) -> bool:
    """Whether a container, or one inside it, has enough items to need a branch."""
    kind = type(x)
    if kind is list or kind is tuple or kind is dict:
        return len(x) >= _WIDE or any(map(_is_wide, x.values() if kind is dict else x))
    known = plain_type(kind)
    return known is not None and any(map(_is_wide, known.values(x)))


class PieceTree:
    """The tree of a value.

    Attributes
    ----------
    edits : list of Edit
        The changes of the encoding by the last update.
    is_private : bool
        Whether no other code can modify the value after the last update.
    """

    def __init__(self, holder: list[Any]) -> None:
        """Encode the value that is the only item of ``holder``."""
        self.edits: list[Edit] = []
        self.is_private = are_private(holder, 0)
        self._fingerprinter = Fingerprinter()
        self._fingerprinter.name_strings(holder)
        self._containers: list[Any] = []
        self._root = self._grow(holder[0], MAX_DEPTH)

    def encoded(self) -> bytes:
        """Return the encoded value."""
        return b"".join((bytes((VERSION,)), *self._root.pieces()))

    def update(self, holder: list[Any]) -> None:
        """Encode what has changed in the value that is the only item of ``holder``."""
        self.edits.clear()
        self.is_private = True
        self._visit(self._root, holder[0], MAX_DEPTH, 1)
        containers, self._containers = self._containers, []
        self.is_private &= are_private(containers, parts=False)

    @property
    def is_worn(self) -> bool:
        """Whether the tree keeps more strings of former values than the value itself has."""
        return self._fingerprinter.named_size > 2 * self._root.size + _BRANCH_SIZE

    # Growing: the encoding of new items.

    def _grow(self, x: Any, depth: int) -> Branch:
        """Return a branch for a container."""
        items, _ = _items_of(x)
        branch = Branch(x)
        branch.set(x, *self._head(x, items, depth), self._parts(items, depth))
        return branch

    def _head(self, x: Any, items: Sequence[Any], depth: int) -> tuple[bytes, bytes]:
        """Return the bytes of a container before its items, and the fingerprint of its keys."""
        kind, n = type(x), len(items)
        if kind is dict:
            keys = tuple(x)
            if len(keys) != n:  # modified by another thread
                raise OtherStructureError
            fingerprint = self._fingerprinter.fingerprint(keys)
            return write_key_block(keys, Output(), depth), fingerprint
        if kind not in _SEQUENCES:
            known = plain_type(kind)
            assert known is not None
            return known.head, b""
        if n >= MIN_UNTAGGED and type(items[0]) in (int, float) and without_tags(items) is not None:
            raise OtherStructureError
        return tag_and_length(_SEQUENCES[kind], n), b""

    def _parts(self, items: Sequence[Any], depth: int) -> list[Part]:
        """Encode consecutive items of a container, whose strings have names."""
        parts: list[Part] = []
        out = Output()
        first = size = 0
        for k, x in enumerate(items):
            branch = self._branch(x, depth - 1) if depth > 1 and _is_wide(x) else None
            if out and (branch or k - first == GROUP_ITEMS or size >= GROUP_SIZE):
                parts.append(self._group(items[first:k], [b"".join(out)]))
                first, size, out = k, 0, Output()
            if branch is None:
                start = len(out)
                write_items((x,), out, depth)
                size += sum(map(len, out[start:]))
            else:
                parts.append(branch)
                first = k + 1
        if out:
            parts.append(self._group(items[first:], [b"".join(out)]))
        return parts

    def _branch(self, x: Any, depth: int) -> Branch | None:
        """Return a branch for an item if it is large enough."""
        try:
            branch = self._grow(x, depth)
        except OtherStructureError:
            return None
        return branch if branch.size >= _BRANCH_SIZE else None

    def _group(self, items: Sequence[Any], data: list[bytes]) -> Group:
        return Group(items, data, self._fingerprinter.fingerprint(items))

    # Visiting: the encoding of what has changed.

    def _visit(self, branch: Branch, x: Any, depth: int, position: int) -> None:
        """Update a branch that begins at a position of the old encoding."""
        if type(x) is not branch.type:
            raise OtherStructureError
        items, holders = _items_of(x)
        if branch.type is dict and len(names := tuple(x)) == len(items) and self._are_keys(names, branch):
            head, keys = branch.head, branch.keys
        else:
            head, keys = self._head(x, items, depth)
        self._containers.append(x)
        if head != branch.head:
            self._edit(position, branch.head, head)
        cursor = Cursor(branch.parts, items, holders + 1, depth, position + len(branch.head))
        while cursor.index < len(cursor.old) and cursor.done < len(items):
            part = cursor.old[cursor.index]
            if type(part) is Group and self._is_same(part, cursor, cursor.done):
                cursor.advance([part], 1, part.count, part.size)
            elif not (self._enter(cursor) or self._skip(cursor) or self._replace(cursor)):
                break
        self._finish(cursor)
        if len(cursor.parts) > _MANY_PARTS and are_small(cursor.parts):
            cursor.parts = self._merged(cursor)
        branch.set(x, head, keys, cursor.parts)

    def _are_keys(self, names: tuple[Any, ...], branch: Branch) -> bool:
        """Whether the keys of a dict are those that it had."""
        return self._fingerprinter.fingerprint(names) == branch.keys

    def _edit(self, position: int, old: bytes, new: bytes) -> None:
        if not old or len(old) == len(new) < _SHORT:
            self.edits += [(position, position + len(old), new)] if old != new else []
        else:
            self.edits += [(position + start, position + end, data) for start, end, data in find_edits(old, new)]

    def _encode(self, cursor: Cursor, end: int) -> list[Part]:
        """Encode the items up to ``end``, which are new or have changed."""
        items = cursor.items[cursor.done : end]
        self.is_private = self.is_private and are_private(items, cursor.holders)
        self._fingerprinter.name_strings(items)
        return self._parts(items, cursor.depth)

    def _is_same(self, group: Group, cursor: Cursor, start: int) -> bool:
        """Whether the items from ``start`` on are those of a group."""
        items = cursor.items[start : start + group.count]
        if self.is_private and group.mutability == FLAT:
            self.is_private = are_flat_private(items, cursor.holders)
        elif self.is_private and group.mutability == NESTED:
            self.is_private = are_private(items, cursor.holders)
        if len(items) < group.count or self._fingerprinter.fingerprint(items) != group.fingerprint:
            return False
        if group.ids[0] != id(items[0]):
            group.ids = tuple(map(id, items))
        return True

    def _enter(self, cursor: Cursor, *, same: bool = True) -> bool:
        """Update a branch, by default only if it belongs to the same container as before."""
        branch, x = cursor.old[cursor.index], cursor.items[cursor.done]
        if type(branch) is not Branch or type(x) is not branch.type or (same and (id(x),) != branch.ids):
            return False
        size = branch.size
        try:
            self._visit(branch, x, cursor.depth - 1, cursor.position)
        except OtherStructureError:
            return False
        cursor.advance([branch], 1, 1, size)
        return True

    def _skip(self, cursor: Cursor) -> bool:
        """Skip parts, and the first items of a group, that have been removed before the next item."""
        k, sought = cursor.index, id(cursor.items[cursor.done])
        found = next((n for n in range(k, len(cursor.old)) if sought in cursor.old[n].ids), None)
        if found is None:
            return False
        part = cursor.old[found]
        removed = part.ids.index(sought)
        if not removed:
            if found == k:
                return False
            size = sum([one.size for one in cursor.old[k:found]])
            self.edits.append((cursor.position, cursor.position + size, b""))
            cursor.advance([], found - k, 0, size)
            return True
        data = cursor.data(k, found + 1)
        new = self._encode(cursor, cursor.done + part.count - removed)
        self._edit(cursor.position, data, joined(new))
        cursor.advance(new, found + 1 - k, min(part.count - removed, len(cursor.items) - cursor.done), len(data))
        return True

    def _replace(self, cursor: Cursor) -> bool:
        """Update a branch of another container; or, if no items were added or removed, encode those of a group."""
        if self._enter(cursor, same=False):
            return True
        if sum([part.count for part in cursor.old[cursor.index :]]) != len(cursor.items) - cursor.done:
            return False
        part = cursor.old[cursor.index]
        new = self._encode(cursor, cursor.done + part.count)
        self._edit(cursor.position, cursor.data(cursor.index, cursor.index + 1), joined(new))
        cursor.advance(new, 1, part.count, part.size)
        return True

    def _finish(self, cursor: Cursor) -> None:
        """Match the last groups from the end, and encode the items before them."""
        first, start, last, end = cursor.index, cursor.done, len(cursor.old), len(cursor.items)
        while last > first and end > start:
            part = cursor.old[last - 1]
            if type(part) is not Group or end - part.count < start:
                break
            if not self._is_same(part, cursor, end - part.count):
                break
            last, end = last - 1, end - part.count
        if first == last and start == end:
            cursor.parts += cursor.old[last:]
            return
        if first == last == len(cursor.old) and self._append(cursor):
            return
        new = self._encode(cursor, end) if end > start else []
        self._edit(cursor.position, cursor.data(first, last), joined(new))
        cursor.parts += [*new, *cursor.old[last:]]

    def _append(self, cursor: Cursor) -> bool:
        """Add the remaining items to the last group if it is not full."""
        new, tail = cursor.items[cursor.done :], cursor.parts[-1] if cursor.parts else None
        if type(tail) is not Group or tail.count + len(new) > GROUP_ITEMS or any(map(_is_wide, new)):
            return False
        self.is_private = self.is_private and are_private(new, cursor.holders)
        self._fingerprinter.name_strings(new)
        out = Output()
        write_items(new, out, cursor.depth)
        data = b"".join(out)
        if tail.size + len(data) > GROUP_SIZE:
            return False
        tail.append(new, data, self._fingerprinter.fingerprint(cursor.items[cursor.done - tail.count :]))
        self.edits.append((cursor.position, cursor.position, data))
        return True

    def _merged(self, cursor: Cursor) -> list[Part]:
        """Merge small neighbouring groups."""
        parts: list[Part] = []
        done = 0
        for run in mergeable_runs(cursor.parts):
            count = sum([part.count for part in run])
            if len(run) > 1:
                parts.append(self._group(cursor.items[done : done + count], [joined(run)]))
            else:
                parts += run
            done += count
        return parts

"""Large values that stay decoded between the attempts of their vertices, so that each costs what it changes.

An attempt gets the value itself, not a copy, and the value is kept only if no other code can modify it afterwards. If
the attempt fails, or its record is dropped, the value is decoded again.
"""

from __future__ import annotations

from _thread import allocate_lock
from typing import TYPE_CHECKING, Any

from gpu_pregel.host.agents.codec import encode
from gpu_pregel.host.agents.codec.differences import (
    LARGE,
    EncodedValue,
    changed_value,
    find_edits,
    pack_difference,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpu_pregel.host.agents.codec.piece_tree import PieceTree
    from gpu_pregel.host.agents.records import VertexData

_MAX_SIZE = 1 << 27
"""Maximum encoded bytes of all values that a partition keeps; in memory they take several times as much."""
_ATTEMPTS_WITHOUT = 32
"""Number of attempts after which a value is tried again that could not be kept."""

Id = bytes


class KeptValue:
    """A decoded value, the tree of its encoding, and what it encodes to."""

    __slots__ = ("encoded", "holder", "tree")

    def __init__(self, holder: list[Any], tree: PieceTree, encoded: EncodedValue) -> None:
        self.holder, self.tree, self.encoded = holder, tree, encoded


class KeptValues:
    """The values that a partition keeps.

    Attributes
    ----------
    staged : dict
        The values after attempts since the last commit, by vertex.
    """

    def __init__(self) -> None:
        self._kept: dict[Id, KeptValue] = {}
        self.staged: dict[Id, KeptValue] = {}
        self._without: dict[Id, int] = {}
        """Remaining attempts at vertices whose values could not be kept."""
        self._size = 0
        self._lock = allocate_lock()
        """Held to change what is kept: several threads may compute, even while the master commits."""

    def take(self, vertex: Id, encoded: EncodedValue) -> KeptValue | None:
        """Remove and return the value of a vertex if it is still what is committed."""
        kept = self._pop(vertex)
        return kept if kept is not None and kept.encoded is encoded else None

    def _pop(self, vertex: Id) -> KeptValue | None:
        with self._lock:
            kept = self._kept.pop(vertex, None)
            if kept is not None:
                self._size -= len(kept.encoded)
        return kept

    def encode(
        self, vertex: Id, old: EncodedValue, kept: KeptValue | None, holder: list[Any]
    ) -> tuple[bytes | None, EncodedValue | None]:
        """Encode the value in ``holder`` after an attempt, and stage it if it can be kept.

        Returns
        -------
        change : bytes or None
            The new value or the difference from the old one; None if nothing has changed.
        encoded : bytes, PiecedValue or None
            The new value if it has been staged, in which case the caller must not use the decoded one any longer.
        """
        kept = kept or self._take_unread(vertex, old)
        tree = None if kept is None else kept.tree
        if tree is None:
            change, tree = self._encode_whole(vertex, old, holder)
        else:
            try:
                tree.update(holder)
            except Exception:  # of another structure, or an error that the encoding of the whole value explains
                change, tree = self._encode_whole(vertex, old, holder)
            else:
                change = _pack(old, tree)
        if tree is None:
            return change, None
        if not tree.is_private or tree.is_worn:
            self._without[vertex] = _ATTEMPTS_WITHOUT
            return change, None
        encoded = old if change is None else changed_value(old, change)
        self.staged[vertex] = KeptValue(holder, tree, encoded)
        return change, encoded

    def _take_unread(self, vertex: Id, encoded: EncodedValue) -> KeptValue | None:
        """Return the tree of a value that the attempt has replaced without reading it."""
        kept = self.take(vertex, encoded)
        if kept is not None:
            kept.holder.clear()
        return kept

    def _encode_whole(self, vertex: Id, old: EncodedValue, holder: list[Any]) -> tuple[bytes | None, PieceTree | None]:
        tree = self._grow(vertex, len(old), holder)
        data = encode(holder[0]) if tree is None else tree.encoded()
        before = bytes(old)
        if data == before:
            return None, tree
        difference = pack_difference(len(before), find_edits(before, data))
        return difference if 2 * len(difference) < len(data) else data, tree

    def _grow(self, vertex: Id, size: int, holder: list[Any]) -> PieceTree | None:
        """Return the tree of a value that is not kept yet, or None if it will not be."""
        remaining = self._without.get(vertex, 0)
        if remaining:
            self._without[vertex] = remaining - 1
        if remaining or self._size + size > _MAX_SIZE:
            return None
        from gpu_pregel.host.agents.codec.piece_tree import PieceTree  # imports pickle

        try:
            return PieceTree(holder)
        except Exception:  # as above
            return None

    def commit(self, vertices: Mapping[Id, VertexData]) -> None:
        """Keep the staged values of the partition's vertices, which have been changed accordingly."""
        for vertex, kept in self.staged.items():
            one = vertices.get(vertex)
            if one is None:  # another partition owns it
                continue
            self.forget(vertex)
            kept.encoded = one.value
            if len(kept.encoded) >= LARGE:
                with self._lock:
                    self._kept[vertex] = kept
                    self._size += len(kept.encoded)
        self.staged.clear()

    def unstage(self, vertex: Id) -> None:
        """Drop the value of an attempt whose record has been dropped."""
        self.staged.pop(vertex, None)

    def forget(self, vertex: Id) -> None:
        """Drop the value of a vertex that has been removed or replaced."""
        self._pop(vertex)

    def clear(self) -> None:
        """Drop all values."""
        with self._lock:
            self._kept.clear()
            self._size = 0
        self.staged.clear()
        self._without.clear()


def _pack(old: EncodedValue, tree: PieceTree) -> bytes | None:
    """Return the change that an update of a tree found."""
    if not tree.edits:
        return None
    if 2 * sum([len(data) for _, _, data in tree.edits]) >= len(old):
        return tree.encoded()
    return pack_difference(len(old), tree.edits)

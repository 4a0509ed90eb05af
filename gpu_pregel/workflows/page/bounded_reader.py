"""Decodes what a page shows until it has read enough: of what is left only the sizes are shown."""

from __future__ import annotations

from gpu_pregel.host.agents.previews import Budget, Difference, Node, find_encoded_differences, show_encoded

_MOST_BYTES = 200 << 20
"""Bytes of values that are decoded for a page."""


class BoundedReader:
    """Shows encoded values, as trees and as differences, while there is room."""

    def __init__(self, room: int = _MOST_BYTES) -> None:
        self._room = room

    def tree(self, data: bytes, parts: int = 300, characters: int = 2_000) -> Node:
        """Return the tree of a value."""
        return show_encoded(data, Budget(parts, characters)) if self._take(len(data)) else _size(data)

    def differences(self, before: bytes, after: bytes) -> tuple[list[Difference], int]:
        """Return the parts that differ between two values, and how many more there are."""
        if self._take(len(before) + len(after)):
            return find_encoded_differences(before, after)
        return [[[], "changed", _size(before), _size(after)]], 0

    def _take(self, size: int) -> bool:
        self._room -= size
        return self._room >= 0


def _size(data: bytes) -> Node:
    return ["large", f"{len(data):,} bytes"]

"""Bytes that a superstep moves by model: each array streamed once, each random access its own size."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Traffic:
    """What a program's arrays weigh.

    Attributes
    ----------
    vertices, edges : int
        Stored edges of the pull side.
    value, message : int
        Bytes of a vertex's value and of a message.
    edge, row : int
        Bytes read of an edge, and of a row's bounds.
    bitmap : int
        Bytes of a bitmap.
    has_signals : bool
        Whether a pull computes each source's message first.
    """

    vertices: int
    edges: int
    value: int
    message: int
    edge: int
    row: int
    bitmap: int
    has_signals: bool

    def bytes_moved(self, direction: str, active_vertices: int, active_edges: int) -> int:
        """Bytes of a superstep in which so many vertices sent along so many edges."""
        if direction == "init":
            return self.vertices * self.value
        if direction == "push":
            delivered = min(self.vertices, active_edges)
            edges = active_edges * (self.edge + 2 * self.message)
            sources = active_vertices * (self.value + self.row)
            return 4 * self.bitmap + sources + edges + delivered * (self.message + self.value)
        loaded = self.message if self.has_signals else self.value
        signals = self.vertices * (self.value + self.message) if self.has_signals else 0
        rows = self.vertices * (self.row + 2 * self.message + 2 * self.value)
        return signals + rows + self.edges * (self.edge + loaded)

"""A model of the bytes that a superstep moves: arrays are streamed once, random accesses count their own size."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Traffic:
    """The sizes of a program's arrays.

    Attributes
    ----------
    vertices, edges : int
        Number of vertices, and of stored edges on the dense side.
    value, message : int
        Bytes per value and per message.
    edge, row : int
        Bytes read per edge, and per row for its bounds.
    bitmap : int
        Bytes of a bitmap.
    has_signals : bool
        Whether a pull computes the message of each source first.
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
        """Return the bytes of a superstep in which the active vertices send along the active edges.

        A pull that skips vertices, or stops at the first message, moves at most this much.
        """
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

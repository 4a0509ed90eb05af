"""The partition that owns each vertex, and vertices in order, by partition."""

from __future__ import annotations

from collections.abc import Set

from gpu_pregel.host.agents.records import NO_CHANGE, Change, Id, VertexData
from gpu_pregel.host.agents.workers.transport import Transport


class Placement:
    """The placement of the vertices of a run on the partitions of a transport, which computes it from their ids."""

    def __init__(self, transport: Transport) -> None:
        self._place, self._count = transport.place, transport.partitions
        self._sorted: list[Id] = []
        """All vertices in order; empty until they have been sorted."""
        self._parts: list[list[Id]] = []
        """The same by partition."""

    def of(self, vertex: Id) -> int:
        """Return the partition that owns a vertex."""
        return self._place((vertex,))[0]

    def sort(self, active: Set[Id], vertices: dict[Id, VertexData]) -> list[Id]:
        """Return the active ones of all vertices in order."""
        if len(active) == 1:
            return list(active)
        if 4 * len(active) < len(vertices):
            return sorted(active)
        # A large share of all vertices.
        self._sorted = self._sorted or sorted(vertices)
        if len(active) < len(vertices):
            return [vertex for vertex in self._sorted if vertex in active]
        return self._sorted

    def clear(self) -> None:
        """Forget the order, because vertices have been added or removed."""
        self._sorted, self._parts = [], []

    def split(self, vertices: list[Id]) -> list[list[Id]]:
        """Return the vertices of each partition, in order."""
        if self._count == 1:
            return [vertices]
        if vertices is self._sorted and self._parts:
            return self._parts
        parts: list[list[Id]] = [[] for _ in range(self._count)]
        for vertex, partition in zip(vertices, self._place(vertices), strict=True):
            parts[partition].append(vertex)
        if vertices is self._sorted:
            self._parts = parts
        return parts

    def split_state(self, vertices: dict[Id, VertexData]) -> list[dict[Id, VertexData]]:
        """Return the vertices of each partition with their state."""
        if self._count == 1:
            return [dict(vertices)]
        parts: list[dict[Id, VertexData]] = [{} for _ in range(self._count)]
        for (vertex, one), partition in zip(vertices.items(), self._place(vertices), strict=True):
            parts[partition][vertex] = one
        return parts

    def split_change(self, change: Change) -> list[Change]:
        """Return the part of each partition of a change."""
        if change is NO_CHANGE or self._count == 1:
            return [change] * self._count
        sets, halts, removals = self.split_state(change.set), self.split(change.halt), self.split(change.remove)
        return [Change(*parts) for parts in zip(sets, halts, removals, strict=True)]

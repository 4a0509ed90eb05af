"""The state of a run of agents between two supersteps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpu_pregel.host.agents.codec.differences import changed_value
from gpu_pregel.host.agents.codec.format import DIFFERENCE
from gpu_pregel.host.agents.records import FailedVertex, Id, Record, VertexData, new_vertex
from gpu_pregel.host.agents.timers import Timers

Records = list[tuple[Id, Record]]
"""The records of completed attempts, in the order of their vertices."""
Inbox = dict[Id, list[bytes]]
"""Messages in the order of (sender, sequence)."""


@dataclass
class State:
    """What a commit makes visible, and what the next superstep starts from.

    Attributes
    ----------
    vertices : dict of Id to VertexData
    inbox : dict of Id to list of bytes
    aggregates : dict of str to bytes
    function : str
        Name of the compute function.
    failed : dict of Id to FailedVertex
        Vertices that finally failed.
    options : StoredOptions
        The options that change results.
    timers : Timers
    """

    vertices: dict[Id, VertexData]
    inbox: Inbox
    aggregates: dict[str, bytes]
    function: str
    failed: dict[Id, FailedVertex] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    timers: Timers = field(default_factory=dict)

    def wake(self, vertex: Id) -> None:
        """Make a vertex active whose timer has come."""
        self.timers.pop(vertex, None)
        self.inbox.setdefault(vertex, [])

    def change(
        self, vertices: Mapping[Id, VertexData], removed: Iterable[Id], failed: Mapping[Id, FailedVertex]
    ) -> None:
        """Replace, add and remove vertices, and note which have failed."""
        if failed:
            self.failed.update(failed)
        self.vertices.update(vertices)
        for vertex in removed:
            self.vertices.pop(vertex, None)

    def deliver(self, vertex: Id, message: bytes) -> None:
        """Add a message from outside after those of vertices."""
        self.inbox[vertex] = [*self.inbox.get(vertex, ()), message]  # a base may be encoded from the old list

    def computed(self, records: Records, failed: Iterable[Id]) -> dict[Id, VertexData]:
        """The vertices that records and failures change."""
        vertices, changed = self.vertices, {}
        for vertex, record in records:
            old = vertices[vertex]
            value = record.value
            if value is not None:
                new = value if value[0] != DIFFERENCE else changed_value(old.value, value)
                changed[vertex] = new_vertex((new, old.edges, record.halted))
            elif record.halted is not old.halted:
                changed[vertex] = new_vertex((old.value, old.edges, record.halted))
        for vertex in failed:
            old = vertices[vertex]
            changed[vertex] = old._replace(halted=True)
        return changed

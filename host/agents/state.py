"""The state of a run of agents between two supersteps, and the routing of messages into it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from gpu_pregel.host.agents.records import Failure, Id, Record, VertexData

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
    failed : dict
        Vertices that finally failed: superstep, failure and input.
    """

    vertices: dict[Id, VertexData]
    inbox: Inbox
    aggregates: dict[str, bytes]
    function: str
    failed: dict[Id, tuple[int, Failure, list[bytes]]] = field(default_factory=dict)

    def computed(self, records: Records, failed: Iterable[Id]) -> dict[Id, VertexData]:
        """The vertices that records and failures change."""
        vertices, changed = self.vertices, {}
        for vertex, record in records:
            old, value = vertices[vertex], record.value
            if value is not None:
                changed[vertex] = VertexData(value, old.edges, record.halted)
            elif record.halted is not old.halted:
                changed[vertex] = VertexData(old.value, old.edges, record.halted)
        for vertex in failed:
            old = vertices[vertex]
            changed[vertex] = VertexData(old.value, old.edges, True)
        return changed


def route(records: Records, sent: Inbox) -> Inbox:
    """The messages of each vertex for the next superstep: those of vertices, then those from outside."""
    inbox: defaultdict[Id, list[bytes]] = defaultdict(list)
    for _, record in records:
        for target, message in record.outbox:
            inbox[target].append(message)
    inbox.default_factory = None
    for target, messages in sent.items():
        inbox.setdefault(target, []).extend(messages)
    return inbox

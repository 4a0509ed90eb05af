"""Requests of a superstep to add and remove vertices and edges, resolved together before its commit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpu_pregel.host.agents.records import NOTHING, Change, Id, Vertex
from gpu_pregel.host.agents.state import Inbox, Records

_ORDER = {"remove_edge": 0, "remove_vertex": 1, "add_vertex": 2, "add_edge": 3}

Resolve = Callable[[Id, Vertex | None, list[Vertex], list[bytes]], Vertex | None]
"""``resolve(id, existing, requested, messages)``: the vertex that is to be, or None for none."""


class ConflictError(Exception):
    """Two requests, or a request and a vertex, that do not go together; ``vertex`` is the one they are about."""

    def __init__(self, vertex: Id, problem: str) -> None:
        self.vertex, self.problem = vertex, problem
        super().__init__(problem)


def resolve_mutations(
    records: Records, find: Callable[[Id], Vertex | None], inbox: Inbox, resolve: Resolve | None
) -> Change:
    """What the requests of all records change: edges go first, then vertices, then vertices come, then edges.

    ``find`` gives a vertex as it is after the superstep's records; one whose edges change is replaced, not changed.
    """
    requests = [
        (_ORDER[mutation[0]], requester, mutation) for requester, record in records for mutation in record.mutations
    ]
    if not requests:
        return NOTHING
    requests.sort(key=lambda request: request[:1])  # stable: requesters are in order already, and their sequence
    draft = _Draft(find)
    asked: dict[Id, list[Vertex]] = {}
    for kind, _, mutation in requests:
        if kind == _ORDER["remove_edge"]:
            draft.remove_edges(*mutation[1:])
        elif kind == _ORDER["remove_vertex"]:
            draft.remove(mutation[1])
        elif kind == _ORDER["add_vertex"]:
            asked.setdefault(mutation[1], []).append(Vertex.unpack(mutation[2]))
    for vertex, wanted in asked.items():
        draft.add(vertex, wanted, inbox.get(vertex, []), resolve)
    for kind, _, mutation in requests:
        if kind == _ORDER["add_edge"]:
            draft.add_edge(*mutation[1:])
    return Change(set=draft.set, remove=list(draft.removed))


class _Draft:
    """The vertices as the requests so far have made them."""

    def __init__(self, find: Callable[[Id], Vertex | None]) -> None:
        self._find = find
        self.set: dict[Id, Vertex] = {}
        self.removed: dict[Id, None] = {}

    def _current(self, vertex: Id) -> Vertex | None:
        return None if vertex in self.removed else self.set.get(vertex) or self._find(vertex)

    def remove_edges(self, source: Id, target: Id) -> None:
        vertex = self._current(source)
        if vertex is not None:
            kept = [edge for edge in vertex.edges if edge[0] != target]
            self.set[source] = Vertex(vertex.value, kept, vertex.halted)

    def remove(self, vertex: Id) -> None:
        if self._current(vertex) is not None:
            self.set.pop(vertex, None)
            self.removed[vertex] = None

    def add(self, vertex: Id, wanted: list[Vertex], messages: list[bytes], resolve: Resolve | None) -> None:
        existing = self._current(vertex)
        chosen: Vertex | None
        if resolve is not None:
            chosen = resolve(vertex, existing, wanted, messages)
        elif existing is not None:
            raise ConflictError(vertex, "is added, but is there already: remove it first, or pass resolve=")
        elif any(one.pack() != wanted[0].pack() for one in wanted):
            raise ConflictError(vertex, f"is added {len(wanted)} times, with different values or edges: pass resolve=")
        else:
            chosen = wanted[0]
        if chosen is not None:
            self.removed.pop(vertex, None)
            self.set[vertex] = chosen
        elif existing is not None:
            self.remove(vertex)

    def add_edge(self, source: Id, target: Id, weight: Any) -> None:
        vertex = self._current(source)
        if vertex is None:
            raise ConflictError(
                source, "is to have an edge added, but is not there: add the vertex in the same superstep, or before"
            )
        self.set[source] = Vertex(vertex.value, [*vertex.edges, (target, weight)], vertex.halted)

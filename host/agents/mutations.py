"""Requests of a superstep to add and remove vertices and edges, resolved together before its commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gpu_pregel.host.agents.records import Change, Id, Record, Vertex

_ORDER = {"remove_edge": 0, "remove_vertex": 1, "add_vertex": 2, "add_edge": 3}

Resolve = Callable[[Id, Vertex | None, list[Vertex], int], Vertex | None]
"""``resolve(id, existing, requested, messages)``: the vertex that is to be, or None for none."""


class ConflictError(Exception):
    """Two requests, or a request and a vertex, that do not go together; ``vertex`` is the one they are about."""

    def __init__(self, vertex: Id, problem: str) -> None:
        self.vertex, self.problem = vertex, problem
        super().__init__(problem)


def resolve_mutations(
    records: Iterable[tuple[Id, Record]], states: dict[Id, Vertex], resolve: Resolve | None
) -> tuple[Change, dict[Id, Vertex]]:
    """What the requests of all records change, and the added vertices: edges go first, then vertices, then they come.

    ``states`` are the vertices after the superstep's records; those whose edges change are replaced, not changed.
    """
    requests = [
        (_ORDER[mutation[0]], requester, sequence, mutation)
        for requester, record in records
        for sequence, mutation in enumerate(record.mutations)
    ]
    change = Change()
    if not requests:
        return change, {}
    requests.sort(key=lambda request: request[:1])  # stable: requesters are in order already
    asked: dict[Id, list[Vertex]] = {}

    def current(vertex: Id) -> Vertex | None:
        return None if vertex in change.remove else change.set.get(vertex) or states.get(vertex)

    for _, _, _, mutation in requests:
        kind = mutation[0]
        if kind == "remove_edge":
            _, source, target = mutation
            vertex = current(source)
            if vertex is not None:
                kept = [edge for edge in vertex.edges if edge[0] != target]
                change.set[source] = Vertex(vertex.value, kept, vertex.halted)
        elif kind == "remove_vertex":
            if current(mutation[1]) is not None:
                change.set.pop(mutation[1], None)
                change.remove.append(mutation[1])
        elif kind == "add_vertex":
            asked.setdefault(mutation[1], []).append(Vertex.unpack(mutation[2]))
        else:
            break
    added = _add_vertices(asked, change, current, resolve)
    for _, requester, _, mutation in requests:
        if mutation[0] == "add_edge":
            _, source, target, weight = mutation
            vertex = current(source)
            if vertex is None:
                raise ConflictError(source, f"an edge is added to a vertex that is not there, as {requester!r} asked")
            change.set[source] = Vertex(vertex.value, [*vertex.edges, (target, weight)], vertex.halted)
    return change, {vertex: change.set[vertex] for vertex in added}


def _add_vertices(
    asked: dict[Id, list[Vertex]], change: Change, current: Callable[[Id], Vertex | None], resolve: Resolve | None
) -> list[Id]:
    added = []
    for vertex, wanted in asked.items():
        existing = current(vertex)
        if resolve is not None:
            chosen = resolve(vertex, existing, wanted, 0)
        elif existing is not None:
            raise ConflictError(vertex, "a vertex is added that is there already")
        elif any(one.pack() != wanted[0].pack() for one in wanted):
            raise ConflictError(vertex, f"{len(wanted)} different vertices of one id are added")
        else:
            chosen = wanted[0]
        if chosen is not None and chosen is not existing:
            if vertex in change.remove:
                change.remove.remove(vertex)
            change.set[vertex] = chosen
            added.append(vertex)
    return added

"""Requests of a superstep to add and remove vertices and edges, resolved together before its commit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpu_pregel.errors import AgentError, ArgumentTypeError, CodecError
from gpu_pregel.host.agents.codec import decode, encode
from gpu_pregel.host.agents.records import NO_CHANGE, WAKE_AT, Change, Id, VertexData, flat_edges
from gpu_pregel.host.agents.state import Inbox, Records
from gpu_pregel.host.agents.vertices import Vertex, decode_vertex, encode_vertex
from gpu_pregel.host.agents.workers.error_texts import text_of

_ORDER = {"remove_edge": 0, "remove_vertex": 1, "add_vertex": 2, "add_edge": 3, WAKE_AT: 4}

Resolve = Callable[..., Any]
"""``resolve(id, existing, requested, messages)`` of the user: returns the vertex to add, or None."""


Refusals = dict[Id, AgentError]
"""Why the record of a vertex cannot be folded, by vertex."""
Requests = list[tuple[int, Id, tuple[Any, ...]]]
"""The order of a request among the kinds of requests, the vertex that makes it, and the request."""


def refusal(problem: str, cause: BaseException | None = None) -> AgentError:
    """Return why a record cannot be folded, and the exception that shows it; a ``CodecError`` if it cannot be read."""
    reason = AgentError(problem)
    reason.__cause__ = cause
    return reason


class _ConflictError(Exception):
    """A request to add a vertex conflicts with another one or with an existing vertex."""


def resolve_mutations(
    records: Records,
    find: Callable[[Id], VertexData | None],
    inbox: Inbox,
    resolve: Resolve | None,
    on_missing: str,
    refused: Refusals,
) -> Change:
    """Return the effect of all requests: edges are removed first, then vertices; then vertices are added, then edges.

    ``find`` returns a vertex as it is after the records of the superstep, or None. Its data are not modified. Vertices
    whose requests conflict are added to ``refused``; what others do because of a refused request is no conflict yet.
    """
    requests = [
        (_ORDER[mutation[0]], requester, mutation) for requester, record in records for mutation in record.mutations
    ]
    if not requests:
        return NO_CHANGE
    requests.sort(key=lambda request: request[:1])  # stable: keeps the order of (requester, sequence)
    draft = _Draft(find)
    added: dict[Id, list[tuple[Id, bytes]]] = {}
    for kind, requester, mutation in requests:
        if requester in refused:
            continue
        if kind == _ORDER["remove_edge"]:
            draft.remove_edges(*mutation[1:])
        elif kind == _ORDER["remove_vertex"]:
            draft.remove(mutation[1])
        elif kind == _ORDER["add_vertex"]:
            added.setdefault(mutation[1], []).append((requester, mutation[2]))
    for vertex, asked in added.items():
        try:
            draft.add(vertex, [VertexData.unpack(data) for _, data in asked], inbox.get(vertex, []), resolve)
        except (Exception, SystemExit) as error:
            refused.update(dict.fromkeys([requester for requester, _ in asked], _reason(vertex, error)))
    _suppose(draft, requests, refused)
    for kind, requester, mutation in requests:
        if kind == _ORDER["add_edge"] and not draft.add_edge(*mutation[1:], on_missing=on_missing):
            refused.setdefault(requester, _missing_source(mutation[1]))
    return Change(set=draft.set, remove=list(draft.removed))


def _suppose(draft: _Draft, requests: Requests, refused: Refusals) -> None:
    """Let vertices exist that refused requests would have added, or have removed."""
    for _, requester, mutation in requests if refused else ():
        if requester in refused and mutation[0] in ("add_vertex", "remove_vertex"):
            draft.suppose(mutation[1])


def _reason(vertex: Id, error: BaseException) -> AgentError:
    """Return why a vertex cannot be added: a conflict, or an exception of the user's ``resolve`` or of a type."""
    own = isinstance(error, _ConflictError)
    problem = str(error) if own else f"cannot be added: {type(error).__name__}: {text_of(error)}"
    return refusal(f"vertex {decode(vertex)!r} {problem}", None if own else error)


def _missing_source(vertex: Id) -> AgentError:
    return AgentError(
        f"vertex {decode(vertex)!r} does not exist, so no edge can be added to it: add the vertex in the same "
        f"superstep, or before, or pass on_missing='create' or 'drop'"
    )


class _Draft:
    """The vertices that the requests handled so far have set and removed."""

    def __init__(self, find: Callable[[Id], VertexData | None]) -> None:
        self._find = find
        self.set: dict[Id, VertexData] = {}
        self.removed: dict[Id, None] = {}

    def _current(self, vertex: Id) -> VertexData | None:
        return None if vertex in self.removed else self.set.get(vertex) or self._find(vertex)

    def remove_edges(self, source: Id, target: Id) -> None:
        vertex = self._current(source)
        if vertex is not None:
            kept = flat_edges(edge for edge in vertex.edge_pairs if edge[0] != target)
            self.set[source] = VertexData(vertex.value, kept, vertex.halted)

    def remove(self, vertex: Id) -> None:
        if self._current(vertex) is not None:
            self.set.pop(vertex, None)
            self.removed[vertex] = None

    def add(self, vertex: Id, requested: list[VertexData], messages: list[bytes], resolve: Resolve | None) -> None:
        existing = self._current(vertex)
        chosen: VertexData | None
        if resolve is not None:
            chosen = _ask_user(resolve, vertex, existing, requested, messages)
        elif existing is not None:
            raise _ConflictError("is added, but already exists: remove it first, or pass resolve=")
        elif any(one.pack() != requested[0].pack() for one in requested):
            raise _ConflictError(f"is added {len(requested)} times, with different values or edges: pass resolve=")
        else:
            chosen = requested[0]
        if chosen is not None:
            self.removed.pop(vertex, None)
            self.set[vertex] = chosen
        elif existing is not None:
            self.remove(vertex)

    def suppose(self, vertex: Id) -> None:
        """Let a vertex exist."""
        if self._current(vertex) is None:
            self.removed.pop(vertex, None)
            self.set[vertex] = VertexData(b"", ())

    def add_edge(self, source: Id, target: Id, weight: Any, *, on_missing: str) -> bool:
        """Add an edge; return whether that is allowed, which depends on ``on_missing`` if there is no source."""
        vertex = self._current(source)
        if vertex is None:
            if on_missing != "create":
                return on_missing == "drop"
            self.removed.pop(source, None)
            vertex = VertexData(encode(None), ())
        self.set[source] = VertexData(vertex.value, (*vertex.edges, target, weight), vertex.halted)
        return True


def _ask_user(
    resolve: Resolve, vertex_id: Id, existing: VertexData | None, requested: list[VertexData], messages: list[bytes]
) -> VertexData | None:
    """Call the user's ``resolve`` with decoded arguments, and check and encode its result."""
    name = decode(vertex_id)
    before = None if existing is None else decode_vertex(name, existing)
    chosen = resolve(name, before, [decode_vertex(name, one) for one in requested], [decode(one) for one in messages])
    if chosen is None:
        return None
    problem = f"resolve returned {chosen!r}"
    if isinstance(chosen, Vertex):
        try:
            chosen_id, vertex = encode_vertex(chosen)
            if chosen_id == vertex_id:
                return vertex
        except (ArgumentTypeError, CodecError) as error:
            problem = f"resolve returned an invalid vertex: {error}"
    raise _ConflictError(f"cannot be added: {problem}: return a Vertex of that id, or None")

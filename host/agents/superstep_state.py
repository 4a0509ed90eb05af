"""The state of a superstep while it runs or is held, as a user reads it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from gpu_pregel.host.agents.codec import decode, id_key
from gpu_pregel.host.agents.ledger import Entry, Ledger
from gpu_pregel.host.agents.records import FailedVertex, Id, Record, VertexData
from gpu_pregel.host.agents.results import VertexFailure, decode_failure, decode_failures, decode_or_keep
from gpu_pregel.host.agents.state import State
from gpu_pregel.host.agents.vertices import Vertex, decode_vertex


@dataclass(frozen=True)
class VertexProgress:
    """What a superstep has given a vertex, and what has become of it so far.

    Attributes
    ----------
    status : str
        "pending", "in_progress" (it has been passed on to be computed), "completed", "failed" or "interrupted".
    attempts : int
        Number of attempts so far, without interrupted ones.
    vertex : Vertex
        The input: the vertex before the superstep.
    messages : list
        The input messages, in order. Those of types that are not registered in this process are bytes.
    outbox : list of (id, message)
        Of a completed vertex, what it sends, as far as a combiner has not folded it; otherwise empty.
    failure : VertexFailure or None
        Of a failed vertex, and of one that is tried again.
    payload : data
        Of an interrupted vertex, what it asks.
    computed : Vertex or None
        A completed vertex with its new value and its vote, before its requests are carried out.
    """

    status: str
    attempts: int
    vertex: Vertex
    messages: list[Any]
    outbox: list[tuple[Any, Any]]
    failure: VertexFailure | None = None
    payload: Any = None
    computed: Vertex | None = None


class _Row(NamedTuple):
    """The encoded progress of a vertex."""

    before: VertexData
    entry: Entry
    record: Record | None


class SuperstepState(Mapping[Any, VertexProgress]):
    """The progress of each vertex of a superstep when this was read, by id, decoded on access.

    Attributes
    ----------
    superstep : int
    failures : dict from id to VertexFailure
        The failed vertices.
    retryable : list of ids
        Those of them whose failures the retry policy, or the exception, allows to be tried again.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> def compute(ctx):
    ...     ctx.send("b", ctx.value / (ctx.value - 1))
    >>> once = gp.agents.RetryPolicy(attempts=1)
    >>> vertices = [gp.agents.Vertex("a", 3), gp.agents.Vertex("b", 1)]
    >>> with gp.agents.start(vertices, compute, retry=once) as agents:
    ...     _ = agents.step()
    ...     held = agents.superstep_state
    >>> [(one, progress.status, progress.outbox) for one, progress in held.items()]
    [('a', 'completed', [('b', 1.5)]), ('b', 'failed', [])]
    >>> held["b"].vertex.value, held["b"].failure.text, held.retryable
    (1, 'division by zero', ['b'])
    """

    def __init__(self, ledger: Ledger, vertices: Mapping[Id, VertexData]) -> None:
        self.superstep = ledger.step
        self._rows: dict[Id, _Row] = {}
        for vertex in ledger.vertices:
            entry = ledger.find_entry(vertex)
            entry = ledger.peek(vertex) if entry is None else copy(entry)
            self._rows[vertex] = _Row(vertices[vertex], entry, ledger.records.get(vertex))

    def __getitem__(self, vertex_id: Any) -> VertexProgress:
        key = id_key(vertex_id)
        row = self._rows.get(key)
        if row is None:
            raise KeyError(vertex_id)
        before, entry, record = row
        failed = None if entry.failure is None else entry.failed(self.superstep, before)
        return VertexProgress(
            entry.status,
            entry.attempts,
            decode_vertex(decode(key), before),
            list(map(decode_or_keep, entry.messages)),
            [] if record is None else [(decode(target), decode_or_keep(message)) for target, message in record.outbox],
            None if failed is None else decode_failure(failed),
            None if entry.payload is None else decode_or_keep(entry.payload),
            None if record is None else _computed(key, before, record),
        )

    def __iter__(self) -> Iterator[Any]:
        return map(decode, self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<superstep {self.superstep}: {len(self):,} vertices, {len(self._failed):,} failed>"

    @cached_property
    def _failed(self) -> dict[Id, FailedVertex]:
        rows = [(vertex, entry, before) for vertex, (before, entry, _) in self._rows.items()]
        return {vertex: one.failed(self.superstep, before) for vertex, one, before in rows if one.status == "failed"}

    @cached_property
    def failures(self) -> dict[Any, VertexFailure]:
        """The failed vertices."""
        return decode_failures(self._failed)

    @property
    def retryable(self) -> list[Any]:
        """The failed vertices whose failures allow further attempts."""
        return [decode(vertex) for vertex, one in self._failed.items() if one.failure.retryable]


def _computed(key: Id, before: VertexData, record: Record) -> Vertex:
    """Return a vertex after its computation."""
    changed = State({key: before}, {}, {}, "").computed([(key, record)], ())
    return decode_vertex(decode(key), changed.get(key, before))
